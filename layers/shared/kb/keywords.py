"""L0: the documents with a keyword that the query contains, or that contains the query.

A change is visible at the next match, and no match waits for one: all that a match reads is one
snapshot that never changes and is replaced whole. New documents are few and compared one by
one; when they are more, they are settled in a table, and small tables in a larger one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

from kb.folding import fold
from kb.keyword_table import KeywordTable, Query

__all__ = ["KeywordIndex", "Match", "fold"]

_NEW_AT_MOST = 32
"""Documents compared one by one: about a microsecond each in every match."""
_GROWTH = 4
"""How many times larger than all newer tables together a table is, else it is merged with them:
a larger number means fewer tables to search and more merging."""

_Found = dict[str, list[tuple[str, str]]]
"""By keyword: key and content hash of the documents that hold it."""


@dataclass(frozen=True, slots=True)
class Match:
    """A document that the query matched, by its best keyword."""

    key: str
    keyword: str
    """Folded."""
    whole: bool
    """The query is the keyword."""
    coverage: float
    """Letters and digits of the shorter of query and keyword over those of the longer; all
    characters count where one of the two has no letter or digit."""


class KeywordIndex:
    """Documents by their keywords; other threads may match while one changes the index."""

    def __init__(self, documents: Iterable[tuple[str, Sequence[str], str]] = ()) -> None:
        """`documents` are what `put` takes, later ones replacing earlier; much faster than it."""
        new = {key: _Document.folded(words, content) for key, words, content in documents}
        self._snapshot = _Snapshot(new, ()).settle()
        self._changing = Lock()

    def put(self, key: str, keywords: Sequence[str], content_hash: str) -> None:
        """Add or replace a document.

        `keywords` are as the author spelled them; what is blank after folding is dropped. An
        empty `content_hash` equals no other.
        """
        document = _Document.folded(keywords, content_hash)
        with self._changing:
            others = self._snapshot.without(key)
            self._snapshot = _Snapshot({**others.new, key: document}, others.settled)
            self._snapshot = self._snapshot.settle()

    def remove(self, key: str) -> None:
        """Remove a document; where there is none nothing happens."""
        with self._changing:
            self._snapshot = self._snapshot.without(key)
            self._snapshot = self._snapshot.settle()

    def __len__(self) -> int:
        return len(self._snapshot)

    def match(self, folded: str) -> tuple[Match, ...]:
        """The documents that a folded query matches, best first.

        A document counts with its best keyword: the whole query before a part, then the longer,
        then the one that fewer documents hold; equal documents go by key. Documents of equal
        content are one, the one with the smallest key. A blank query matches nothing; one of a
        single character, or of two without a CJK character (blanks not counted: `x光` is long
        enough, `k8` is not), only a keyword that equals it.
        """
        return _ranked(folded, self._snapshot.find(Query(folded)))


def _ranked(query: str, found: _Found) -> tuple[Match, ...]:
    alike: dict[tuple[bool, int, int], list[str]] = {}
    smallest: dict[str, str] = {}
    for keyword, holders in found.items():
        contents = {content_hash or (key,) for key, content_hash in holders}
        alike.setdefault((keyword != query, -len(keyword), len(contents)), []).append(keyword)
        for key, content_hash in holders:
            if content_hash:
                smallest[content_hash] = min(key, smallest.get(content_hash, key))
    matches: list[Match] = []
    ranked: set[str] = set()
    for rank in sorted(alike):
        best: dict[str, tuple[str, float]] = {}
        for keyword in sorted(alike[rank]):
            named = keyword, _coverage(query, keyword)
            for key, content_hash in found[keyword]:
                if key not in ranked and smallest.get(content_hash, key) == key:
                    best.setdefault(key, named)
        whole = not rank[0]
        matches += (Match(key, best[key][0], whole, best[key][1]) for key in sorted(best))
        ranked.update(best)
    return tuple(matches)


def _coverage(query: str, keyword: str) -> float:
    shorter, longer = sorted((query, keyword), key=len)
    part, whole = sum(map(str.isalnum, shorter)), sum(map(str.isalnum, longer))
    return part / whole if part and whole else len(shorter) / len(longer)


@dataclass(frozen=True, slots=True)
class _Document:
    keywords: tuple[str, ...]
    """Folded, none blank, none twice."""
    content_hash: str

    @classmethod
    def folded(cls, keywords: Sequence[str], content_hash: str) -> "_Document":
        return cls(tuple(dict.fromkeys(filter(None, map(fold, keywords)))), content_hash)


@dataclass(frozen=True, slots=True)
class _Settled:
    """A table, of which some documents were removed or replaced since."""

    table: KeywordTable
    gone: bytes
    """For each document 1 if it was, else 0."""

    def __len__(self) -> int:
        return self.gone.count(0)

    def without(self, place: int) -> "_Settled":
        gone = bytearray(self.gone)
        gone[place] = 1
        return _Settled(self.table, bytes(gone))

    def documents(self) -> Iterator[tuple[str, str]]:
        """Key and content hash of those not gone."""
        for key, content_hash, gone in zip(
            self.table.keys, self.table.content_hashes, self.gone, strict=True
        ):
            if not gone:
                yield key, content_hash


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """Every document once: in `new`, or in one of the tables and not gone there."""

    new: Mapping[str, _Document]
    settled: tuple[_Settled, ...]
    """Oldest and largest first."""

    def __len__(self) -> int:
        return len(self.new) + sum(map(len, self.settled))

    def without(self, key: str) -> "_Snapshot":
        if key in self.new:
            return _Snapshot({k: v for k, v in self.new.items() if k != key}, self.settled)
        for number, one in enumerate(self.settled):
            place = one.table.place(key)
            if place is not None and not one.gone[place]:
                newer = self.settled[number + 1 :]
                return _Snapshot(self.new, (*self.settled[:number], one.without(place), *newer))
        return self

    def find(self, query: Query) -> _Found:
        found: _Found = {}
        for one in self.settled:
            keys, content_hashes, gone = one.table.keys, one.table.content_hashes, one.gone
            for keyword, places in one.table.find(query):
                holders = [(keys[at], content_hashes[at]) for at in places if not gone[at]]
                if holders:
                    found.setdefault(keyword, []).extend(holders)
        for key, document in self.new.items():
            for keyword in document.keywords:
                if query.meets(keyword):
                    found.setdefault(keyword, []).append((key, document.content_hash))
        return found

    def settle(self) -> "_Snapshot":
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
            return _Snapshot({}, settled[:first])
        table = _merged(self.new, settled[first:])
        return _Snapshot({}, (*settled[:first], _Settled(table, bytes(moving))))


def _merged(new: Mapping[str, _Document], settled: Sequence[_Settled]) -> KeywordTable:
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
