"""MiniStack as a process of its own: AWS on 127.0.0.1, with role policies enforced.

It runs functions with its own interpreter and hands them its environment, so both are lean.
"""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
REGION = "us-east-1"
ACCOUNT = "000000000000"
ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / ".venv-ministack" / "bin" / "ministack"
RUNTIME = Path(__file__).with_name("runtime")
READY_WITHIN = 60
"""Seconds; about one on an idle machine."""


@dataclass(frozen=True, slots=True)
class MiniStack:
    """A running one."""

    port: int
    certificate: Path

    @property
    def endpoint(self) -> str:
        return f"https://{HOST}:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """What a client needs: boto3, or sam."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_CA_BUNDLE": str(self.certificate),
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }


@contextmanager
def running(folder: Path, certificate: Path, key: Path, domain: str) -> Iterator[MiniStack]:
    """One without any data; it ends, with all functions that it started, with the context.

    `certificate` and `key` are PEM files for 127.0.0.1: the bucket's policy wants TLS, as AWS has
    it. `domain` is the host and port of every OpenSearch domain that is made.
    """
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    temporary = folder / "tmp"
    temporary.mkdir()
    environment = {
        "AUTH": "true",
        "BIND_HOST": HOST,
        "MINISTACK_HOST": HOST,
        "GATEWAY_PORT": str(port),
        "USE_SSL": "1",
        "MINISTACK_SSL_CERT": str(certificate),
        "MINISTACK_SSL_KEY": str(key),
        "MINISTACK_OPENSEARCH_ENDPOINT": domain,
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "TMPDIR": str(temporary),
        # For the functions:
        "SSL_CERT_FILE": str(certificate),
        "AWS_CA_BUNDLE": str(certificate),
        "PYTHONPATH": str(RUNTIME),
    }
    log = folder / "ministack.log"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own environment's program
            [PROGRAM],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C reaches the tests alone, which end it
        )
    try:
        _wait_until_open(port, process, log)
        yield MiniStack(port, certificate)
    finally:
        # With its functions, and at once: asked to end, it waits a minute for open connections.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_until_open(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    give_up = time.monotonic() + READY_WITHIN
    while True:
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) == 0:
                return
        if process.poll() is not None or time.monotonic() > give_up:
            raise RuntimeError("MiniStack does not start:\n" + log.read_text()[-2000:])
        time.sleep(0.1)


def free_of(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what else would lead a client to an account of somebody's."""
    return {name: value for name, value in environment.items() if not name.startswith("AWS_")}
