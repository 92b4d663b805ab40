"""Which part of a document answers a question, and which of it a session has not read."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kb.documents import Outline, Section
from kb.folding import contains, fold

TITLE_LENGTH_LEAST = 2
"""Characters a title needs so that a question that contains it is taken to name it."""
MARKS = "#… "
"""Around a name that was copied from Markdown, or from a message that shortened it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where to read: a part, and the section that was looked for in it."""

    part: int
    section: str = ""
    """"": the one in which the part begins."""


@dataclass(frozen=True, slots=True)
class NoSection:
    """The document has no section of that name."""

    name: str


@dataclass(frozen=True, slots=True)
class NoPart:
    """The document has no part of that number."""

    number: int


@dataclass(frozen=True, slots=True)
class Unread:
    """What a session has not read of a document."""

    parts: tuple[int, ...]
    sections: tuple[str, ...]
    """Titles of the sections of which nothing was read, in order."""


def unread(outline: Outline, read: Collection[str]) -> Unread:
    """`read` holds digests of delivered texts."""
    parts = tuple(
        number for number, digest in enumerate(outline.digests, start=1) if digest not in read
    )
    left = set(parts)
    sections = (s.title for s in outline.sections if left.issuperset(_parts_of(s)))
    return Unread(parts, tuple(dict.fromkeys(sections)))


def place_of_question(
    query: str, keyword: str, outline: Outline, texts: Mapping[int, str]
) -> Place:
    """Where a document that its keyword matched answers best, as far as words tell.

    The section whose title contains the question; else the first of `texts` (parts by number)
    that does; else the section whose title the question contains; else the first of `texts` that
    contains the keyword; else the beginning. Question and keyword are folded.
    """
    titles = _titles(outline)
    around = [(len(title), at) for at, (title, _) in enumerate(titles) if contains(title, query)]
    if around:
        return _beginning(titles[min(around)[1]][1])
    if number := _first_with(query, texts):
        return Place(number)
    inside = [
        (-len(title), at)
        for at, (title, _) in enumerate(titles)
        if len(title) >= TITLE_LENGTH_LEAST and contains(query, title)
    ]
    if inside:
        return _beginning(titles[min(inside)[1]][1])
    return Place(_first_with(keyword, texts) or 1)


def place_of_section(name: str, outline: Outline, read: Collection[str]) -> Place | NoSection:
    """The section's first part not yet read, or its first where all are.

    Names are compared after folding: equal ones first, then titles that contain the name.
    """
    sections = _named(fold(name), outline) or _named(fold(name.strip(MARKS)), outline)
    if not sections:
        return NoSection(name)
    parts = [(number, section) for section in sections for number in _parts_of(section)]
    left = [(number, section) for number, section in parts if not _is_read(number, outline, read)]
    number, section = (left or parts)[0]
    return Place(number, section.title)


def place_of_part(number: int, outline: Outline) -> Place | NoPart:
    """The part, if the document has it."""
    return Place(number) if 1 <= number <= outline.parts else NoPart(number)


def names_of(outline: Outline) -> tuple[str, ...]:
    """Every name under which a section can be asked for, as it is spelled, each once."""
    by_heading = {fold(section.title) for section in outline.sections}
    given = [name for name, heading in outline.names.items() if fold(heading) in by_heading]
    return tuple(dict.fromkeys(given + [section.title for section in outline.sections]))


def _named(wanted: str, outline: Outline) -> list[Section]:
    titles = _titles(outline) if wanted else []
    equal = [section for title, section in titles if title == wanted]
    return equal or [section for title, section in titles if wanted in title]


def _titles(outline: Outline) -> Sequence[tuple[str, Section]]:
    """Folded names with their sections; the author's own names come first."""
    titles = [(fold(section.title), section) for section in outline.sections]
    first = dict(reversed(titles))
    given = ((fold(name), first.get(fold(heading))) for name, heading in outline.names.items())
    return [(name, section) for name, section in given if section] + titles


def _first_with(piece: str, texts: Mapping[int, str]) -> int | None:
    return next(
        (number for number in sorted(texts) if piece and contains(fold(texts[number]), piece)), None
    )


def _beginning(section: Section) -> Place:
    return Place(section.first_part, section.title)


def _parts_of(section: Section) -> range:
    return range(section.first_part, section.last_part + 1)


def _is_read(number: int, outline: Outline, read: Collection[str]) -> bool:
    return outline.digests[number - 1] in read
