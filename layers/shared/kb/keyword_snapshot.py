"""All documents with their keywords at one moment, as a value: a change makes another snapshot.

New documents are few and compared one by one; when they are more, they are settled in a table,
and small tables in a larger one, so that a change costs little and a match searches few tables.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kb.folding import Query, fold
from kb.keyword_table import KeywordTable

_NEW_AT_MOST = 64
"""Documents compared one by one: about half a microsecond each in every match."""
_GROWTH = 3
"""How many times larger than all newer tables together a table is, else it is merged with them:
a larger number means fewer tables to search and more merging."""


@dataclass(frozen=True, slots=True)
class Document:
    """What a snapshot knows of a document."""

    keywords: tuple[str, ...]
    """Folded, none blank, none twice."""
    content_hash: str

    @classmethod
    def of(cls, key: str, keywords: Sequence[str], content_hash: str) -> "Document":
        folded = dict.fromkeys(filter(None, map(fold, keywords)))
        return cls(tuple(folded), content_hash or f"no hash: {key}")


@dataclass(frozen=True, slots=True)
class Found:
    """What a query matched."""

    holders: dict[str, list[str]]
    """Keys by keyword."""
    contents: dict[str, str]
    """Content hash by key."""

    def without_copies(self) -> dict[str, list[str]]:
        """The holders, of equal documents the one with the smallest key only."""
        if len(set(self.contents.values())) == len(self.contents):
            return self.holders
        kept = set(
            {self.contents[key]: key for key in sorted(self.contents, reverse=True)}.values()
        )
        return {word: [key for key in keys if key in kept] for word, keys in self.holders.items()}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Every document once: in `new`, or in one of the tables and not gone there."""

    new: Mapping[str, Document]
    settled: tuple["_Settled", ...]
    """Oldest and largest first."""

    def __len__(self) -> int:
        return len(self.new) + sum(map(len, self.settled))

    def holds(self, key: str, document: Document) -> bool:
        """Whether it holds the document exactly so."""
        if key in self.new:
            return self.new[key] == document
        return any(one.holds(key, document) for one in self.settled)

    def having(self, documents: Mapping[str, Document]) -> "Snapshot":
        """With these, in place of others of the same keys."""
        changed = {key: one for key, one in documents.items() if not self.holds(key, one)}
        if not changed:
            return self
        new, settled = self._others(changed)
        return Snapshot(new | changed, settled)._settle()

    def without(self, key: str) -> "Snapshot":
        return Snapshot(*self._others((key,)))._settle()

    def _others(self, keys: Collection[str]) -> tuple[dict[str, Document], tuple["_Settled", ...]]:
        new = {key: document for key, document in self.new.items() if key not in keys}
        return new, tuple(one.without(keys) for one in self.settled)

    def find(self, query: Query) -> Found:
        holders: dict[str, list[str]] = {}
        contents: dict[str, str] = {}
        for one in self.settled:
            keys, content_hashes, gone = one.table.keys, one.table.content_hashes, one.gone
            for keyword, places in one.table.find(query):
                for place in places:
                    if not gone[place]:
                        holders.setdefault(keyword, []).append(keys[place])
                        contents[keys[place]] = content_hashes[place]
        text = query.text
        for key, document in self.new.items():
            for keyword in document.keywords:
                if (keyword in text or text in keyword) and query.meets(keyword):
                    holders.setdefault(keyword, []).append(key)
                    contents[key] = document.content_hash
        return Found(holders, contents)

    def _settle(self) -> "Snapshot":
        """The same documents; new ones settled if they are many, and tables half gone renewed."""
        settled = self.settled
        renewed = [n for n, one in enumerate(settled) if 2 * len(one) < len(one.gone)]
        if len(self.new) <= _NEW_AT_MOST and not renewed:
            return self
        first = min(renewed, default=len(settled))
        moving = len(self.new) + sum(map(len, settled[first:]))
        while first and len(settled[first - 1]) < _GROWTH * moving:
            first -= 1
            moving += len(settled[first])
        table = _merged(self.new, settled[first:])
        return Snapshot({}, (*settled[:first], _Settled(table, bytes(moving))))


@dataclass(frozen=True, slots=True)
class _Settled:
    """A table, of which some documents were removed or replaced since."""

    table: KeywordTable
    gone: bytes
    """For each document 1 if it was, else 0."""

    def __len__(self) -> int:
        return self.gone.count(0)

    def holds(self, key: str, document: Document) -> bool:
        place = self._place(key)
        return (
            place is not None
            and self.table.content_hashes[place] == document.content_hash
            and self.table.holds(place, document.keywords)
        )

    def without(self, keys: Collection[str]) -> "_Settled":
        places = [place for key in keys if (place := self._place(key)) is not None]
        if not places:
            return self
        gone = bytearray(self.gone)
        for place in places:
            gone[place] = 1
        return _Settled(self.table, bytes(gone))

    def documents(self) -> Iterator[tuple[str, str]]:
        """Key and content hash of those not gone."""
        table = self.table
        for key, content_hash, gone in zip(
            table.keys, table.content_hashes, self.gone, strict=True
        ):
            if not gone:
                yield key, content_hash

    def _place(self, key: str) -> int | None:
        place = self.table.place(key)
        return None if place is None or self.gone[place] else place


def _merged(new: Mapping[str, Document], settled: Sequence[_Settled]) -> KeywordTable:
    content_hashes = {key: document.content_hash for key, document in new.items()}
    for one in settled:
        content_hashes.update(one.documents())
    keys = sorted(content_hashes)
    places = {key: place for place, key in enumerate(keys)}

    def held() -> Iterator[tuple[str, int]]:
        for one in settled:
            moved = [places.get(key, 0) for key in one.table.keys]
            for keyword, holders in one.table.held():
                for at in holders:
                    if not one.gone[at]:
                        yield keyword, moved[at]
        for key, document in new.items():
            for keyword in document.keywords:
                yield keyword, places[key]

    return KeywordTable(keys, [content_hashes[key] for key in keys], held())
