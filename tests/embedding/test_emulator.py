"""The handler under the Lambda runtime and its interface emulator, called over HTTP."""

import http.client
import importlib.util
import json
import os
import platform
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import CONTAINER, Tiny
from model import Encoder
from xlm_r import TINY, random_weights, write_encoder

INVOKE = "/2015-03-31/functions/function/invocations"
MOST = 6 * 1024 * 1024
"""Bytes of a request that Lambda takes."""
EMULATORS = {"x86_64": "aws-lambda-rie-x86_64", "aarch64": "aws-lambda-rie-arm64"}


def emulator() -> Path:
    package = importlib.util.find_spec("samcli")
    assert package
    assert package.origin
    program = EMULATORS.get(platform.machine(), "")
    path = Path(package.origin).parent / "local" / "rapid" / program
    if sys.platform != "linux" or not program:
        pytest.skip(f"there is no emulator for {sys.platform} on {platform.machine()}")
    return path


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def running(model: Path) -> Iterator[int]:
    """The function with this model, as Lambda starts it; yields the emulator's port."""
    port, api = free_port(), free_port()
    runtime = [sys.executable, "-m", "awslambdaric", "app.handler"]
    process = subprocess.Popen(  # noqa: S603 - the emulator and this Python
        [
            emulator(),
            *("--runtime-interface-emulator-address", f"127.0.0.1:{port}"),
            *("--runtime-api-address", f"127.0.0.1:{api}"),
            *runtime,
        ],
        cwd=CONTAINER,
        env={**os.environ, "MODEL_FOLDER": str(model), "AWS_LAMBDA_FUNCTION_TIMEOUT": "60"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_for(port, process)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    while process.poll() is None:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise AssertionError(f"the emulator ended with {process.returncode}")


def invoke(port: int, body: bytes) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("POST", INVOKE, body)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def texts(*given: str) -> bytes:
    return json.dumps({"texts": given}).encode()


@pytest.fixture(scope="module")
def port(tiny_int8: Path) -> Iterator[int]:
    with running(tiny_int8) as port:
        yield port


def test_the_cold_and_the_warm_call_answer_the_same(port: int, tiny_int8: Path) -> None:
    cold, warm = (invoke(port, texts("知识", "a document")) for _ in range(2))
    expected = Encoder(tiny_int8, threads=1, max_tokens=8192).embed(["知识", "a document"])
    assert cold == warm
    assert (cold["model"], cold["truncated"]) == ("BAAI/bge-m3", [])
    assert np.abs(np.array(cold["vectors"]) - expected.vectors).max() < 1e-6


def test_bad_input_is_an_answer(port: int) -> None:
    assert invoke(port, b'{"texts": ["\\ud83d"]}') == {
        "error": {"code": "invalid_input", "message": "texts[0] holds a lone surrogate"}
    }


def test_a_request_near_the_payload_limit_is_answered(port: int) -> None:
    body = texts("知识", "a" * (MOST - 100))
    assert MOST - 100 < len(body) < MOST
    answer = invoke(port, body)
    assert (len(answer["vectors"]), answer["truncated"]) == (2, [1])


def test_64_texts_fit_in_an_answer(port: int) -> None:
    answer = invoke(port, texts(*["文档 的 数据" * 20] * 64))
    assert np.array(answer["vectors"]).shape == (64, TINY.hidden)


def test_a_failing_model_is_an_outage_and_no_answer(copied: Path) -> None:
    weights = random_weights(TINY, seed=7)
    weights["layer.1.output.norm"][:] = 0
    weights["layer.1.output.norm.bias"][:] = 0
    write_encoder(copied, TINY, weights)
    with running(copied) as port:
        answer = invoke(port, texts("知识"))
        again = invoke(port, texts("知识"))
    assert answer["errorType"] == again["errorType"] == "ArithmeticError"
    assert "vectors" not in answer


def test_a_missing_model_is_an_outage_and_no_answer(tmp_path: Path, tiny: Tiny) -> None:
    with running(tmp_path) as port:
        answer = invoke(port, texts("知识"))
    assert "errorType" in answer
    assert "vectors" not in answer
