"""Which part of a document answers a question, and which of it a session has not read."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kb.documents import Outline, Section
from kb.folding import fold

TITLE_LENGTH_LEAST = 2
"""Characters a title needs so that a question that contains it is taken to name it."""


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


def part_named_by(query: str, outline: Outline) -> int | None:
    """First part of the section whose title the folded question contains, the longest title."""
    named = [
        (len(folded), -section.first_part)
        for title, section in _titles(outline)
        if len(folded := fold(title)) >= TITLE_LENGTH_LEAST and folded in query
    ]
    return -max(named)[1] if named else None


def part_of_section(name: str, outline: Outline, read: Collection[str]) -> int | NoSection:
    """The section's first part not yet read, or its first where all are.

    Names are compared after folding: equal ones first, then titles that contain the name.
    """
    wanted = fold(name)
    titles = [(fold(title), section) for title, section in _titles(outline)]
    equal = [section for title, section in titles if title == wanted]
    containing = [section for title, section in titles if wanted and wanted in title]
    if not (sections := equal or containing):
        return NoSection(name)
    parts = [number for section in sections for number in _parts_of(section)]
    return next((n for n in parts if outline.digests[n - 1] not in read), parts[0])


def part_of_number(number: int, outline: Outline) -> int | NoPart:
    """The part, if the document has it."""
    return number if 1 <= number <= outline.parts else NoPart(number)


def _parts_of(section: Section) -> range:
    return range(section.first_part, section.last_part + 1)


def _titles(outline: Outline) -> Sequence[tuple[str, Section]]:
    """Every name under which a section can be asked for; the author's names come first."""
    by_title = {fold(section.title): section for section in reversed(outline.sections)}
    named = [
        (name, by_title[fold(heading)])
        for name, heading in outline.names.items()
        if fold(heading) in by_title
    ]
    return named + [(section.title, section) for section in outline.sections]
