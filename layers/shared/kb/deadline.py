"""How long an answer may still take: every call outside is waited for that long and no longer."""

import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from kb.errors import Unavailable

T = TypeVar("T")


class Step(IntEnum):
    """What an answer waits for, in this order."""

    START = 0
    """Catalog and session, side by side."""
    SEARCH = 1
    READ = 2
    MARK = 3
    LOG = 4


@dataclass(frozen=True, slots=True)
class Timeouts:
    """In seconds."""

    answer: float
    """An answer takes at most."""
    question: float
    """The vector of a question takes at most."""
    table: float
    """One call to a table takes at most, its second try included."""

    @property
    def least(self) -> float:
        """What `answer` must be so that no step can take the time of a later one."""
        return self.question + self.table * Step.LOG

    def after(self, step: Step) -> float:
        """What later steps may need."""
        tables = self.table * min(Step.LOG - step, Step.LOG - Step.SEARCH)
        return tables + (self.question if step is Step.START else 0)


class Deadline:
    """Runs from when it is made; `clock` returns seconds.

    Calls are made in `threads`, so that one that hangs is left behind there.
    """

    def __init__(
        self, timeouts: Timeouts, threads: Executor, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._timeouts = timeouts
        self._threads = threads
        self._clock = clock
        self._end = clock() + timeouts.answer

    def start(self, call: Callable[..., T], *arguments: object) -> Future[T]:
        """Begin a call that others do not wait for."""
        return self._threads.submit(call, *arguments)

    def wait(self, step: Step, what: str, future: Future[T]) -> T:
        """The call's result. Raises Unavailable(what) where it takes the time of later steps."""
        left = self._end - self._timeouts.after(step) - self._clock()
        try:
            return future.result(max(left, 0))
        except TimeoutError as error:
            future.cancel()
            raise Unavailable(what, "took too long") from error

    def call(self, step: Step, what: str, call: Callable[..., T], *arguments: object) -> T:
        """Begin a call and wait for it."""
        return self.wait(step, what, self.start(call, *arguments))
