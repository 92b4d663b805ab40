"""Cut a span of text into the fewest pieces, of even length, at the best bounds there are."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from kb.bounds import NEWLINES, SENTENCE_END, SPACES, Bound, BoundFinder
from kb.characters import is_blank, is_safe_bound
from kb.structure import Structure

CHOICES: Final = 64
"""Beginnings of one piece that are compared at most, so that the work is linear in the text."""


class Piece(NamedTuple):
    """A span of the text, without blanks around it, and what to put in front of it."""

    start: int
    stop: int
    lead: str


class Cutter:
    """Cuts spans of one text whose structure is known."""

    def __init__(self, text: str, structure: Structure) -> None:
        self._text = text
        self._structure = structure
        self._finder = BoundFinder(text, structure)

    def cut(self, start: int, stop: int, *, limit: int, overlap: int, whole: bool) -> list[Piece]:
        """Cut the span into the fewest pieces of at most `limit` characters, lead included.

        `whole`: a heading with its own text is not cut where it fits. Each piece but the first
        has up to `overlap` (at most limit / 2) characters of the text before it in front; one that
        begins among a table's rows has the table's header there instead, unless the header is
        longer than half the limit. Blank pieces are left out.
        """

        def reserve(bound: Bound) -> int:
            is_first = bound.stop <= start
            return len(self._header_at(bound.start, limit)) or (0 if is_first else overlap)

        bounds = self._finder.find(
            start, stop, limit=limit, room=lambda bound: limit - reserve(bound), whole=whole
        )
        chosen = _fewest_and_even(bounds, [reserve(bound) for bound in bounds], limit)
        pieces = []
        for before, after in pairwise(chosen):
            lead = self._header_at(before.start, limit)
            if not lead and before.stop > start:
                lead = self._overlap_before(before, overlap, start)
            if not is_blank(self._text[before.start : after.stop]):
                pieces.append(Piece(before.start, after.stop, lead))
        return pieces

    def _header_at(self, offset: int, limit: int) -> str:
        """The header to repeat before a piece that begins here; "" where there is none."""
        table = self._structure.table_at(offset)
        if table is None or offset < table.rows or table.rows - table.start > limit // 2:
            return ""
        return self._text[table.start : table.rows]

    def _overlap_before(self, bound: Bound, overlap: int, floor: int) -> str:
        """Up to `overlap` characters before the bound, from a sentence, line or word on."""
        start = max(bound.start - overlap, floor)
        if floor < start < bound.stop:
            start = self._nice_start(start, bound.stop, start + overlap // 2)
        table = self._structure.table_at(start)
        if table is not None and start > table.start:
            start = table.end  # rows without their header mean little
        return self._text[start : bound.start] if start < bound.stop else ""

    def _nice_start(self, start: int, stop: int, latest: int) -> int:
        """Where a sentence or line begins up to `latest`, else a word, else any character."""
        before = start - 1  # a sentence or word may begin just here
        for ends in (SENTENCE_END, NEWLINES):
            for found in ends.finditer(self._text, before, latest):
                blanks = SPACES.match(self._text, found.end())
                begin = blanks.end() if blanks else found.end()
                if start <= begin < stop:
                    return begin
        if blanks := SPACES.search(self._text, before, stop):
            return blanks.end()
        return next((p for p in range(start, stop) if is_safe_bound(self._text, p)), stop)


def _fewest_and_even(bounds: Sequence[Bound], leads: Sequence[int], limit: int) -> list[Bound]:
    """The bounds to cut at, both ends included.

    Dynamic programming over the bounds: fewest pieces first, then the smallest sum of costs and
    squared fills, leads not counted. The fewest pieces up to a bound never decrease with the
    bound, so the beginnings worth comparing are one run of bounds.
    """
    size = len(bounds)
    begins = [bound.start - lead for bound, lead in zip(bounds, leads, strict=True)]
    pieces, costs, previous = [0] * size, [0.0] * size, [0] * size
    first_with = [0]
    low = 0
    for end in range(1, size):
        stop = bounds[end].stop
        while low < end - 1 and stop - begins[low] > limit:
            low += 1
        fewest = pieces[low]
        high = min(end, first_with[fewest + 1]) if fewest + 1 < len(first_with) else end
        best = float("inf")
        for begin in _choices(low, high):
            if stop - begins[begin] <= limit:
                cost = costs[begin] + ((stop - bounds[begin].start) / limit) ** 2
                if cost < best:
                    best, previous[end] = cost, begin
        pieces[end] = fewest + 1
        costs[end] = best + bounds[end].cost
        if fewest + 1 == len(first_with):
            first_with.append(end)
    chosen = [size - 1] if bounds else []
    while chosen and chosen[-1]:
        chosen.append(previous[chosen[-1]])
    return [bounds[index] for index in reversed(chosen)]


def _choices(low: int, high: int) -> Iterable[int]:
    step = (high - low) // CHOICES + 1
    return range(low, high) if step == 1 else (*range(low, high, step), high - 1)
