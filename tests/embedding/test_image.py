"""The image itself, built with a tiny model and run without a network, as a stranger, read-only.

Needs a Docker engine that reaches the base image and Python's packages; `make test-image` runs it.
"""

import functools
import hashlib
import http.server
import json
import shutil
import subprocess
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import CONTAINER, Tiny
from model import Encoder
from xlm_r import TINY

DOCKER = shutil.which("docker") or ""
FILES = ("model.onnx", "model.onnx_data", "Constant_7_attr__value", "tokenizer.json")
INVOKE = """
import sys, urllib.request
url = "http://127.0.0.1:8080/2015-03-31/functions/function/invocations"
sys.stdout.buffer.write(urllib.request.urlopen(url, sys.stdin.buffer.read()).read())
"""


def docker(*arguments: str, given: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run([DOCKER, *arguments], input=given, capture_output=True, check=False)  # noqa: S603 - docker


def has_engine() -> bool:
    return bool(DOCKER) and docker("version", "--format", "{{.Server.Version}}").returncode == 0


pytestmark = pytest.mark.skipif(not has_engine(), reason="no Docker engine answers")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def url(tiny: Tiny) -> Iterator[str]:
    """A server on this machine that has the tiny model as its revision "."."""
    handler = functools.partial(Quiet, directory=tiny.folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def image(url: str, tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    context = tmp_path_factory.mktemp("context") / "embedding"
    shutil.copytree(CONTAINER, context, ignore=shutil.ignore_patterns("__pycache__"))
    digests = {name: hashlib.sha256((tiny.folder / name).read_bytes()) for name in FILES}
    lines = [f"{digest.hexdigest()}  {name}\n" for name, digest in digests.items()]
    (context / "tiny.sha256").write_text("".join(lines), "utf-8")
    tag = f"kb-embedding-test:{uuid.uuid4().hex}"
    values = {"MODEL_URL": url, "MODEL_REVISION": ".", "MODEL_CHECKSUMS": "tiny.sha256"}
    arguments = [f"--build-arg={name}={value}" for name, value in values.items()]
    built = docker("build", "--network=host", f"--tag={tag}", *arguments, str(context))
    assert built.returncode == 0, (built.stdout + built.stderr).decode()[-4000:]
    yield tag
    docker("image", "rm", tag)


@pytest.fixture(scope="module")
def container(image: str) -> Iterator[str]:
    limits = ["--network=none", "--read-only", "--tmpfs=/tmp", "--user=65534"]
    started = docker("run", "--detach", *limits, image)
    assert started.returncode == 0, started.stderr.decode()
    name = started.stdout.decode().strip()
    yield name
    docker("rm", "--force", name)


def invoke(container: str, event: object) -> Any:
    python = ["exec", "--interactive", container, "python3", "-c", INVOKE]
    called = docker(*python, given=json.dumps(event).encode())
    assert called.returncode == 0, (called.stderr + docker("logs", container).stdout).decode()
    return json.loads(called.stdout)


def test_the_container_answers_with_the_models_vectors(container: str, tiny_int8: Path) -> None:
    texts = ["知识检索", "the finding of a document"]
    answer = invoke(container, {"texts": texts})
    expected = Encoder(tiny_int8, threads=1, max_tokens=8192).embed(texts).vectors
    assert np.array(answer["vectors"]).shape == (2, TINY.hidden)
    assert np.abs(np.array(answer["vectors"]) - expected).max() < 1e-6


def test_the_container_names_bad_input(container: str) -> None:
    assert invoke(container, {"texts": ["知识", " "]}) == {
        "error": {"code": "invalid_input", "message": "texts[1] is blank"}
    }


def test_the_container_holds_nothing_of_the_build(container: str) -> None:
    listed = docker(
        "exec", container, "python3", "-c", "import os; print(os.listdir('/opt/model'))"
    )
    modules = docker("exec", container, "python3", "-c", "import onnx")
    assert set(json.loads(listed.stdout.decode().replace("'", '"'))) == {
        "model.onnx",
        "model.onnx_data",
        "tokenizer.json",
    }
    assert b"No module named 'onnx'" in modules.stderr
