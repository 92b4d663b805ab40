"""All documents with their keywords at one moment, as a value: a change makes another snapshot.

New documents are few and compared one by one; when they are more, they are settled in a table,
and small tables in a larger one, so that a change costs little and a match searches few tables.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kb.folding import Query, fold
from kb.keyword_table import KeywordTable

_NEW_AT_MOST = 32
"""Documents compared one by one: about a microsecond each in every match."""
_GROWTH = 4
"""How many times larger than all newer tables together a table is, else it is merged with them:
a larger number means fewer tables to search and more merging."""


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
        left = {word: [key for key in keys if key in kept] for word, keys in self.holders.items()}
        return {word: keys for word, keys in left.items() if keys}


@dataclass(frozen=True, slots=True)
class Document:
    keywords: tuple[str, ...]
    """Folded, none blank, none twice."""
    content_hash: str

    @classmethod
    def of(cls, key: str, keywords: Sequence[str], content_hash: str) -> "Document":
        folded = dict.fromkeys(filter(None, map(fold, keywords)))
        return cls(tuple(folded), content_hash or f"no hash: {key}")


@dataclass(frozen=True, slots=True)
class Settled:
    """A table, of which some documents were removed or replaced since."""

    table: KeywordTable
    gone: bytes
    """For each document 1 if it was, else 0."""

    def __len__(self) -> int:
        return self.gone.count(0)

    def without(self, place: int) -> "Settled":
        gone = bytearray(self.gone)
        gone[place] = 1
        return Settled(self.table, bytes(gone))

    def documents(self) -> Iterator[tuple[str, str]]:
        """Key and content hash of those not gone."""
        for key, content_hash, gone in zip(
            self.table.keys, self.table.content_hashes, self.gone, strict=True
        ):
            if not gone:
                yield key, content_hash


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Every document once: in `new`, or in one of the tables and not gone there."""

    new: Mapping[str, Document]
    settled: tuple[Settled, ...]
    """Oldest and largest first."""

    def __len__(self) -> int:
        return len(self.new) + sum(map(len, self.settled))

    def holds(self, key: str, document: Document) -> bool:
        """Whether it holds the document exactly so."""
        if key in self.new:
            return self.new[key] == document
        at = self._settled_at(key)
        if at is None:
            return False
        table, place = self.settled[at[0]].table, at[1]
        same_content = table.content_hashes[place] == document.content_hash
        return same_content and table.holds(place, document.keywords)

    def with_(self, key: str, document: Document) -> "Snapshot":
        others = self.without(key)
        return Snapshot({**others.new, key: document}, others.settled)

    def without(self, key: str) -> "Snapshot":
        if key in self.new:
            return Snapshot({k: v for k, v in self.new.items() if k != key}, self.settled)
        at = self._settled_at(key)
        if at is None:
            return self
        number, place = at
        left = self.settled[number].without(place)
        return Snapshot(self.new, (*self.settled[:number], left, *self.settled[number + 1 :]))

    def _settled_at(self, key: str) -> tuple[int, int] | None:
        """Number of the table that holds the document, and its place there."""
        for number, one in enumerate(self.settled):
            place = one.table.place(key)
            if place is not None and not one.gone[place]:
                return number, place
        return None

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
        for key, document in self.new.items():
            for keyword in document.keywords:
                if query.meets(keyword):
                    holders.setdefault(keyword, []).append(key)
                    contents[key] = document.content_hash
        return Found(holders, contents)

    def settle(self) -> "Snapshot":
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
        if not moving:
            return Snapshot({}, settled[:first])
        table = _merged(self.new, settled[first:])
        return Snapshot({}, (*settled[:first], Settled(table, bytes(moving))))


def _merged(new: Mapping[str, Document], settled: Sequence[Settled]) -> KeywordTable:
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
