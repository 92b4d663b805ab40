"""Finds, among many keywords, those that meet a query: a compact table that never changes."""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate

from kb.folding import Query, contains, is_word, splits_word

_ANCHOR = re.compile("(?:(?<![0-9A-Za-z])|(?![0-9A-Za-z]))(?=[^\n ][^\n])")
"""Where a query of two characters or more may begin inside a keyword."""

_LONG = 63
"""Keyword length from which one bit stands for all lengths: the last bit of 64."""
_PAIR, _MORE = 1, 2
"""Two characters that are a keyword, or that a longer one begins with."""
_SCANNED = 8
"""Anchors up to which a group is scanned rather than kept sorted."""
_SORTED_BY = 64
"""Characters by which anchors are sorted: beyond them a query is compared with each."""


class KeywordTable:
    """The keywords of a set of documents, in arrays: about 70 bytes a keyword.

    All keywords stand in one text, a line each. Three groupings lead into it, each a pair of
    arrays (where a group begins, its members):

    - homes: keywords by the hash of the whole. Looked up are the stretches of the query between
      two cuts whose first characters begin a keyword of their length;
    - anchors: positions where a query may begin, by the hash of two characters, larger groups
      sorted by what follows. A query inside keywords is one range of its group;
    - holders: documents by keyword.

    A match costs by the length of the query and by what is found, not by the size of the table.
    An automaton (pyahocorasick 2.3.1) for the keywords inside the query alone took 1,080 bytes a
    document at 100,000 documents, and while it was built no other thread ran for 1.3 s.
    """

    __slots__ = (
        "_anchor_groups",
        "_anchored",
        "_anchors",
        "_begun",
        "_counts",
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
        self._counts = array("I", [0]) * len(keys)
        for keyword, document in held:
            self._counts[document] += 1
            pair_ids.append(ids.setdefault(keyword, len(ids)))
            pair_documents.append(document)
        mask = _mask_for(len(ids))
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

    def _note_lengths(self, keywords: Collection[str]) -> None:
        """Which beginnings there are: of two characters, and of three with what lengths."""
        mask = _mask_for(len(keywords))
        self._begun = bytearray(mask + 1)
        self._lengths = array("Q", [0]) * (mask // 2 + 1)
        self._single = frozenset(keyword for keyword in keywords if len(keyword) == 1)
        self._long_lengths = 0
        self._longest = max(map(len, keywords), default=0)
        for keyword in keywords:
            length = len(keyword)
            if length == 2:
                self._begun[hash(keyword) & mask] |= _PAIR
            elif length > 2:
                self._begun[hash(keyword[:2]) & mask] |= _MORE
                self._lengths[hash(keyword[:3]) & mask >> 1] |= 1 << min(length, _LONG)
                self._long_lengths |= 1 << length if length >= _LONG else 0

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
        offsets = self._offsets
        self._anchored = array("I", (bisect_right(offsets, at) - 1 for at in anchors))

    def place(self, key: str) -> int | None:
        """The place of a document in `keys`."""
        place = bisect_left(self.keys, key)
        return place if self.keys[place : place + 1] == [key] else None

    def holds(self, place: int, keywords: Collection[str]) -> bool:
        """Whether the document at a place has these keywords and no others."""
        return self._counts[place] == len(keywords) and all(
            any(place in holders for _, holders in self._held_at(self._places_of({keyword})))
            for keyword in keywords
        )

    def held(self) -> Iterator[tuple[str, "array[int]"]]:
        """Every keyword with the documents that hold it, by their place in `keys`."""
        return self._held_at(range(len(self._offsets) - 1))

    def find(self, query: Query) -> Iterator[tuple[str, "array[int]"]]:
        """The keywords that meet the query, each once, with the documents that hold it."""
        if query.is_short:
            return self._held_at(self._places_of({query.text}))
        inside = self._inside(query)
        if len(query.text) > self._longest:
            return self._held_at(inside)
        return self._held_at(inside | self._around(query.text))

    def _held_at(self, places: Iterable[int]) -> Iterator[tuple[str, "array[int]"]]:
        text, offsets = self._text, self._offsets
        holders, groups = self._holders, self._holder_groups
        for place in places:
            yield (
                text[offsets[place] : offsets[place + 1] - 1],
                holders[groups[place] : groups[place + 1]],
            )

    def _inside(self, query: Query) -> set[int]:
        """Keywords that the query contains."""
        text, cuts, begun, lengths = query.text, query.cuts, self._begun, self._lengths
        mask, lengths_mask = len(begun) - 1, len(lengths) - 1
        stretches = {one for one in self._single & query.characters if contains(text, one)}
        begins = [
            (start, kinds)
            for start, gram in zip(query.starts, query.grams, strict=True)
            if (kinds := begun[gram & mask])
        ]
        for start, kinds in begins:
            if kinds & _PAIR and cuts >> start & 4:
                stretches.add(text[start : start + 2])
            if kinds & _MORE:
                known = lengths[hash(text[start : start + 3]) & lengths_mask]
                if known >> _LONG:
                    known = known ^ 1 << _LONG | self._long_lengths
                known &= cuts >> start
                while known:
                    length = known.bit_length() - 1
                    stretches.add(text[start : start + length])
                    known ^= 1 << length
        return self._places_of(stretches)

    def _around(self, query: str) -> set[int]:
        """Keywords that contain the query."""
        text, anchors, size = self._text, self._anchors, len(query)
        group = hash(query[:2]) & len(self._anchor_groups) - 2
        begin, end = self._anchor_groups[group], self._anchor_groups[group + 1]
        is_sorted = end - begin > _SCANNED
        if is_sorted:
            head = query[:_SORTED_BY]
            width = len(head)
            begin = bisect_left(anchors, head, begin, end, key=lambda at: text[at : at + width])
            end = bisect_right(anchors, head, begin, end, key=lambda at: text[at : at + width])
        places = self._anchored[begin:end]
        if is_sorted and size <= _SORTED_BY and not is_word(query[-1]):
            return set(places)
        return {
            place
            for place, at in zip(places, anchors[begin:end], strict=True)
            if text.startswith(query, at) and not splits_word(text, at + size)
        }

    def _places_of(self, words: Iterable[str]) -> set[int]:
        text, offsets = self._text, self._offsets
        homes, mask = self._homes, len(self._homes) - 2
        found = set()
        for word in words:
            home = hash(word) & mask
            for place in range(homes[home], homes[home + 1]):
                if text[offsets[place] : offsets[place + 1] - 1] == word:
                    found.add(place)
        return found


def _mask_for(groups: int) -> int:
    return (1 << max(groups, 1).bit_length()) - 1


def _grouped(groups: "array[int]", count: int) -> tuple["array[int]", "array[int]"]:
    """Where each of `count` groups begins (and the last ends), and the members in that order.

    A counting sort, in steps that let other threads run.
    """
    begins = array("I", [0]) * (count + 1)
    for group in groups:
        begins[group + 1] += 1
    begins = array("I", accumulate(begins))
    free = array("I", begins)
    members = array("I", [0]) * len(groups)
    for member, group in enumerate(groups):
        members[free[group]] = member
        free[group] += 1
    return begins, members
