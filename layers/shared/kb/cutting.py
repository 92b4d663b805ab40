"""Cut a span of text into the fewest pieces, of even length, at the best bounds there are."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from kb.characters import is_blank, is_safe_bound
from kb.structure import Structure, Table

# What a cut costs beside the squared fill (0..1) of the pieces. A cut inside a paragraph pays
# where it saves a neighbour from being a tail of less than about a third of the limit.
SECTION: Final = 0.0
PARAGRAPH: Final = 0.02
LINE_AFTER_SENTENCE: Final = 0.05
LINE: Final = 0.08
SENTENCE: Final = 0.1
BLANK: Final = 0.3
AFTER_HEADING: Final = 0.5
ANYWHERE: Final = 0.6

_FINE: Final = 4
"""Paragraphs longer than 1/4 of the limit may be cut for the sake of even pieces."""
_GRAIN: Final = 32
"""Finer bounds nearer to each other than 1/32 of the limit count as one."""
_CHOICES: Final = 128
"""Beginnings of a piece that are compared at most: keeps the work linear in the text."""
_INDENT: Final = 40
"""Blanks in front of a piece's first line that are kept at most."""

_SPACES: Final = re.compile(r"\s+")
_NEWLINES: Final = re.compile(r"\n\s*")
_SENTENCE: Final = re.compile(r"[。！？；]+[\"'”’」』）)\]》】]*|[.!?]+[\"'”’)\]]*(?=\s)")
_ENDS: Final = frozenset("。！？；.!?")


class Piece(NamedTuple):
    """A span of the text, without blanks around it, and what to put in front of it."""

    start: int
    stop: int
    lead: str


class _Bound(NamedTuple):
    """A place to cut: the text before it ends at `stop`, the text after it begins at `start`."""

    stop: int
    start: int
    cost: float


_Finer = Callable[[_Bound, _Bound], Iterable[_Bound]]


class Cutter:
    """Cuts spans of one text whose structure is known."""

    def __init__(self, text: str, structure: Structure) -> None:
        self._text = text
        self._structure = structure
        self._headings = [heading.start for heading in structure.headings]
        firsts = (bisect_left(structure.blocks, h.text_start) for h in structure.headings)
        self._after_heading = {structure.blocks[i] for i in firsts if i < len(structure.blocks)}

    def cut(self, start: int, stop: int, *, limit: int, overlap: int, whole: bool) -> list[Piece]:
        """Cut the span into the fewest pieces of at most `limit` characters, lead included.

        `whole`: a heading with its own text is not cut where it fits. Each piece but the first
        has up to `overlap` (at most limit / 2) characters of the text before it in front; one that
        begins among a table's rows has the table's header there instead, unless the header is
        longer than half the limit. Blank pieces are left out.
        """
        first = _Bound(start, self._skip_blanks(start, start, stop), SECTION)
        last = _Bound(self._end_before(stop, start), stop, SECTION)
        if last.stop <= first.start:
            return []
        task = _Task(self, first, limit, overlap)
        bounds = task.refine([first, last], self._sections, lambda _: 0, grain=0)
        bounds = task.refine(bounds, self._blocks, (lambda _: limit) if whole else (lambda _: 0))
        bounds = task.refine(bounds, self._lines, lambda _: limit // _FINE)
        bounds = task.refine(bounds, self._sentences(task), lambda _: limit // _FINE)
        bounds = task.refine(bounds, self._words, task.room)
        bounds = task.refine(bounds, self._anywhere(limit), task.room)
        leads = [task.lead_length(bound) for bound in bounds]
        pieces = []
        for before, after in pairwise(_fewest_and_even(bounds, leads, limit)):
            begin, end = bounds[before].start, bounds[after].stop
            if not is_blank(self._text[begin:end]):
                pieces.append(Piece(begin, end, task.lead(bounds[before])))
        return pieces

    def header_at(self, offset: int, limit: int) -> str:
        """The header to repeat before a piece that begins here; "" where there is none."""
        table = self._structure.table_around(offset)
        if table is None or table.rows - table.start > limit // 2:
            return ""
        return self._text[table.start : table.rows]

    def overlap_before(self, bound: _Bound, overlap: int, floor: int) -> str:
        """Up to `overlap` characters before the bound, from a sentence, line or word on."""
        start = max(bound.start - overlap, floor)
        if start >= bound.stop:
            return ""
        if start > floor:
            start = self._overlap_start(start, bound.stop, start + overlap // 2)
        for table in self._tables_near(start):
            if table.start < start < table.end:
                start = table.end
        return self._text[start : bound.start] if start < bound.stop else ""

    def _overlap_start(self, start: int, stop: int, best_until: int) -> int:
        nice = [m.end() for m in _SENTENCE.finditer(self._text, start, stop)]
        nice += [m.end() for m in _NEWLINES.finditer(self._text, start, stop)]
        nice = [self._skip_blanks(end, end, stop) for end in nice]
        if nice and min(nice) <= best_until:
            return min(nice)
        if word := _SPACES.search(self._text, start, stop):
            return word.end()
        while start < stop and not is_safe_bound(self._text, start):
            start += 1
        return start

    def _tables_near(self, offset: int) -> Sequence[Table]:
        tables = self._structure.tables
        index = bisect_right(tables, offset, key=lambda table: table.start) - 1
        return tables[max(index, 0) : index + 1]

    def _sections(self, before: _Bound, after: _Bound) -> Iterator[_Bound]:
        yield from self._at_lines(self._headings, SECTION, before, after)

    def _blocks(self, before: _Bound, after: _Bound) -> Iterator[_Bound]:
        yield from self._at_lines(self._structure.blocks, PARAGRAPH, before, after)

    def _at_lines(
        self, offsets: Sequence[int], cost: float, before: _Bound, after: _Bound
    ) -> Iterator[_Bound]:
        low = bisect_right(offsets, before.start)
        high = bisect_left(offsets, after.stop, lo=low)
        for offset in offsets[low:high]:
            lone = offset in self._after_heading
            stop = self._end_before(offset, before.start)
            if stop > before.start:
                yield _Bound(
                    stop,
                    self._skip_blanks(offset, offset, after.stop),
                    AFTER_HEADING if lone else cost,
                )

    def _lines(self, before: _Bound, after: _Bound) -> Iterator[_Bound]:
        for match in _NEWLINES.finditer(self._text, before.start, after.stop):
            stop = self._end_before(match.start(), before.start)
            start = self._skip_blanks(match.start(), match.start(), after.stop)
            if before.start < stop and not self._in_header(start):
                ends = self._text[stop - 1] in _ENDS
                yield _Bound(stop, start, LINE_AFTER_SENTENCE if ends else LINE)

    def _in_header(self, start: int) -> bool:
        return any(t.start < start <= t.rows for t in self._tables_near(start))

    def _sentences(self, task: "_Task") -> _Finer:
        def find(before: _Bound, after: _Bound) -> Iterator[_Bound]:
            gap = after.stop - before.start
            if gap <= task.room(before) and self._is_verbatim(before.start):
                return
            for match in _SENTENCE.finditer(self._text, before.start, after.stop):
                if match.end() < after.stop:
                    start = _SPACES.match(self._text, match.end())
                    yield _Bound(match.end(), start.end() if start else match.end(), SENTENCE)

        return find

    def _is_verbatim(self, offset: int) -> bool:
        spans = self._structure.verbatim
        index = bisect_right(spans, (offset, len(self._text))) - 1
        return index >= 0 and offset < spans[index][1]

    def _words(self, before: _Bound, after: _Bound) -> Iterator[_Bound]:
        for match in _SPACES.finditer(self._text, before.start, after.stop):
            if match.start() > before.start:
                yield _Bound(match.start(), match.end(), BLANK)

    def _anywhere(self, limit: int) -> _Finer:
        def find(before: _Bound, after: _Bound) -> Iterator[_Bound]:
            steps = (after.stop - before.start) * _GRAIN // limit + 1
            for step in range(1, steps + 1):
                # 32 steps are exactly the limit, so that a full piece is possible.
                position = before.start + step * limit // _GRAIN
                safe = next(
                    (
                        p
                        for p in range(position, position - limit // _GRAIN, -1)
                        if is_safe_bound(self._text, p)
                    ),
                    position,
                )
                if before.start < safe < after.stop:
                    yield _Bound(safe, safe, ANYWHERE)

        return find

    def _end_before(self, position: int, floor: int) -> int:
        while position > floor and self._text[position - 1].isspace():
            position -= 1
        return position

    def _skip_blanks(self, position: int, line: int, stop: int) -> int:
        """Where the text after `position` begins: with its indentation where that is short."""
        match = _SPACES.match(self._text, position, stop)
        if match is None:
            return position
        begin = match.group().rfind("\n") + 1
        indented = match.start() + begin
        is_line_start = begin > 0 or line == 0 or self._text[line - 1] == "\n"
        return indented if is_line_start and match.end() - indented <= _INDENT else match.end()


class _Task:
    """One call of `cut`: what stands in front of a piece that begins at a bound."""

    def __init__(self, cutter: Cutter, first: _Bound, limit: int, overlap: int) -> None:
        self._cutter = cutter
        self._first = first
        self._limit = limit
        self._overlap = overlap

    def lead(self, bound: _Bound) -> str:
        header = self._cutter.header_at(bound.start, self._limit)
        if header or bound.start == self._first.start:
            return header
        return self._cutter.overlap_before(bound, self._overlap, self._first.start)

    def lead_length(self, bound: _Bound) -> int:
        """Characters to keep free for the lead."""
        header = self._cutter.header_at(bound.start, self._limit)
        if header or bound.start == self._first.start:
            return len(header)
        return self._overlap

    def room(self, bound: _Bound) -> int:
        return self._limit - self.lead_length(bound)

    def refine(
        self,
        bounds: Sequence[_Bound],
        finer: _Finer,
        most: Callable[[_Bound], int],
        grain: int = _GRAIN,
    ) -> list[_Bound]:
        """Add finer bounds between those that are farther from each other than `most`."""
        refined = [bounds[0]]
        spacing = self._limit // grain if grain else 0
        for before, after in pairwise(bounds):
            if after.stop - before.start > most(before):
                refined.extend(_thinned(finer(before, after), before.start, spacing))
            refined.append(after)
        return refined


def _thinned(bounds: Iterable[_Bound], last: int, spacing: int) -> Iterator[_Bound]:
    """Of bounds within `spacing` of each other the cheapest, of equal ones the last."""
    held: _Bound | None = None
    for bound in bounds:
        if held and bound.start - last > spacing:
            yield held
            last, held = held.start, None
        if bound.start - last > spacing:
            yield bound
            last = bound.start
        elif held is None or bound.cost <= held.cost:
            held = bound
    if held:
        yield held


def _fewest_and_even(bounds: Sequence[_Bound], leads: Sequence[int], limit: int) -> list[int]:
    """Indexes of the bounds to cut at, both ends included.

    Dynamic programming over the bounds: fewest pieces first, then the smallest sum of squared
    fills and costs. The fewest pieces up to a bound never decrease with the bound, so the
    beginnings worth comparing are one run of bounds.
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
            length = stop - begins[begin]
            if length <= limit:
                cost = costs[begin] + (length / limit) ** 2
                if cost < best:
                    best, previous[end] = cost, begin
        pieces[end] = fewest + 1
        costs[end] = best + bounds[end].cost
        if fewest + 1 == len(first_with):
            first_with.append(end)
    chosen = [size - 1]
    while chosen[-1]:
        chosen.append(previous[chosen[-1]])
    return chosen[::-1]


def _choices(low: int, high: int) -> Iterable[int]:
    step = (high - low) // _CHOICES + 1
    return range(low, high) if step == 1 else (*range(low, high, step), high - 1)
