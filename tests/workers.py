"""Calls that run side by side, one step at a time: a test decides who goes on, and until when."""

from collections.abc import Callable
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet


class Worker:
    """`run`, which stands still except inside `step`."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self._greenlet = greenlet(run)

    @property
    def is_done(self) -> bool:
        return self._greenlet.dead

    def step(self) -> object:
        """Go on to the next `pause` and return what it names, or to the end.

        What `run` raises comes out here.
        """
        self._greenlet.parent = getcurrent()
        return self._greenlet.switch()

    def step_to(self, call: str) -> None:
        """Stop right before its next call of that name."""
        while self.step() != call:
            assert not self.is_done

    def finish(self) -> None:
        while not self.is_done:
            self.step()

    def kill(self) -> None:
        """Die where it stands, of what no `except Exception` stops."""
        self._greenlet.throw(GreenletExit)


def pause(call: str = "") -> None:
    """Where a worker may be stopped for any time: before each of its outside calls."""
    here = getcurrent()
    if here.parent:
        here.parent.switch(call)
