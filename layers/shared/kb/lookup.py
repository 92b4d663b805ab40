"""One question, one answer: look up, choose, keep to what the session has not read, log."""

import json
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from kb import wording
from kb.answers import Answer, Passage, Question
from kb.catalog import Catalog
from kb.delivery import Choice, DedupReason, Delivery, Moved, Session, choose, deliver
from kb.errors import InvalidInput, Unavailable
from kb.finding import NOTHING_FOUND, Finder, Finding
from kb.folding import fold
from kb.grading import Profile
from kb.reading import NoPart, NoSection, unread
from kb.stores.content_table import ContentTable
from kb.stores.invocation_table import Invocation, InvocationTable
from kb.stores.session_table import SessionMemory

logger = logging.getLogger(__name__)

ATTEMPTS = 2
"""Tries where a document changed between the catalog and its text."""
NANOSECONDS = 1_000_000_000
"""In a second."""
PARALLEL_CALLS = 8
"""Threads for calls that do not wait for each other."""


class Lookup:
    """`sessions` gives a caller's memory, `now` nanoseconds since 1970, `new_id` an unused id."""

    def __init__(
        self,
        *,
        catalog: Catalog,
        finder: Finder,
        content: ContentTable,
        sessions: Callable[[str], SessionMemory],
        log: InvocationTable,
        profile: Profile,
        embedding_model: str,
        query_length: int,
        language: wording.Language,
        now: Callable[[], int],
        new_id: Callable[[], str],
    ) -> None:
        self._catalog = catalog
        self._finder = finder
        self._content = content
        self._sessions = sessions
        self._log = log
        self._profile = profile
        self._embedding_model = embedding_model
        self._query_length = query_length
        self._language = language
        self._now = now
        self._new_id = new_id
        self._threads = ThreadPoolExecutor(PARALLEL_CALLS, thread_name_prefix="lookup")

    def answer(self, question: Question, caller: str) -> Answer:
        """The answer for this caller and session; every call is logged, also one that fails.

        Raises InvalidInput where the question is blank or too long, Unavailable where what is
        needed to answer does not work: an outage is never "nothing found".
        """
        folded = self._checked(question)
        call = _Call(question, self._new_id(), self._now())
        try:
            call.answer = self._answer(call, folded, caller)
        except Unavailable as error:
            call.error = f"{error.what}_unavailable"
            raise
        finally:
            self._record(call)
        return call.answer

    def _checked(self, question: Question) -> str:
        if len(question.query) > self._query_length:
            raise InvalidInput("query", f"has more than {self._query_length} characters")
        if not (folded := fold(question.query)):
            raise InvalidInput("query", "is blank")
        return folded

    def _answer(self, call: "_Call", folded: str, caller: str) -> Answer:
        question = call.question
        refreshed = self._threads.submit(self._refresh, call)
        session = self._session(call, caller)
        keywords = refreshed.result()
        read = session.read.digests if session else frozenset()
        for _ in range(ATTEMPTS):
            call.finding = self._finder.find(
                question.query, folded, question.domain, keywords=keywords
            )
            call.degraded |= set(call.finding.degraded)
            candidates = [c for c in (call.finding.primary, call.finding.supplement) if c]
            if question.part or question.section_title:
                candidates = candidates[:1]
            try:
                choices = choose(self._content, candidates, question, folded, read)
                break
            except Moved as moved:
                self._catalog.read_again(moved.keys)
        else:
            raise Unavailable("content", "documents keep changing")
        delivery = deliver(choices, question, session, self._threads)
        if not delivery.is_remembered:
            call.degraded.add("session")
        call.reason = delivery.reason
        return self._worded(call, choices, delivery, session)

    def _refresh(self, call: "_Call") -> bool:
        """Whether L0 can answer: from a fresh catalog, else from an older one still in memory."""
        try:
            self._catalog.refresh()
        except Unavailable as error:
            logger.warning("catalog_unavailable", extra={"cause": str(error)})
            call.degraded.add("keywords")
        return self._catalog.is_loaded

    def _session(self, call: "_Call", caller: str) -> Session | None:
        if not (session := call.question.session_id):
            return None
        memory = self._sessions(caller)
        try:
            return Session(session, memory, memory.read(session))
        except Unavailable as error:
            logger.warning("session_unavailable", extra={"cause": str(error)})
            call.degraded.add("session")
            return None

    def _worded(
        self, call: "_Call", choices: list[Choice], delivery: Delivery, session: Session | None
    ) -> Answer:
        finding = call.finding
        given = {
            choice.candidate: choice.passage
            for choice, gave in zip(choices, delivery.given, strict=True)
            if gave and isinstance(choice.passage, Passage)
        }
        domains = session.read.domains if session else []
        if call.question.session_id:
            domains += [c.candidate.row.domain for c in choices if c.digest]
        return Answer(
            found=finding.level is not None,
            primary=given.get(finding.primary) if finding.primary else None,
            supplement=given.get(finding.supplement) if finding.supplement else None,
            level=finding.level,
            hint=wording.hint(finding.level, self._language) if finding.level else None,
            domains=tuple(dict.fromkeys(domains)),
            message=self._message(choices, delivery, session),
            degraded=tuple(sorted(call.degraded)),
            invocation_id=call.invocation_id,
        )

    def _message(
        self, choices: list[Choice], delivery: Delivery, session: Session | None
    ) -> str | None:
        if not choices:
            return wording.not_found(self._language)
        main = choices[0]
        match main.passage:
            case NoSection(name):
                titles = [section.title for section in main.outline.sections]
                return wording.no_section(name, titles, self._language)
            case NoPart(number):
                return wording.no_part(number, main.outline.parts, self._language)
        if delivery.given[0]:
            return None if all(delivery.given) else wording.supplement_read(self._language)
        read = session.read.digests if session else frozenset()
        left = unread(main.outline, read | {main.digest})
        return wording.already_read(left.sections, left.parts, self._language)

    def _record(self, call: "_Call") -> None:
        """Write the log row; where the log does not answer, it goes to the function's own log."""
        now = self._now()
        row = call.row(self._profile, self._embedding_model, now)
        try:
            self._log.record(row, now // NANOSECONDS)
        except Unavailable as error:
            logger.error("invocation_not_logged", extra={"cause": str(error), "row": asdict(row)})


@dataclass(slots=True)
class _Call:
    """What one call has come to so far, for its log row."""

    question: Question
    invocation_id: str
    started: int
    finding: Finding = NOTHING_FOUND
    answer: Answer | None = None
    reason: DedupReason | None = None
    degraded: set[str] = field(default_factory=set)
    error: str | None = "internal_error"

    def row(self, profile: Profile, embedding_model: str, now: int) -> Invocation:
        answer = self.answer
        sources = [p.row.key for p in (answer.primary, answer.supplement) if p] if answer else []
        level = answer.level if answer else None
        details = {
            "l1_top_similarity": self.finding.similarity,
            "l1_evidence": self.finding.similarity,
            "relevance_level": level,
            "completeness_hint": answer.hint if answer else None,
            "retrieved_domains": answer.domains if answer else [],
            "dedup_reason": self.reason,
            "l0_match_count": self.finding.matches,
            "sources": sources,
            "degraded": sorted(self.degraded),
            "thresholds": asdict(profile),
            "embedding_model": embedding_model,
            "error": None if answer else self.error,
        }
        return Invocation(
            invocation_id=self.invocation_id,
            session_id=self.question.session_id,
            query=self.question.query,
            created_at=datetime.fromtimestamp(self.started / NANOSECONDS, UTC).isoformat(),
            duration_ms=(now - self.started) // 1_000_000,
            found=bool(answer and answer.found),
            relevance_level=level,
            dedup_reason=self.reason,
            retrieval_details=json.dumps(details, ensure_ascii=False),
        )
