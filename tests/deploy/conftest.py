"""The whole template, deployed with `make deploy` on MiniStack beside a real OpenSearch node."""

# ruff: noqa: S603 -- the commands are this repository's own

import hashlib
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy import ministack
from tests.deploy.domain import Caller, Domain
from tests.deploy.index import Index
from tests.deploy.ministack import ACCOUNT, REGION, ROOT, MiniStack
from tests.deploy.stack import EMBEDDER, Stack, cloud_client, make_function

STACK = "kb"
BUILD = ".aws-sam/test-deploy/build"
EMBEDDING = Path(__file__).parent / "embedding" / "app.py"
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of its own is made in it
ENOUGH = 4 * 2**30
"""Bytes that all functions together may take, and much more than they do."""
MACHINE = "aarch64" if platform.machine() in ("aarch64", "arm64") else "x86_64"
WHEELS = {"Darwin": f"{MACHINE}-apple-darwin", "Linux": f"{MACHINE}-manylinux_2_28"}


@pytest.fixture(scope="session", autouse=True)
def node() -> str:
    """Address of the OpenSearch node beside which the tests run."""
    endpoint = os.environ.get("OPENSEARCH_TEST_ENDPOINT")
    if not endpoint or not ministack.PROGRAM.exists():
        pytest.skip("make test-deploy sets up what these tests need")
    return endpoint


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """In memory where there is room: each process of a function unpacks 4,000 files into it."""
    # A terminated run leaves by the same door as a finished one, so that what it started ends too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ENOUGH
    place = MEMORY if has_room else None
    with tempfile.TemporaryDirectory(prefix="kb-deploy-", dir=place) as name:
        yield Path(name)


OWNER = Caller("test", "test", f"arn:aws:iam::{ACCOUNT}:root")
"""Who deploys: not by a role's policies."""


class Accounts:
    """Who signs requests to the domain, and what that one may do there, as the account has it."""

    def __init__(self) -> None:
        self._callers: dict[str, Caller] = {}
        self._clients: dict[str, Any] = {}
        self._decisions: dict[tuple[str, str, str], bool] = {}

    def open(self, cloud: MiniStack) -> None:
        """From now on, ask there."""
        self._clients = {
            name: cloud_client(cloud, name) for name in ("iam", "lambda", "opensearch")
        }

    def caller_of(self, access_key: str) -> Caller | None:
        """The function with this key.

        MiniStack makes a function's credentials of its ARN and its role's, in
        ministack.core.lambda_runtime.execution_credentials, and tells them nobody else.
        """
        if access_key == OWNER.access_key:
            return OWNER
        if access_key not in self._callers:
            for function in self._functions():
                seed = f"{function['FunctionArn']}:{function['Role']}"
                digest = hashlib.sha256(seed.encode()).hexdigest()
                secret = hashlib.sha256(f"secret:{digest}".encode()).hexdigest()
                caller = Caller(f"ASIA{digest[:16].upper()}", secret, function["Role"])
                self._callers[caller.access_key] = caller
        return self._callers.get(access_key)

    def may(self, role: str, action: str, path: str) -> bool:
        if role == OWNER.role:
            return True
        asked = role, action, path
        if asked not in self._decisions:
            self._decisions[asked] = self._decide(*asked)
        return self._decisions[asked]

    def forget(self) -> None:
        """Policies or the domain changed."""
        self._decisions.clear()

    def _decide(self, role: str, action: str, path: str) -> bool:
        (domain,) = self._clients["opensearch"].list_domain_names()["DomainNames"]
        arn = f"arn:aws:es:{REGION}:{ACCOUNT}:domain/{domain['DomainName']}{path}"
        answer = self._clients["iam"].simulate_principal_policy(
            PolicySourceArn=role, ActionNames=[action], ResourceArns=[arn]
        )
        return bool(answer["EvaluationResults"][0]["EvalDecision"] == "allowed")

    def _functions(self) -> Iterator[dict[str, Any]]:
        """All versions of all functions."""
        functions = self._clients["lambda"]
        for page in functions.get_paginator("list_functions").paginate():
            for each in page["Functions"]:
                yield from functions.list_versions_by_function(FunctionName=each["FunctionName"])[
                    "Versions"
                ]


@pytest.fixture(scope="session")
def accounts() -> Accounts:
    return Accounts()


@pytest.fixture(scope="session")
def domain(node: str, folder: Path, accounts: Accounts) -> Iterator[Domain]:
    with Domain(node, folder, accounts.caller_of, accounts.may).serving() as domain:
        yield domain


@pytest.fixture(scope="session")
def cloud(folder: Path, domain: Domain, accounts: Accounts) -> Iterator[MiniStack]:
    certificate, key = domain.certificate, domain.key
    with ministack.running(folder, certificate, key, domain.endpoint) as cloud:
        accounts.open(cloud)
        yield cloud


@pytest.fixture(scope="session")
def stack(cloud: MiniStack, node: str, accounts: Accounts) -> Stack:
    """Deployed as the README says, for this machine's Python, with a domain that it makes."""
    embedder = make_function(cloud, EMBEDDER, EMBEDDING)
    make_deploy(cloud, f"EmbeddingFunctionArn={embedder} IngestConcurrency=3 LogLevel=INFO")
    return Stack(cloud, STACK, Index(node), accounts.forget)


def make_deploy(cloud: MiniStack, parameters: str) -> None:
    make = shutil.which("make") or "make"
    python = subprocess.run(
        [ministack.PROGRAM.with_name("python"), "-V"], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    environment = ministack.free_of(os.environ) | cloud.environment
    environment |= {
        "LAYER_PYTHON": ".".join(python.split(".")[:2]),
        "LAYER_PLATFORM": WHEELS[platform.system()],
        # Every process of a function unpacks the layers anew, and would compile them anew.
        "UV_COMPILE_BYTECODE": "1",
        "PYC_INVALIDATION_MODE": "UNCHECKED_HASH",
        "SAM_CLI_POLL_DELAY": "1",
    }
    done = subprocess.run(
        [
            make,
            "--no-print-directory",
            "deploy",
            f"BUILD={BUILD}",
            f"STACK={STACK}",
            f"ARCHITECTURE={'arm64' if MACHINE == 'aarch64' else 'x86_64'}",
            f"PARAMETERS={parameters}",
        ],
        cwd=ROOT,
        env=environment,
        input="y\n",  # the changes are to be confirmed
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
