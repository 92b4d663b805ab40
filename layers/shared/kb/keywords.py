"""L0: the documents with a keyword that the query contains, or that contains the query.

A change is visible at the next match, and no match waits for one: all that a match reads is one
snapshot, which never changes and is replaced whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

from kb.folding import Query, fold
from kb.keyword_snapshot import Document, Snapshot

__all__ = ["KeywordIndex", "Match", "fold"]


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
        self._snapshot = Snapshot({}, ())
        self._changing = Lock()
        self.put_all(documents)

    def put(self, key: str, keywords: Sequence[str], content_hash: str) -> None:
        """Add or replace a document.

        `keywords` are as the author spelled them; what is blank after folding is dropped. An
        empty `content_hash` equals no other.
        """
        self.put_all([(key, keywords, content_hash)])

    def put_all(self, documents: Iterable[tuple[str, Sequence[str], str]]) -> None:
        """Put many, of one key the last, all visible at once; ten times faster than one by one."""
        folded = {key: Document.of(key, words, content) for key, words, content in documents}
        with self._changing:
            self._snapshot = self._snapshot.having(folded)

    def remove(self, key: str) -> None:
        """Remove a document; where there is none nothing happens."""
        with self._changing:
            self._snapshot = self._snapshot.without(key)

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
        found = self._snapshot.find(Query(folded))
        return _ranked(folded, found.without_copies())


def _ranked(query: str, holders: Mapping[str, Sequence[str]]) -> tuple[Match, ...]:
    alike: dict[tuple[bool, int, int], list[str]] = {}
    for keyword, keys in holders.items():
        alike.setdefault((keyword != query, -len(keyword), len(keys)), []).append(keyword)
    letters = _letters(query)
    matches: list[Match] = []
    ranked: set[str] = set()
    for rank in sorted(alike):
        whole = not rank[0]
        best: dict[str, tuple[str, float]] = {}
        for keyword in sorted(alike[rank], reverse=True):
            named = keyword, _share(letters, _letters(keyword)) or _share(len(query), len(keyword))
            for key in holders[keyword]:
                best[key] = named
        for key in sorted(best.keys() - ranked) if ranked else sorted(best):
            keyword, coverage = best[key]
            matches.append(Match(key, keyword, whole, coverage))
        ranked.update(best)
    return tuple(matches)


def _share(one: int, other: int) -> float:
    """The smaller number over the larger; 0 where one is 0."""
    return min(one, other) / max(one, other, 1)


def _letters(text: str) -> int:
    return len(text) if text.isalnum() else sum(map(str.isalnum, text))
