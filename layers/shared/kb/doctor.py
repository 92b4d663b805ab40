"""Compares bucket, catalog, content table and vectors, and repairs by looking at keys again.

All is listed once; a document that then seems not in order is looked at again by itself, by
consistent reads, so that one that is being ingested meanwhile is not taken for a broken one.
Repairs go through ingest: nothing is changed that a look of its own would not change, but that
what the catalog says it serves is written once more where it is not whole.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from kb.diagnosis import WRITTEN_ANEW, Expected, Finding, Held, Kind, diagnose, highest_left_over
from kb.documents import CatalogRow, Version, is_document
from kb.errors import Refused, Unavailable
from kb.ingest import Ingest
from kb.ports import VectorIndex
from kb.stores.catalog_table import CatalogTable
from kb.stores.content_table import ContentTable, items_of
from kb.stores.knowledge_bucket import KnowledgeBucket

PARALLEL = 4
"""Documents at once; repairs embed, and lookups need the embedder too."""
ATTEMPTS = 5
"""Looks at a document that others keep changing."""

_Versions = Mapping[Version, int]


@dataclass(frozen=True, slots=True)
class Examined:
    """One key, what is not in order with it, and what of that a repair has left."""

    key: str
    found: list[Finding]
    left: list[Finding]


class Doctor:
    """`document_bytes` is ingest's limit; `now` returns seconds since 1970."""

    def __init__(
        self,
        *,
        ingest: Ingest,
        bucket: KnowledgeBucket,
        catalog: CatalogTable,
        content: ContentTable,
        index: VectorIndex,
        document_bytes: int,
        now: Callable[[], float],
    ) -> None:
        self._ingest = ingest
        self._bucket = bucket
        self._catalog = catalog
        self._content = content
        self._index = index
        self._document_bytes = document_bytes
        self._now = now

    def examine(self, repair: bool = False) -> tuple[int, Iterator[Examined]]:
        """How many keys there are, and each of them by byte order, repaired where that is wanted.

        Raises Unavailable where a store does not answer; what was repaired by then stays so.
        """
        self._index.prepare()
        self._index.refresh()
        stored = {key for key in self._bucket.list_keys() if is_document(key)}
        rows = {row.key: row for row in self._catalog.load()}
        chunks = _by_key(self._index.versions())
        items = _by_key(self._content.versions())
        keys = sorted(stored | rows.keys() | chunks.keys() | items.keys(), key=str.encode)

        def one(key: str) -> Examined:
            expected = self._expected(key) if key in stored else None
            held = _held(key, rows.get(key), expected, chunks.get(key, {}), items.get(key, {}))
            if not diagnose(held, self._now()):
                return Examined(key, [], [])
            held = self._look(key)
            found = diagnose(held, self._now())
            if not found or not repair:
                return Examined(key, found, found)
            self._repair(held, {finding.kind for finding in found})
            return Examined(key, found, diagnose(self._look(key), self._now()))

        return len(keys), _at_once(one, keys)

    def _look(self, key: str) -> Held:
        """The key as all stores hold it while its row stands still."""
        for _ in range(ATTEMPTS):
            row = self._catalog.read(key)
            chunks = {version: count for _, version, count in self._index.versions(key)}
            items = {version: count for _, version, count in self._content.versions(key)}
            held = _held(key, row, self._expected(key), chunks, items)
            again = self._catalog.read(key)
            if (again and again.revision) == (row and row.revision):
                return held
        raise Unavailable("catalog", "other writers kept being faster")

    def _expected(self, key: str) -> Expected | str | None:
        stored = self._bucket.read(key, self._document_bytes) if is_document(key) else None
        if stored is None:
            return None
        try:
            return self._ingest.expected(key, stored)
        except Refused as refused:
            return str(refused)

    def _repair(self, held: Held, kinds: set[Kind]) -> None:
        self._ingest.reconcile(held.key, anew=bool(kinds & WRITTEN_ANEW))
        if Kind.LEFT_OVER in kinds:
            self._ingest.overtake(held.key, highest_left_over(held))
        if Kind.TOMBSTONE_OVERDUE in kinds and held.row:
            self._catalog.remove(held.row)


def _held(
    key: str,
    row: CatalogRow | None,
    expected: Expected | str | None,
    chunks: _Versions,
    items: _Versions,
) -> Held:
    return Held(key, row, expected, chunks, items, items_of(row) if row else 0)


def _by_key(versions: Iterator[tuple[str, Version, int]]) -> dict[str, dict[Version, int]]:
    found: dict[str, dict[Version, int]] = {}
    for key, version, count in versions:
        found.setdefault(key, {})[version] = count
    return found


def _at_once(examine: Callable[[str], Examined], keys: list[str]) -> Iterator[Examined]:
    """Several at the same time, in the keys' order; what has not begun when it ends is not done."""
    pool = ThreadPoolExecutor(PARALLEL)
    try:
        yield from pool.map(examine, keys)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
