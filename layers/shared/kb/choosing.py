"""From candidates to text: the part of each that answers best, read in one batch where possible."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from kb.answers import Passage, Question
from kb.documents import CatalogRow, Outline, Part, digest_of
from kb.finding import Candidate
from kb.reading import (
    NoPart,
    NoSection,
    Place,
    names_of,
    place_of_part,
    place_of_question,
    place_of_section,
)

FIRST_PARTS = 8
"""Parts read beside the outline where only their text, or the outline, tells which one is asked
for: 16,000 characters, so nearly every document whole."""

Contents = Mapping[str, tuple[Outline, Mapping[int, Part]]]
"""Outline, and parts by number, of documents by key."""
ReadContents = Callable[[Sequence[tuple[CatalogRow, Collection[int]]]], Contents]
"""Reads these parts of documents, in one batch; what there is not is absent."""


class Moved(Exception):
    """These documents got a newer version since the catalog was read."""

    def __init__(self, keys: Collection[str]) -> None:
        super().__init__(f"{len(keys)} documents have a newer version")
        self.keys = keys


@dataclass(frozen=True, slots=True)
class Choice:
    """A candidate and its part that answers best, or why it has none to give."""

    candidate: Candidate
    outline: Outline
    passage: Passage | NoSection | NoPart

    @property
    def digest(self) -> str:
        """Of the text that would be delivered; "" where there is none."""
        return digest_of(self.passage.content) if isinstance(self.passage, Passage) else ""


def choose(
    contents: ReadContents,
    candidates: Sequence[Candidate],
    question: Question,
    folded: str,
    read: Collection[str],
) -> list[Choice]:
    """The part of each candidate to deliver; the question's section or part is the first one's.

    `folded` is the question, `read` holds digests of the texts that a section need not begin with.
    Raises Moved where a candidate's version is gone.
    """
    if question.part or question.section_title:
        candidates = candidates[:1]
    if not candidates:
        return []
    found = _read(contents, [(each, _guess(each, question)) for each in candidates])
    places = [_place(each, *found[each.row.key], question, folded, read) for each in candidates]
    further = [
        (each, (place.part,))
        for each, place in zip(candidates, places, strict=True)
        if isinstance(place, Place) and place.part not in found[each.row.key][1]
    ]
    if further:
        found = {**found, **_read(contents, further)}
    return [
        Choice(each, found[each.row.key][0], _passage(each, *found[each.row.key], place))
        for each, place in zip(candidates, places, strict=True)
    ]


def _read(
    contents: ReadContents, wanted: Sequence[tuple[Candidate, Collection[int]]]
) -> dict[str, tuple[Outline, Mapping[int, Part]]]:
    found = dict(contents([(candidate.row, numbers) for candidate, numbers in wanted]))
    if gone := {candidate.row.key for candidate, _ in wanted} - found.keys():
        raise Moved(gone)
    return found


def _guess(candidate: Candidate, question: Question) -> Collection[int]:
    """The parts among which the one to deliver most likely is."""
    if question.part:
        return (question.part,)
    if candidate.part and not question.section_title:
        return (candidate.part,)
    return range(1, min(candidate.row.parts or FIRST_PARTS, FIRST_PARTS) + 1)


def _place(
    candidate: Candidate,
    outline: Outline,
    parts: Mapping[int, Part],
    question: Question,
    folded: str,
    read: Collection[str],
) -> Place | NoSection | NoPart:
    if question.part:
        return place_of_part(question.part, outline)
    if question.section_title:
        return place_of_section(question.section_title, outline, read)
    if candidate.part and candidate.part <= outline.parts:  # a twin's may be cut differently
        return Place(candidate.part, candidate.section)
    texts = {number: part.text for number, part in parts.items()}
    return place_of_question(folded, candidate.keyword, outline, texts)


def _passage(
    candidate: Candidate,
    outline: Outline,
    parts: Mapping[int, Part],
    place: Place | NoSection | NoPart,
) -> Passage | NoSection | NoPart:
    if not isinstance(place, Place):
        return place
    part = parts.get(place.part)
    if part is None:
        raise Moved([candidate.row.key])
    return Passage(
        candidate.row,
        part.text,
        place.section or part.section,
        part.number,
        outline.parts,
        names_of(outline),
    )
