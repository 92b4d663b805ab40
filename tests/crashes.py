"""Dies before or after any outside call: of AWS's clients, of the embedder, of the index."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from kb.ports import Embedder, VectorIndex

PORTS = {
    name
    for port in (Embedder, VectorIndex)
    for name in vars(port)
    if not name.startswith("_") and callable(getattr(port, name))
}


class Killed(BaseException):
    """What a process dies of: no `except Exception` stops it."""


class Tripwire:
    """Sees every outside call while it is set.

    `at_point(number, name)` is called right before each (even numbers) and right after it took
    effect (odd ones); calls that it makes itself are not seen.
    """

    def __init__(self) -> None:
        self._at_point: Callable[[int, str], None] | None = None
        self._number = 0

    @contextmanager
    def set(self, at_point: Callable[[int, str], None]) -> Iterator[None]:
        self._at_point, self._number = at_point, 0
        try:
            yield
        finally:
            self._at_point = None

    def point(self, name: str) -> None:
        at_point, self._at_point = self._at_point, None
        if at_point:
            at_point(self._number, name)
            self._at_point = at_point
            self._number += 1

    def before_call(self, model: Any, **_: Any) -> None:
        self.point(f"before {model.name}")

    def after_call(self, model: Any, **_: Any) -> None:
        self.point(f"after {model.name}")


@contextmanager
def watching_aws(wire: Tripwire) -> Iterator[None]:
    """Clients that the default session makes meanwhile are watched."""
    if boto3.DEFAULT_SESSION is None:
        boto3.setup_default_session()
    events = boto3.DEFAULT_SESSION.events
    events.register("before-call", wire.before_call)
    events.register("after-call", wire.after_call)
    try:
        yield
    finally:
        events.unregister("before-call", wire.before_call)
        events.unregister("after-call", wire.after_call)


class Watched:
    """An embedder or index whose calls are watched; a write is two, to die between them."""

    def __init__(self, port: Any, wire: Tripwire) -> None:
        self._port = port
        self._wire = wire

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name not in PORTS:
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            self._wire.point(f"before {name}")
            result = found(*arguments, **named)
            self._wire.point(f"after {name}")
            return result

        return call

    def write(self, chunks: Any) -> None:
        half = len(chunks) // 2
        for some in (chunks[:half], chunks[half:]):
            self._wire.point("before write")
            self._port.write(some)
            self._wire.point("after write")
