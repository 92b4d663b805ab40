"""Stands before an OpenSearch node as Amazon's front of a domain does.

Over TLS it takes requests signed with a function's credentials, lets the function's role decide,
by action, index and path, and hands on what is allowed. It answers in Amazon's words.
"""

import hashlib
import hmac
import http.client
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

HOST = "127.0.0.1"
SERVICE = "es"


@dataclass(frozen=True, slots=True)
class Caller:
    """A function's credentials and the role that they are of."""

    access_key: str
    secret: str
    role: str
    """ARN."""


class Domain:
    """`endpoint` is host and port, `certificate` the file that clients must trust.

    `caller_of` gives the owner of an access key, or None; `may` tells whether a role may do an
    action, such as es:ESHttpGet, on a path of the domain.
    """

    def __init__(
        self,
        node: str,
        folder: Path,
        caller_of: Callable[[str], Caller | None],
        may: Callable[[str, str, str], bool],
    ) -> None:
        self.certificate = folder / "domain.pem"
        self.key = folder / "domain.key"
        _make_certificate(self.certificate, self.key)
        self.refused: list[tuple[str, str]] = []
        """Method and path of every request that was not handed on."""
        self._server = _Server((HOST, 0), _handler(self, urlsplit(node).netloc))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        # Handshakes are made in the connection's own thread, so that none holds up the others.
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.endpoint = f"{HOST}:{self._server.server_port}"
        self._caller_of = caller_of
        self._may = may

    @contextmanager
    def serving(self) -> Iterator["Domain"]:
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def refusal(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> str | None:
        """Why Amazon would answer 403, or None."""
        caller = self._caller_of(_credential(headers).partition("/")[0])
        if caller is None:
            return "The security token included in the request is invalid."
        if not is_signed_by(caller, method, target, headers, body):
            return "The request signature we calculated does not match the signature you provided."
        action = f"{SERVICE}:ESHttp{method.title()}"
        if self._may(caller.role, action, urlsplit(target).path):
            return None
        return (
            f"User: {caller.role} is not authorized to perform: {action} because no"
            f" identity-based policy allows the {action} action"
        )


def is_signed_by(
    caller: Caller, method: str, target: str, headers: Mapping[str, str], body: bytes
) -> bool:
    """Signature Version 4, worked out anew from the request as it arrived."""
    sent = {name.lower(): value.strip() for name, value in headers.items()}
    given = dict(
        part.strip().partition("=")[::2]
        for part in sent.get("authorization", "").partition(" ")[2].split(",")
    )
    scope = given.get("Credential", "").partition("/")[2]
    names = given.get("SignedHeaders", "").split(";")
    if not {"host", "x-amz-date"} <= set(names) or not scope.endswith(f"/{SERVICE}/aws4_request"):
        return False
    url = urlsplit(target)
    pairs = sorted((quote(k, "-_.~"), quote(v, "-_.~")) for k, v in parse_qsl(url.query, True))
    canonical = "\n".join(
        (
            method,
            quote(url.path, "/-_.~"),
            "&".join(f"{name}={value}" for name, value in pairs),
            *(f"{name}:{sent.get(name, '')}" for name in names),
            "",
            ";".join(names),
            hashlib.sha256(body).hexdigest(),
        )
    )
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = "\n".join(("AWS4-HMAC-SHA256", sent["x-amz-date"], scope, digest))
    key = b"AWS4" + caller.secret.encode()
    for part in (*scope.split("/"), text):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.compare_digest(key.hex(), given.get("Signature", ""))


def _credential(headers: Mapping[str, str]) -> str:
    return headers.get("Authorization", "").partition("Credential=")[2].partition(",")[0]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that is gone, as a function that ends is, is no news."""


def _handler(domain: Domain, node: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        upstream: http.client.HTTPConnection

        def setup(self) -> None:
            super().setup()
            self.upstream = http.client.HTTPConnection(node, timeout=60)

        def finish(self) -> None:
            self.upstream.close()
            super().finish()

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            sent = dict(self.headers.items())
            if reason := domain.refusal(self.command, self.path, sent, body):
                domain.refused.append((self.command, urlsplit(self.path).path))
                self._answer(403, json.dumps({"Message": reason}).encode())
                return
            try:
                self.upstream.request(
                    self.command,
                    self.path,
                    body,
                    {"content-type": self.headers.get("content-type", "application/json")},
                )
                answer = self.upstream.getresponse()
                self._answer(answer.status, answer.read())
            except OSError:
                self.upstream.close()
                self._answer(503, b'{"message": "the node does not answer"}')

        do_POST = do_PUT = do_DELETE = do_HEAD = do_GET

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json; charset=UTF-8")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


def _make_certificate(certificate: Path, key: Path) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address(HOST))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(private, SHA256())
    )
    certificate.write_bytes(made.public_bytes(Encoding.PEM))
    key.touch(mode=0o600)
    key.write_bytes(
        private.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    )
