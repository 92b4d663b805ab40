"""Where a text may be cut, and what a cut there costs: coarse bounds first, finer where needed."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from kb.characters import is_safe_bound
from kb.structure import Structure

# Costs are in the unit of a piece's squared fill (0..1). A cut inside a paragraph pays where it
# saves a neighbour from being a tail of less than about a third of the limit.
SECTION_PER_LEVEL: Final = 0.003
PARAGRAPH: Final = 0.02
LINE_AFTER_SENTENCE: Final = 0.05
LINE: Final = 0.08
SENTENCE: Final = 0.1
LINE_OF_CODE: Final = 0.15
BLANK: Final = 0.3
AFTER_LONE_HEADING: Final = 0.5
ANYWHERE: Final = 0.6

FINE: Final = 4
"""What is longer than 1/4 of the limit may be cut at lines and sentences to even the pieces."""
GRAIN: Final = 32
"""Bounds of one kind nearer to each other than 1/32 of the limit count as one."""
INDENT: Final = 40
"""Blanks in front of a piece's first line that are kept at most."""

SPACES: Final = re.compile(r"\s+")
NEWLINES: Final = re.compile(r"\n\s*")
SENTENCE_END: Final = re.compile(r"""[。！？；]+["'”’」』）)\]》】]*|[.!?]+["'”’)\]]*(?=\s)""")
_SENTENCE_ENDS: Final = frozenset("。！？；.!?")


class Bound(NamedTuple):
    """A place to cut: the text before it ends at `stop`, the text after it begins at `start`."""

    stop: int
    start: int
    cost: float


class BoundFinder:
    """Finds the bounds in spans of one text."""

    def __init__(self, text: str, structure: Structure) -> None:
        self._text = text
        self._structure = structure
        self._headings = [heading.start for heading in structure.headings]
        blocks = structure.blocks
        nexts = (bisect_left(blocks, heading.text_start) for heading in structure.headings)
        self._after_headings = {blocks[index] for index in nexts if index < len(blocks)}

    def find(
        self, start: int, stop: int, *, limit: int, room: Callable[[Bound], int], whole: bool
    ) -> list[Bound]:
        """The bounds of a span in order, both ends included; [] where it is blank.

        Neighbours are never farther from each other than `room` of the first of them; bounds
        inside words or sentences are there only where this asks for them. `whole`: headings with
        their own text get none inside where they fit into the limit. No bound parts a heading
        from its text.
        """
        first = Bound(start, self._text_start(start, stop), 0)
        last = Bound(self._text_end(stop, start), stop, 0)
        if last.stop <= first.start:
            return []
        bounds = [first]
        for before, after in pairwise([first, *self._sections(first, last, whole), last]):
            if whole and after.stop - before.start <= room(before):
                bounds.append(after)
            else:
                bounds += self._finer(before, after, limit, room)
        return bounds

    def _finer(
        self, before: Bound, after: Bound, limit: int, room: Callable[[Bound], int]
    ) -> list[Bound]:
        """The bounds after `before` up to `after`."""
        spacing = limit // GRAIN
        bounds = _refine([before, after], self._blocks, 0, spacing)
        bounds = _refine(bounds, self._lines, limit // FINE, spacing)
        bounds = _refine(bounds, self._sentences(room), limit // FINE, spacing)
        bounds = _refine(bounds, self._words, room, spacing)
        return _refine(bounds, self._anywhere(limit), room, 0)[1:]

    def _sections(self, before: Bound, after: Bound, whole: bool) -> Iterator[Bound]:
        low = bisect_right(self._headings, before.start)
        high = bisect_left(self._headings, after.stop, lo=low)
        for heading in self._structure.headings[low:high]:
            lone = heading.start in self._after_headings
            if whole or not lone:
                cost = AFTER_LONE_HEADING if lone else SECTION_PER_LEVEL * heading.level
                yield self._at_line(heading.start, cost, before, after)

    def _blocks(self, before: Bound, after: Bound) -> Iterator[Bound]:
        blocks = self._structure.blocks
        low = bisect_right(blocks, before.start)
        for offset in blocks[low : bisect_left(blocks, after.stop, lo=low)]:
            if offset not in self._after_headings:
                yield self._at_line(offset, PARAGRAPH, before, after)

    def _at_line(self, offset: int, cost: float, before: Bound, after: Bound) -> Bound:
        stop = self._text_end(offset, before.start)
        return Bound(stop, self._text_start(offset, after.stop), cost)

    def _lines(self, before: Bound, after: Bound) -> Iterator[Bound]:
        for newline in NEWLINES.finditer(self._text, before.start, after.stop):
            stop = self._text_end(newline.start(), before.start)
            start = self._text_start(newline.start(), after.stop)
            if stop > before.start and self._may_begin(start):
                yield Bound(stop, start, self._line_cost(stop, start))

    def _line_cost(self, stop: int, start: int) -> float:
        if self._structure.is_verbatim(start):
            return LINE if self._text.count("\n", stop, start) > 1 else LINE_OF_CODE
        return LINE_AFTER_SENTENCE if self._text[stop - 1] in _SENTENCE_ENDS else LINE

    def _may_begin(self, start: int) -> bool:
        """Whether text may begin here: not a heading's own, nor a table without its header."""
        table = self._structure.table_at(start)
        inside_header = table is not None and table.start < start <= table.rows
        return start not in self._after_headings and not inside_header

    def _sentences(self, room: Callable[[Bound], int]) -> "_Finder":
        def find(before: Bound, after: Bound) -> Iterator[Bound]:
            fits = after.stop - before.start <= room(before)
            if fits and self._structure.is_verbatim(before.start):
                return
            for sentence in SENTENCE_END.finditer(self._text, before.start, after.stop):
                stop = sentence.end()
                space = SPACES.match(self._text, stop)
                start = space.end() if space else stop
                if stop < after.stop and start not in self._after_headings:
                    yield Bound(stop, start, SENTENCE)

        return find

    def _words(self, before: Bound, after: Bound) -> Iterator[Bound]:
        for space in SPACES.finditer(self._text, before.start, after.stop):
            if space.start() > before.start:
                yield Bound(space.start(), space.end(), BLANK)

    def _anywhere(self, limit: int) -> "_Finder":
        def find(before: Bound, after: Bound) -> Iterator[Bound]:
            last = before.start
            for step in range(1, (after.stop - before.start) * GRAIN // limit + 2):
                # 32 steps are exactly the limit, so that a full piece is possible.
                position = before.start + step * limit // GRAIN
                candidates = range(position, last, -1)
                safe = next((p for p in candidates if is_safe_bound(self._text, p)), position)
                if safe < after.stop:
                    yield Bound(safe, safe, ANYWHERE)
                last = safe

        return find

    def _text_end(self, position: int, floor: int) -> int:
        while position > floor and self._text[position - 1].isspace():
            position -= 1
        return position

    def _text_start(self, position: int, stop: int) -> int:
        """The first character that is not blank, or its line's start where that is near."""
        blanks = SPACES.match(self._text, position, stop)
        if blanks is None:
            return position
        newline = self._text.rfind("\n", position, blanks.end())
        at_line_start = newline >= 0 or position == 0 or self._text[position - 1] == "\n"
        line = newline + 1 if newline >= 0 else position
        return line if at_line_start and blanks.end() - line <= INDENT else blanks.end()


_Finder = Callable[[Bound, Bound], Iterable[Bound]]


def _refine(
    bounds: Sequence[Bound], find: _Finder, most: int | Callable[[Bound], int], spacing: int
) -> list[Bound]:
    """Add finer bounds between those that are farther from each other than `most`."""
    refined = [bounds[0]]
    for before, after in pairwise(bounds):
        gap = after.stop - before.start
        if gap > (most if isinstance(most, int) else most(before)):
            refined.extend(_thinned(find(before, after), before.start, spacing))
        refined.append(after)
    return refined


def _thinned(bounds: Iterable[Bound], last: int, spacing: int) -> Iterator[Bound]:
    """Of bounds within `spacing` of each other the last."""
    held: Bound | None = None
    for bound in bounds:
        if held and bound.start - last > spacing:
            yield held
            last, held = held.start, None
        if bound.start - last > spacing:
            yield bound
            last = bound.start
        else:
            held = bound
    if held:
        yield held
