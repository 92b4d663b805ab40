"""L0: which documents have a keyword that the question contains, or that contains the question."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from kb.folding import fold

__all__ = ["KeywordIndex", "Match", "fold"]

_CJK = re.compile(
    "[\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff]"
)
_ASCII_WORD = re.compile("[0-9A-Za-z]")


@dataclass(frozen=True, slots=True)
class Match:
    """A document that the question matched, by its best keyword."""

    key: str
    keyword: str
    """Folded."""
    whole: bool
    """The question is the keyword."""
    coverage: float
    """Letters and digits of the shorter of question and keyword over those of the longer; of
    all characters where one of the two has none."""


class KeywordIndex:
    """Documents by their keywords; `match` may run while another thread changes the index."""

    def __init__(self) -> None:
        self._documents: dict[str, tuple[tuple[str, ...], str]] = {}
        self._changing = Lock()

    def put(self, key: str, keywords: Sequence[str], content_hash: str) -> None:
        """Add or replace a document; keywords as the author spelled them, blank ones dropped."""
        folded = tuple(dict.fromkeys(filter(None, map(fold, keywords))))
        with self._changing:
            self._documents = {**self._documents, key: (folded, content_hash)}

    def remove(self, key: str) -> None:
        """Remove a document; nothing happens where there is none."""
        with self._changing:
            self._documents = {k: v for k, v in self._documents.items() if k != key}

    def __len__(self) -> int:
        return len(self._documents)

    def match(self, folded: str) -> tuple[Match, ...]:
        """The documents that a folded question matches, best first.

        A document counts with its best keyword: the whole question before a part, then the
        longer, then the one that fewer documents hold; equal ones go by key. Documents of equal
        content hash are one, the one with the smallest key; an empty hash equals no other.
        A blank question matches nothing, one of a single character or of two without a CJK
        character (blanks not counted) only a keyword that equals it: so `x光` is long enough.
        """
        matching = [
            (key, content_hash or (key,), keyword)
            for key, (keywords, content_hash) in self._documents.items()
            for keyword in keywords
            if _matches(folded, keyword)
        ]
        holders: dict[str, set[object]] = {}
        for _, content, keyword in matching:
            holders.setdefault(keyword, set()).add(content)
        smallest: dict[object, str] = {}
        best: dict[str, tuple[bool, int, int, str]] = {}
        for key, content, keyword in matching:
            smallest[content] = min(smallest.get(content, key), key)
            rank = (keyword != folded, -len(keyword), len(holders[keyword]), keyword)
            best[key] = min(best.get(key, rank), rank)
        ranked = sorted((best[key][:3], key) for key in smallest.values())
        return tuple(
            Match(key, best[key][3], not rank[0], _coverage(folded, best[key][3]))
            for rank, key in ranked
        )


def _matches(query: str, keyword: str) -> bool:
    if query == keyword:
        return bool(query)
    if _is_short(query):
        return False
    return _contains(query, keyword) or _contains(keyword, query)


def _is_short(query: str) -> bool:
    length = len(query) - query.count(" ")
    return length < 2 or (length < 3 and not _CJK.search(query))


def _contains(text: str, piece: str) -> bool:
    """Whether `piece` stands in `text`, its ASCII letters and digits not inside a longer word."""
    start = text.find(piece)
    while start >= 0:
        end = start + len(piece)
        before, after = text[start - 1 : start], text[end : end + 1]
        inside_left = _ASCII_WORD.match(piece[0]) and _ASCII_WORD.match(before)
        inside_right = _ASCII_WORD.match(piece[-1]) and _ASCII_WORD.match(after)
        if not inside_left and not inside_right:
            return True
        start = text.find(piece, start + 1)
    return False


def _coverage(query: str, keyword: str) -> float:
    shorter, longer = sorted((query, keyword), key=len)
    letters = sum(map(str.isalnum, shorter)), sum(map(str.isalnum, longer))
    if all(letters):
        return letters[0] / letters[1]
    return len(shorter) / len(longer)
