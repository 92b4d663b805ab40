"""The catalog in memory: L0's index and the version of every document that answers may show."""

import json
import threading
from collections.abc import Callable, Iterable, Mapping

from kb.documents import CatalogRow, Status, Version
from kb.keywords import KeywordIndex, Match
from kb.stores.catalog_table import CatalogTable

_KEPT = (
    "revision",
    "status",
    "changed_at",
    "content_hash",
    "title",
    "domain",
    "updated_at",
    "version",
    "author",
    "parts",
    "expires_at",
)
"""Fields of a row that are held, beside its key and what it serves."""


class Catalog:
    """Loaded whole once, then kept up to date from the rows changed since.

    Rows are held packed and without keywords, summary and reason, in less than half the memory:
    matching has the keywords, and who shows the others reads them from the table.

    `now` returns seconds since 1970; `interval` (between two looks), `overlap` (how far each look
    goes back before the last one, for writers' clocks and the index's delay) and `idle` (after
    which all is loaded again) are in seconds.
    """

    def __init__(
        self,
        table: CatalogTable,
        *,
        now: Callable[[], float],
        interval: float,
        overlap: float,
        idle: float,
    ) -> None:
        self._table = table
        self._now = now
        self._interval = interval
        self._overlap = overlap
        self._idle = idle
        self._refreshing = threading.Lock()
        self._learning = threading.Lock()
        self._looked_at: float | None = None
        self._rows: dict[str, bytes] = {}
        self._keys_of_content: dict[str, tuple[str, ...]] = {}
        self._keywords = KeywordIndex()

    @property
    def is_loaded(self) -> bool:
        return self._looked_at is not None

    def refresh(self) -> None:
        """Make what was committed up to about now visible. Raises Unavailable("catalog").

        Does nothing within `interval` of the last look. A failed look changes nothing.
        """
        with self._refreshing:
            started = self._now()
            if self._looked_at is None or not 0 <= started - self._looked_at < self._idle:
                self._reload()
            elif started - self._looked_at < self._interval:
                return
            else:
                since = int((self._looked_at - self._overlap) * 1000)
                self.learn(list(self._table.changed_since(since)))
            self._looked_at = started

    def read_again(self, keys: Iterable[str]) -> None:
        """Read these rows consistently and learn them. Raises Unavailable("catalog")."""
        held = {key: self._rows.get(key) for key in keys}
        found = self._table.read_many(list(held))
        self.learn(found.values())
        self._forget({key: row for key, row in held.items() if key not in found})

    def learn(self, rows: Iterable[CatalogRow]) -> None:
        """Take over rows that are newer than those held, all at once."""
        with self._learning:
            newer: dict[str, CatalogRow] = {}
            for row in rows:
                if _is_newer(row, newer.get(row.key) or self._held(row.key)):
                    newer[row.key] = row
            for row in newer.values():
                self._hold(row)
            self._keywords.put_all(
                (row.key, row.keywords if row.served else (), row.content_hash)
                for row in newer.values()
            )

    def row(self, key: str) -> CatalogRow | None:
        """The row of a document that can be served, else None."""
        row = self._held(key)
        return row if row and row.served else None

    def rows(self, status: Status | None = None) -> list[CatalogRow]:
        """Documents of that status, or all that are not deleted, by key."""
        rows = (_unpacked(key, packed) for key, packed in sorted(self._rows.copy().items()))
        return [
            row
            for row in rows
            if (row.status is status if status else row.status is not Status.DELETED)
        ]

    def match(self, folded: str) -> tuple[Match, ...]:
        """L0: the documents whose keywords match, best first, equal content once."""
        return self._keywords.match(folded)

    def twins(self, row: CatalogRow) -> list[CatalogRow]:
        """All served documents of the same content, itself included, by key."""
        keys = self._keys_of_content.get(row.content_hash, ())
        return [twin for key in keys if (twin := self.row(key))]

    def _reload(self) -> None:
        held = self._rows.copy()
        rows = {row.key: row for row in self._table.load()}
        self.learn(rows.values())
        self._forget({key: row for key, row in held.items() if key not in rows})

    def _held(self, key: str) -> CatalogRow | None:
        packed = self._rows.get(key)
        return _unpacked(key, packed) if packed else None

    def _hold(self, row: CatalogRow) -> None:
        """Put the row in place of the one held, never leaving a moment without either."""
        held = self._held(row.key)
        self._rows[row.key] = _packed(row)
        if row.served:
            keys = self._keys_of_content.get(row.content_hash, ())
            self._keys_of_content[row.content_hash] = tuple(sorted({*keys, row.key}))
        if held and (not row.served or held.content_hash != row.content_hash):
            self._drop_content(held)

    def _forget(self, gone: Mapping[str, bytes | None]) -> None:
        """Drop rows that the table no longer has, unless they were learned since they were held."""
        with self._learning:
            for key, packed in gone.items():
                if packed and self._rows.get(key) is packed:
                    del self._rows[key]
                    self._keywords.remove(key)
                    self._drop_content(_unpacked(key, packed))

    def _drop_content(self, row: CatalogRow) -> None:
        keys = self._keys_of_content.get(row.content_hash, ())
        if left := tuple(key for key in keys if key != row.key):
            self._keys_of_content[row.content_hash] = left
        else:
            self._keys_of_content.pop(row.content_hash, None)


def _packed(row: CatalogRow) -> bytes:
    served = row.served and (row.served.revision, row.served.fingerprint)
    values = [served, *(getattr(row, name) for name in _KEPT)]
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()


def _unpacked(key: str, packed: bytes) -> CatalogRow:
    served, *values = json.loads(packed)
    kept = dict(zip(_KEPT, values, strict=True))
    kept["status"] = Status(kept["status"])
    return CatalogRow(key=key, served=Version(*served) if served else None, **kept)


def _is_newer(row: CatalogRow, held: CatalogRow | None) -> bool:
    """Whether the row was committed after the one held.

    A document that comes back after its tombstone has expired counts its revisions from 1 again.
    """
    if held is None or row.revision > held.revision:
        return True
    return held.expires_at is not None and row.changed_at > held.expires_at * 1000
