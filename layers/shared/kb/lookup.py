"""One question, one answer: look up, choose, keep to what the session has not read, log."""

import logging
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor
from dataclasses import asdict

from kb import wording
from kb.answers import Answer, Passage, Question
from kb.catalog import Catalog
from kb.characters import clean, is_blank
from kb.choosing import Choice, Contents, Moved, choose
from kb.deadline import Deadline, Step, Timeouts
from kb.delivery import Delivery, Session, deliver
from kb.documents import CatalogRow
from kb.errors import InvalidInput, Unavailable
from kb.finding import Finder, Finding
from kb.folding import fold
from kb.grading import Profile
from kb.invocation import NANOSECONDS, Call
from kb.reading import NoPart, NoSection, names_of, unread
from kb.stores.content_table import ContentTable
from kb.stores.invocation_table import InvocationTable
from kb.stores.session_table import SessionMemory

logger = logging.getLogger(__name__)

ATTEMPTS = 2
"""Tries where a document changed between the catalog and its text."""


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
        timeouts: Timeouts,
        threads: Executor,
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
        self._timeouts = timeouts
        self._threads = threads
        self._now = now
        self._new_id = new_id

    def answer(self, question: Question, caller: str) -> Answer:
        """The answer for this caller and session; every call is logged, also one that fails.

        Raises InvalidInput where the question is blank or too long, Unavailable where what is
        needed to answer does not work: an outage is never "nothing found".
        """
        text = self._checked(question)
        deadline = Deadline(self._timeouts, self._threads)
        call = Call(question, self._new_id(), self._now())
        try:
            answer = self._answer(call, text, caller, deadline)
            call.answer, call.error = answer, None
        except Unavailable as error:
            call.error = f"{error.what}_unavailable"
            raise
        finally:
            self._record(call, deadline)
        return answer

    def _checked(self, question: Question) -> str:
        """The question's text without what is none; the embedder would stop at a NUL."""
        if len(question.query) > self._query_length:
            raise InvalidInput("query", f"has more than {self._query_length} characters")
        text = clean(question.query)
        if is_blank(text) or not fold(text):
            raise InvalidInput("query", "is blank")
        return text

    def _answer(self, call: Call, text: str, caller: str, deadline: Deadline) -> Answer:
        question, folded = call.question, fold(text)
        session = self._start(call, caller, deadline)
        read = session.withheld if session and not question.force else frozenset()

        def contents(wanted: Sequence[tuple[CatalogRow, Collection[int]]]) -> Contents:
            return deadline.call(Step.READ, "content", self._content.read, wanted)

        for _ in range(ATTEMPTS):
            call.finding = self._find(call, text, folded, deadline)
            try:
                choices = choose(contents, call.finding.candidates, question, folded, read)
                break
            except Moved as moved:
                deadline.call(Step.SEARCH, "catalog", self._catalog.read_again, moved.keys)
        else:
            raise Unavailable("content", "documents keep changing")
        delivery = deliver(choices, session, deadline, force=question.force)
        if not delivery.is_remembered:
            call.degraded.add("session")
        call.reason = delivery.reason
        return self._worded(call, choices, delivery, session)

    def _start(self, call: Call, caller: str, deadline: Deadline) -> Session | None:
        """Look at the catalog and, side by side, at the session; neither stops the answer."""
        refreshing = deadline.start(self._catalog.refresh)
        session = None
        if session_id := call.question.session_id:
            memory = self._sessions(caller)
            request = call.question.request_id or call.invocation_id
            reading = deadline.start(memory.read, session_id)
            try:
                read = deadline.wait(Step.START, "session", reading)
                session = Session(session_id, request, memory, read)
            except Unavailable as error:
                logger.warning("session_unavailable", extra={"cause": str(error)})
                call.degraded.add("session")
        try:
            deadline.wait(Step.START, "catalog", refreshing)
        except Unavailable as error:
            logger.warning("catalog_unavailable", extra={"cause": str(error)})
            call.degraded.add("keywords")
        return session

    def _find(self, call: Call, text: str, folded: str, deadline: Deadline) -> Finding:
        # Where the catalog cannot be refreshed, an older one still in memory serves.
        is_loaded = self._catalog.is_loaded
        finding = self._finder.find(
            text, folded, call.question.domain, deadline, keywords=is_loaded
        )
        call.degraded |= set(finding.degraded)
        if finding.level is None and "keywords" in call.degraded:
            raise Unavailable("catalog", "and meaning alone finds nothing")
        return finding

    def _worded(
        self, call: Call, choices: list[Choice], delivery: Delivery, session: Session | None
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
            message=self._message(call.question, choices, delivery, session),
            degraded=tuple(sorted(call.degraded)),
            invocation_id=call.invocation_id,
        )

    def _message(
        self,
        question: Question,
        choices: list[Choice],
        delivery: Delivery,
        session: Session | None,
    ) -> str | None:
        if not choices:
            return wording.not_found(question.domain, self._language)
        main = choices[0]
        match main.passage:
            case NoSection(name):
                return wording.no_section(name, names_of(main.outline), self._language)
            case NoPart(number):
                return wording.no_part(number, main.outline.parts, self._language)
        if delivery.given[0]:
            return None if all(delivery.given) else wording.supplement_read(self._language)
        read = session.read.digests if session else frozenset()
        left = unread(main.outline, read | {main.digest})
        return wording.already_read(left.sections, left.parts, self._language)

    def _record(self, call: Call, deadline: Deadline) -> None:
        """Write the log row; where the log does not answer, it goes to the function's own log."""
        now = self._now()
        row = call.row(self._profile, self._embedding_model, now)
        try:
            deadline.call(Step.LOG, "log", self._log.record, row, now // NANOSECONDS)
        except Unavailable as error:
            logger.error("invocation_not_logged", extra={"cause": str(error), "row": asdict(row)})
