"""Finds, among many keywords, those that meet a query: a compact table that never changes."""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, compress
from operator import add

_CJK = re.compile(
    "[\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff]"
)
_WORD = re.compile("[0-9A-Za-z]+")
_ANCHOR = re.compile("(?:(?<![0-9A-Za-z])|(?![0-9A-Za-z]))(?=[^\n ][^\n])")
"""Where a query of two characters or more may begin inside a keyword."""

_LONG = 63
"""Keyword length from which one bit stands for all lengths: the last bit of 64."""
_SCANNED = 8
"""Anchors up to which a group is scanned rather than kept sorted."""
_SORTED_BY = 64
"""Characters by which anchors are sorted: beyond them a query is compared with each."""

_BITS = bytes.maketrans(b"\0\1", b"01")


class Query:
    """A folded query, with what every table asks of it worked out once.

    A cut is a position with no two ASCII letters or digits at its sides, 0 and the end
    included: a keyword inside the query, or the query inside a keyword, lies between two cuts.
    """

    __slots__ = ("characters", "cuts", "grams", "is_short", "starts", "text")

    def __init__(self, folded: str) -> None:
        self.text = folded
        """A blank query, one of a single character, or one of two without a CJK character
        (blanks not counted) meets only the keyword that equals it."""
        self.is_short = _is_short(folded)
        cuts = bytearray(b"\1") * (len(folded) + 1)
        for word in _WORD.finditer(folded):
            cuts[word.start() + 1 : word.end()] = bytes(word.end() - word.start() - 1)
        self.cuts = int(cuts[::-1].translate(_BITS), 2)
        self.starts = tuple(compress(range(len(folded) - 1), cuts))
        self.grams = tuple(compress(map(hash, map(add, folded, folded[1:])), cuts))
        self.characters = frozenset(folded)

    def meets(self, keyword: str) -> bool:
        """Whether the query is the keyword, contains it, or is contained in it."""
        if self.is_short or self.text == keyword:
            return self.text == keyword
        if keyword in self.text:
            return contains(self.text, keyword)
        return self.text in keyword and contains(keyword, self.text)


def _is_short(folded: str) -> bool:
    length = len(folded) - folded.count(" ")
    return length < 2 or (length < 3 and not _CJK.search(folded))


def contains(text: str, piece: str) -> bool:
    """Whether `piece` stands in `text`, its ASCII letters and digits not inside a longer word."""
    start = text.find(piece)
    while start >= 0:
        end = start + len(piece)
        if not _splits_word(text, start) and not _splits_word(text, end):
            return True
        start = text.find(piece, start + 1)
    return False


def _splits_word(text: str, position: int) -> bool:
    around = text[position - 1 : position + 1] if position else ""
    return len(around) == 2 and around.isascii() and around.isalnum()


class KeywordTable:
    """The keywords of a set of documents, in arrays: about 60 bytes a keyword.

    All keywords stand in one text, a line each. Three groupings lead into it, each a pair of
    arrays (where a group begins, its members):

    - homes: keywords by the hash of the whole. A keyword inside the query is looked up by every
      stretch between two cuts whose first two characters begin a keyword of that length;
    - anchors: positions where a query may begin, by the hash of two characters, larger groups
      sorted by what follows. A query inside keywords is one range of its group;
    - holders: documents by keyword.

    Worst cases are those of the sizes found, not of the table's: no long group is scanned.
    """

    __slots__ = (
        "_anchor_groups",
        "_anchors",
        "_holder_groups",
        "_holders",
        "_homes",
        "_lengths",
        "_long_lengths",
        "_longest",
        "_offsets",
        "_single",
        "_text",
        "content_hashes",
        "keys",
    )

    def __init__(
        self, keys: list[str], content_hashes: list[str], held: Iterable[tuple[str, int]]
    ) -> None:
        """`keys` are sorted; `held` pairs a keyword with a document, by its place in `keys`."""
        self.keys = keys
        self.content_hashes = content_hashes
        ids: dict[str, int] = {}
        pair_ids, pair_documents = array("I"), array("I")
        for keyword, document in held:
            pair_ids.append(ids.setdefault(keyword, len(ids)))
            pair_documents.append(document)
        mask = _mask_for(len(ids) // 2)
        self._homes, order = _grouped(array("I", (hash(word) & mask for word in ids)), mask + 1)
        self._write(list(ids), order)
        places = array("I", order)
        for place, keyword_id in enumerate(order):
            places[keyword_id] = place
        pair_places = array("I", (places[keyword_id] for keyword_id in pair_ids))
        self._holder_groups, order = _grouped(pair_places, len(ids))
        self._holders = array("I", (pair_documents[pair] for pair in order))
        self._note_lengths(ids)
        self._anchor()

    def _write(self, keywords: Sequence[str], order: Iterable[int]) -> None:
        ordered = [keywords[place] for place in order]
        self._text = "".join(f"{keyword}\n" for keyword in ordered)
        self._offsets = array("I", accumulate((len(word) + 1 for word in ordered), initial=0))

    def _note_lengths(self, keywords: Iterable[str]) -> None:
        mask = _mask_for(len(self._offsets) // 2)
        self._lengths = array("Q", bytes(8 * (mask + 1)))
        self._single = frozenset(keyword for keyword in keywords if len(keyword) == 1)
        self._long_lengths = 0
        self._longest = 0
        for keyword in keywords:
            length = len(keyword)
            if length > 1:
                self._lengths[hash(keyword[:2]) & mask] |= 1 << min(length, _LONG)
            if length >= _LONG:
                self._long_lengths |= 1 << length
            self._longest = max(self._longest, length)

    def _anchor(self) -> None:
        text = self._text
        positions = array("I", (found.start() for found in _ANCHOR.finditer(text)))
        mask = _mask_for(len(positions) // 4)
        grams = array("I", (hash(text[at : at + 2]) & mask for at in positions))
        self._anchor_groups, order = _grouped(grams, mask + 1)
        self._anchors = anchors = array("I", (positions[place] for place in order))
        begin = 0
        for end in self._anchor_groups:
            if end - begin > _SCANNED:
                group = sorted(anchors[begin:end], key=lambda at: text[at : at + _SORTED_BY])
                anchors[begin:end] = array("I", group)
            begin = end

    def place(self, key: str) -> int | None:
        """The place of a document in `keys`."""
        place = bisect_left(self.keys, key)
        return place if self.keys[place : place + 1] == [key] else None

    def held(self) -> Iterator[tuple[str, "array[int]"]]:
        """Every keyword with the documents that hold it, by their place in `keys`."""
        for place in range(len(self._offsets) - 1):
            yield self._keyword(place), self._documents(place)

    def find(self, query: Query) -> Iterator[tuple[str, "array[int]"]]:
        """The keywords that meet the query, each once, with the documents that hold it."""
        if query.is_short:
            whole = self._place_of(query.text)
            places = set() if whole is None else {whole}
        else:
            places = self._inside(query)
            if len(query.text) <= self._longest:
                places |= self._around(query.text)
        for place in places:
            yield self._keyword(place), self._documents(place)

    def _inside(self, query: Query) -> set[int]:
        """Keywords that the query contains."""
        text, cuts, lengths = query.text, query.cuts, self._lengths
        mask = len(lengths) - 1
        stretches = [one for one in self._single & query.characters if contains(text, one)]
        begun = [
            (start, known)
            for start, gram in zip(query.starts, query.grams, strict=True)
            if (known := lengths[gram & mask])
        ]
        for start, known in begun:
            if known >> _LONG:
                known = known ^ 1 << _LONG | self._long_lengths
            known &= cuts >> start
            while known:
                lowest = known & -known
                stretches.append(text[start : start + lowest.bit_length() - 1])
                known ^= lowest
        found = map(self._place_of, stretches)
        return {place for place in found if place is not None}

    def _around(self, query: str) -> set[int]:
        """Keywords that contain the query."""
        text, anchors, size = self._text, self._anchors, len(query)
        group = hash(query[:2]) & len(self._anchor_groups) - 2
        begin, end = self._anchor_groups[group], self._anchor_groups[group + 1]
        if end - begin > _SCANNED:
            head = query[:_SORTED_BY]
            width = len(head)
            begin = bisect_left(anchors, head, begin, end, key=lambda at: text[at : at + width])
            end = bisect_right(anchors, head, begin, end, key=lambda at: text[at : at + width])
        return {
            bisect_right(self._offsets, at) - 1
            for at in anchors[begin:end]
            if text.startswith(query, at) and not _splits_word(text, at + size)
        }

    def _place_of(self, keyword: str) -> int | None:
        line = keyword + "\n"
        home = hash(keyword) & len(self._homes) - 2
        for place in range(self._homes[home], self._homes[home + 1]):
            if self._text.startswith(line, self._offsets[place]):
                return place
        return None

    def _keyword(self, place: int) -> str:
        return self._text[self._offsets[place] : self._offsets[place + 1] - 1]

    def _documents(self, place: int) -> "array[int]":
        return self._holders[self._holder_groups[place] : self._holder_groups[place + 1]]


def _mask_for(groups: int) -> int:
    return (1 << max(groups, 1).bit_length()) - 1


def _grouped(groups: "array[int]", count: int) -> tuple["array[int]", "array[int]"]:
    """Where each of `count` groups begins (and the last ends), and the members in that order.

    A counting sort, in steps that let other threads run.
    """
    begins = array("I", bytes(4 * (count + 1)))
    for group in groups:
        begins[group + 1] += 1
    begins = array("I", accumulate(begins))
    free = array("I", begins)
    members = array("I", bytes(4 * len(groups)))
    for member, group in enumerate(groups):
        members[free[group]] = member
        free[group] += 1
    return begins, members
