"""From candidates to text: the part to deliver, and what this session has read already."""

from collections.abc import Collection, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from enum import StrEnum

from kb.answers import Passage, Question
from kb.documents import Outline, Part, digest_of
from kb.errors import Unavailable
from kb.finding import Candidate
from kb.reading import (
    NoPart,
    NoSection,
    part_named_by,
    part_of_number,
    part_of_section,
    unread,
)
from kb.stores.content_table import ContentTable
from kb.stores.session_table import SessionContents, SessionMemory


class DedupReason(StrEnum):
    """Why a session got less, or the same again, than the question alone would have got."""

    DOC_ALREADY_RETRIEVED = "DOC_ALREADY_RETRIEVED"
    SECTION_ALREADY_RETRIEVED = "SECTION_ALREADY_RETRIEVED"
    SUPPLEMENT_ALREADY_RETRIEVED = "SUPPLEMENT_ALREADY_RETRIEVED"
    ALL_CANDIDATES_SEEN = "ALL_CANDIDATES_SEEN"
    FORCED = "FORCED"
    CONTENT_CHANGED = "CONTENT_CHANGED"


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
    content: ContentTable,
    candidates: Sequence[Candidate],
    question: Question,
    folded: str,
    read: Collection[str],
) -> list[Choice]:
    """The part of each candidate to deliver; the question's section and part are the first one's.

    One batch read; a second only where another part than the guessed one is better.
    Raises Moved where a candidate's version is gone.
    """
    if not candidates:
        return []
    asked = [question, *[Question(question.query)] * (len(candidates) - 1)]
    guesses = [q.part or c.part or 1 for c, q in zip(candidates, asked, strict=True)]
    found = _contents(content, candidates, guesses)
    numbers = [
        _part(candidate, found[candidate.row.key][0], of, folded, read)
        for candidate, of in zip(candidates, asked, strict=True)
    ]
    better = [
        (candidate, number)
        for candidate, guess, number in zip(candidates, guesses, numbers, strict=True)
        if isinstance(number, int) and number != guess
    ]
    if better:
        found |= _contents(content, [c for c, _ in better], [number for _, number in better])
    return [
        Choice(candidate, found[candidate.row.key][0], _passage(candidate, number, found))
        for candidate, number in zip(candidates, numbers, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Session:
    """One session during one call: what it had read at the start, and where reading is noted."""

    id: str
    memory: SessionMemory
    read: SessionContents


@dataclass(frozen=True, slots=True)
class Delivery:
    """Which of the choices the session gets, by choice, and why it gets less or the same again."""

    given: tuple[bool, ...]
    reason: DedupReason | None = None
    is_remembered: bool = True
    """False where the session's memory did not answer: the next call may repeat the text."""


def deliver(
    choices: Sequence[Choice], question: Question, session: Session | None, threads: Executor
) -> Delivery:
    """Mark what is given, so that of two parallel calls one gives a text and one does not."""
    texts = [isinstance(choice.passage, Passage) for choice in choices]
    if session is None:
        return Delivery(tuple(texts))
    retried = session.read.requests.get(question.request_id or "", frozenset())
    seen = [c.digest in session.read.digests and c.digest not in retried for c in choices]
    wanted = [
        has_text and (question.force or not s) for has_text, s in zip(texts, seen, strict=True)
    ]
    digests = frozenset(c.digest for c, want in zip(choices, wanted, strict=True) if want)
    marks = [
        threads.submit(_mark, session, choice) if want else None
        for choice, want in zip(choices, wanted, strict=True)
    ]
    try:
        if question.request_id and digests:
            # Beside the marks, since a text marked but not remembered could not be sent again.
            session.memory.remember_request(session.id, question.request_id, digests)
        won = [mark.result() if mark else False for mark in marks]
    except Unavailable:
        return Delivery(tuple(wanted), _reason(choices, wanted, seen, question, session), False)
    given = [
        want and (win or question.force or choice.digest in retried)
        for choice, want, win in zip(choices, wanted, won, strict=True)
    ]
    kept = frozenset(c.digest for c, gave in zip(choices, given, strict=True) if gave)
    is_remembered = True
    if question.request_id and kept != digests:
        # A parallel call won a text: a retry of this one must not give it.
        try:
            session.memory.remember_request(session.id, question.request_id, kept)
        except Unavailable:
            is_remembered = False
    reason = _reason(choices, given, seen, question, session)
    return Delivery(tuple(given), reason, is_remembered)


def _mark(session: Session, choice: Choice) -> bool:
    row = choice.candidate.row
    return session.memory.mark_retrieved(
        session.id, row.domain, row.key, choice.digest, row.content_hash
    )


def _reason(
    choices: Sequence[Choice],
    given: Sequence[bool],
    seen: Sequence[bool],
    question: Question,
    session: Session,
) -> DedupReason | None:
    texts = [c for c in choices if isinstance(c.passage, Passage)]
    withheld = [c for c, gave in zip(choices, given, strict=True) if not gave and c in texts]
    if not withheld:
        if question.force and any(seen):
            return DedupReason.FORCED
        read = session.read.documents
        changed = any(
            (before := read.get(c.candidate.row.key))
            and before.content_hash != c.candidate.row.content_hash
            for c in texts
        )
        return DedupReason.CONTENT_CHANGED if changed else None
    if len(withheld) == len(choices) > 1:
        return DedupReason.ALL_CANDIDATES_SEEN
    if withheld[0] is not choices[0]:
        return DedupReason.SUPPLEMENT_ALREADY_RETRIEVED
    left = unread(withheld[0].outline, session.read.digests | {withheld[0].digest})
    if left.parts:
        return DedupReason.SECTION_ALREADY_RETRIEVED
    return DedupReason.DOC_ALREADY_RETRIEVED


Contents = dict[str, tuple[Outline, Part | None]]


def _contents(
    content: ContentTable, candidates: Sequence[Candidate], numbers: Sequence[int]
) -> Contents:
    found = content.read([(c.row, number) for c, number in zip(candidates, numbers, strict=True)])
    if gone := {candidate.row.key for candidate in candidates} - found.keys():
        raise Moved(gone)
    return found


def _part(
    candidate: Candidate, outline: Outline, question: Question, folded: str, read: Collection[str]
) -> int | NoSection | NoPart:
    if question.part is not None:
        return part_of_number(question.part, outline)
    if question.section_title is not None:
        return part_of_section(question.section_title, outline, read)
    return candidate.part or part_named_by(folded, outline) or 1


def _passage(
    candidate: Candidate, number: int | NoSection | NoPart, found: Contents
) -> Passage | NoSection | NoPart:
    if not isinstance(number, int):
        return number
    outline, part = found[candidate.row.key]
    if part is None:
        raise Moved([candidate.row.key])
    titles = tuple(dict.fromkeys(section.title for section in outline.sections))
    section = candidate.section if number == candidate.part else part.section
    return Passage(candidate.row, part.text, section or part.section, number, outline.parts, titles)
