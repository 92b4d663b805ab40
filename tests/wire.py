"""What goes to AWS, seen, slowed and broken at botocore's clients."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError
from botocore.httpsession import URLLib3Session

Fault = Callable[[AWSPreparedRequest], AWSResponse | None]
"""Gets a request; raises, or answers in the service's stead, or returns None to let it pass."""


def connect_timeout(_: AWSPreparedRequest) -> AWSResponse:
    raise ConnectTimeoutError(endpoint_url="https://dynamodb.example")


def read_timeout(_: AWSPreparedRequest) -> AWSResponse:
    raise ReadTimeoutError(endpoint_url="https://dynamodb.example")


def first_reply_lost() -> Fault:
    """The service does what the first request says, but its reply never comes."""
    sent: list[AWSResponse] = []

    def fault(request: AWSPreparedRequest) -> None:
        if not sent:
            sent.append(URLLib3Session().send(request))
            raise ReadTimeoutError(endpoint_url="https://dynamodb.example")

    return fault


def answered(body: object, status: int = 200) -> AWSResponse:
    """The service's reply."""
    return AWSResponse("https://dynamodb.example", status, {}, _Raw(json.dumps(body).encode()))


def refused(code: str, status: int = 400) -> Fault:
    """An error of the service itself."""
    error = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "no"}
    return lambda _: answered(error, status)


@dataclass(frozen=True, slots=True)
class _Raw:
    body: bytes

    def stream(self) -> Iterator[bytes]:
        yield self.body


@dataclass(slots=True)
class Seen:
    """One call; times are seconds of one clock."""

    name: str
    """`Query SessionTable`, `embed`, `search`."""
    started: float
    ended: float = 0


@dataclass(slots=True)
class Wire:
    """Sees clients made after it; `delay` (seconds) holds every call, so that calls overlap."""

    calls: list[Seen] = field(default_factory=list)
    delay: float = 0
    _faults: dict[str, Fault] = field(default_factory=dict)
    _open: dict[int, Seen] = field(default_factory=dict)

    def fail(self, name: str, fault: Fault) -> None:
        """Break every call whose name contains this: an operation, a table, or both."""
        self._faults[name] = fault

    def heal(self) -> None:
        self._faults.clear()

    @property
    def names(self) -> list[str]:
        return [call.name for call in self.calls]

    def sequential(self) -> int:
        """Most calls of which each began after the one before had ended."""
        count, end = 0, 0.0
        for call in sorted(self.calls, key=lambda call: call.ended):
            if call.started >= end:
                count, end = count + 1, call.ended
        return count

    @contextmanager
    def seeing(self, name: str) -> Iterator[None]:
        """A call that is not AWS's."""
        self._begin(name)
        try:
            time.sleep(self.delay)
            yield
        finally:
            self._end()

    def before_send(self, event_name: str, request: Any, **_: Any) -> AWSResponse | None:
        operation = event_name.rpartition(".")[2]
        name = f"{operation} {_table_of(json.loads(request.body))}"
        self._begin(name)
        time.sleep(self.delay)
        for part, fault in self._faults.items():
            if part in name:
                return fault(request)
        return None

    def received(self, **_: Any) -> None:
        self._end()

    def _begin(self, name: str) -> None:
        call = Seen(name, time.perf_counter())
        self._open[threading.get_ident()] = call
        self.calls.append(call)

    def _end(self) -> None:
        self._open[threading.get_ident()].ended = time.perf_counter()


def _table_of(body: dict[str, Any]) -> str:
    name = body.get("TableName") or next(iter(body.get("RequestItems", {})), "")
    return str(name).rpartition("-")[2]


@contextmanager
def watched() -> Iterator[Wire]:
    """A wire of the DynamoDB clients that the default session makes meanwhile."""
    wire = Wire()
    if boto3.DEFAULT_SESSION is None:
        boto3.setup_default_session()
    events = boto3.DEFAULT_SESSION.events
    events.register("before-send.dynamodb", wire.before_send)
    events.register("response-received.dynamodb", wire.received)
    yield wire
    events.unregister("before-send.dynamodb", wire.before_send)
    events.unregister("response-received.dynamodb", wire.received)


OUTSIDE = {"embed_question", "prepare", "search", "search_words", "rarity"}
"""Methods of an embedder or index that go over the network in AWS."""


class Watched:
    """An embedder or index whose calls the wire sees."""

    def __init__(self, port: Any, wire: Wire) -> None:
        self._port = port
        self._wire = wire

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name not in OUTSIDE:
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            with self._wire.seeing(name):
                return found(*arguments, **named)

        return call
