"""What of the chosen texts a session gets: each once, unless it is forced or asked for again."""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum

from kb.choosing import Choice
from kb.deadline import Deadline, Step
from kb.errors import Unavailable
from kb.reading import unread
from kb.stores.session_table import SessionContents, SessionMemory


class DedupReason(StrEnum):
    """Why a session got less, or the same again, than the question alone would have got."""

    DOC_ALREADY_RETRIEVED = "DOC_ALREADY_RETRIEVED"
    """The answer's document was read whole."""
    SECTION_ALREADY_RETRIEVED = "SECTION_ALREADY_RETRIEVED"
    """The part that answers was read, others of its document were not."""
    SUPPLEMENT_ALREADY_RETRIEVED = "SUPPLEMENT_ALREADY_RETRIEVED"
    """Only the supplement was read."""
    ALL_CANDIDATES_SEEN = "ALL_CANDIDATES_SEEN"
    """Primary and supplement were both read."""
    FORCED = "FORCED"
    """What was read is given again, since the caller forced it."""
    CONTENT_CHANGED = "CONTENT_CHANGED"
    """The document was read, and changed since."""


@dataclass(frozen=True, slots=True)
class Session:
    """One session during one call: what it had read at the start, and where reading is noted."""

    id: str
    request: str
    """Whose retry is to get the same text: the caller's request id, or this call's own."""
    memory: SessionMemory
    read: SessionContents

    @property
    def withheld(self) -> frozenset[str]:
        """Digests of what this request must not get: what others got before it."""
        return self.read.digests - self.read.delivered_to(self.request)


@dataclass(frozen=True, slots=True)
class Delivery:
    """Which of the choices the session gets, by choice, and why it gets less or the same again."""

    given: tuple[bool, ...]
    reason: DedupReason | None = None
    is_remembered: bool = True
    """False where the session's memory did not answer: the next call may repeat the text."""


def deliver(
    choices: Sequence[Choice], session: Session | None, deadline: Deadline, *, force: bool
) -> Delivery:
    """Mark what is given, so that of two parallel calls one gives a text and one does not."""
    if session is None:
        return Delivery(tuple(bool(choice.digest) for choice in choices))
    seen = set(session.withheld)
    repeated: list[bool] = []
    marks: list[Future[bool] | None] = []
    for choice in choices:
        repeated.append(choice.digest in seen)
        wanted = choice.digest and (force or not repeated[-1])
        marks.append(deadline.start(_mark, session, choice) if wanted else None)
        seen.add(choice.digest)
    given: list[bool] = []
    is_remembered = True
    for mark in marks:
        try:
            won = mark is not None and deadline.wait(Step.MARK, "session", mark)
        except Unavailable:
            won, is_remembered = True, False
        given.append(won or (mark is not None and force))
    reason = _reason(choices, given, repeated, session)
    return Delivery(tuple(given), reason, is_remembered)


def _mark(session: Session, choice: Choice) -> bool:
    row = choice.candidate.row
    return session.memory.mark_retrieved(
        session.id, row.domain, row.key, choice.digest, row.content_hash, session.request
    )


def _reason(
    choices: Sequence[Choice], given: Sequence[bool], repeated: Sequence[bool], session: Session
) -> DedupReason | None:
    texts = [choice for choice in choices if choice.digest]
    withheld = [c for c, gave in zip(choices, given, strict=True) if c.digest and not gave]
    if not withheld:
        if any(repeated):
            return DedupReason.FORCED
        changed = any(_has_changed(choice, session) for choice in texts)
        return DedupReason.CONTENT_CHANGED if changed else None
    if len(withheld) == len(choices) > 1:
        return DedupReason.ALL_CANDIDATES_SEEN
    if withheld[0] is not choices[0]:
        return DedupReason.SUPPLEMENT_ALREADY_RETRIEVED
    left = unread(withheld[0].outline, session.read.digests | {withheld[0].digest})
    if left.parts:
        return DedupReason.SECTION_ALREADY_RETRIEVED
    return DedupReason.DOC_ALREADY_RETRIEVED


def _has_changed(choice: Choice, session: Session) -> bool:
    row = choice.candidate.row
    before = session.read.documents.get(row.key)
    # "" is a document whose catalog row could not be read.
    hashes = {before.content_hash, row.content_hash} - {""} if before else set()
    return len(hashes) > 1
