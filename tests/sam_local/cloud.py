"""What functions in containers call, at the addresses of env.json: moto, an embedder, a node.

moto has the stack of template.yaml, the embedder is tests/deploy/embedding behind Lambda's own
path, the vector index a real OpenSearch node. Containers see this machine's loopback as their own,
so that each is relayed to the address by which they reach this machine.
"""

import json
import re
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kb.local.cloud import LocalCloud, MotoServer

from tests.deploy.embedding.app import handler
from tests.opensearch.node import Node

ROOT = Path(__file__).parents[2]
ENVIRONMENT: dict[str, str] = json.loads(
    Path(__file__).with_name("env.json").read_text(encoding="utf-8")
)["Parameters"]
INVOCATION = re.compile(r"/2015-03-31/functions/[^/]+/invocations")


@dataclass(frozen=True, slots=True)
class Cloud:
    """The local cloud as this process calls it."""

    stack: LocalCloud
    gateway: str
    """Address on which its parts listen for containers."""


@contextmanager
def cloud(gateway: str) -> Iterator[Cloud]:
    """Run all three; `gateway` is this machine as containers see it.

    Raises OSError where a port of env.json is taken, NodeFailed where there is no OpenSearch node.
    """
    host = gateway if _is_ours(gateway) else "127.0.0.1"  # Docker Desktop leads there by itself
    moto = MotoServer()
    embedder = _Embedder(("127.0.0.1", 0), _Invocations)
    embedding = threading.Thread(target=embedder.serve_forever, daemon=True)
    embedding.start()
    try:
        stack = LocalCloud(moto, ROOT / "template.yaml")
        with (
            _relay(host, "AWS_ENDPOINT_URL", urlsplit(moto.endpoint).port or 0),
            _relay(host, "AWS_ENDPOINT_URL_LAMBDA", embedder.server_port),
            _node() as port,
            _relay(host, "OPENSEARCH_ENDPOINT", port),
        ):
            yield Cloud(stack, host)
    finally:
        embedder.shutdown()
        embedding.join()
        embedder.server_close()
        moto.close()


@contextmanager
def _node() -> Iterator[int]:
    node = Node.create()
    try:
        with warnings.catch_warnings():
            # The node knows its process by a file, and drops the object.
            warnings.simplefilter("ignore", ResourceWarning)
            node.start()
        yield node.port
    finally:
        node.remove()


def _is_ours(address: str) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


@contextmanager
def _relay(host: str, name: str, port: int) -> Iterator[None]:
    """Take connections at env.json's port `name` and carry them to `port` of 127.0.0.1."""
    wanted = urlsplit(ENVIRONMENT[name]).port
    try:
        listener = socket.create_server((host, wanted or 0))
    except OSError as error:
        raise OSError(f"port {wanted} of {host} is taken; {name} in env.json has it") from error
    with closing(listener):
        threading.Thread(target=_accept, args=(listener, port), daemon=True).start()
        try:
            yield
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes accept


def _accept(listener: socket.socket, port: int) -> None:
    with suppress(OSError):  # closed
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_carry_both, args=(client, port), daemon=True).start()


def _carry_both(client: socket.socket, port: int) -> None:
    with (
        closing(client),
        suppress(OSError),
        socket.create_connection(("127.0.0.1", port)) as server,
    ):
        back = threading.Thread(target=_carry, args=(server, client), daemon=True)
        back.start()
        _carry(client, server)
        back.join()


def _carry(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):  # either end is gone
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


class _Embedder(ThreadingHTTPServer):
    daemon_threads = True


class _Invocations(BaseHTTPRequestHandler):
    """Lambda's Invoke, of one function whatever its name."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers.get("content-length", 0)))
        if not INVOCATION.fullmatch(urlsplit(self.path).path):
            self.send_error(404)
            return
        body = json.dumps(handler(json.loads(sent), None)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass
