"""A system of the tests behind HTTP and its queue, as kb serve has it, for the commands."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import kb.wiring
import pytest
from kb.local.event_source import EventSource
from kb.local.functions import handler_of
from kb.local.http import Gateway

from tests.conftest import System


@contextmanager
def serving(system: System, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of the system's API, by the lookup function's own handler."""
    parts = system.new_lookup()
    monkeypatch.setattr(kb.wiring, "lookup_parts", lambda: parts)
    listener = socket.create_server(("127.0.0.1", 0))
    server = Gateway(handler_of("lookup"), system.environment).serve(listener)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        listener.close()


@contextmanager
def ingesting(system: System, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take what arrives in the queue to the ingest function's own handler."""
    parts = system.new_ingest()
    monkeypatch.setattr(kb.wiring, "ingest_parts", lambda: parts)
    source = EventSource(
        system.cloud.client("sqs"),
        system.cloud.queue_url,
        handler_of("ingest"),
        workers=2,
        batch_size=3,
    )
    source.start()
    try:
        yield
    finally:
        source.stop()


@dataclass(slots=True)
class Stub:
    """An HTTP server that gives every request the same answer, and keeps what was asked."""

    url: str
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    """Method, target, headers in lower case, body."""


@contextmanager
def answering(
    status: int, body: str, *, late: float = 0, busy: int = 0, **headers: str
) -> Iterator[Stub]:
    """Every answer comes after `late` seconds; the first `busy` ones are 429 instead."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            length = int(self.headers.get("content-length", 0))
            sent = {name.lower(): value for name, value in self.headers.items()}
            stub.asked.append((self.command, self.path, sent, self.rfile.read(length)))
            time.sleep(late)
            self.send_response(429 if len(stub.asked) <= busy else status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("content-length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        do_POST = do_DELETE = do_GET

        def handle(self) -> None:
            with suppress(ConnectionError):  # whoever asked did not wait
                super().handle()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stub = Stub(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
