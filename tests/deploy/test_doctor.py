"""The owner's commands, run against the deployed stack from outside."""

# ruff: noqa: S603 -- the command is this repository's own

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import markdown
from tests.deploy.ministack import free_of
from tests.deploy.stack import Stack

KEY = "doctor/document.md"


def doctor(stack: Stack, *options: str) -> subprocess.CompletedProcess[str]:
    environment = free_of(os.environ) | stack.cloud.environment
    environment["SSL_CERT_FILE"] = str(stack.cloud.certificate)
    command = [Path(sys.executable).with_name("kb"), "doctor", "--stack", stack.name, *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_doctor_finds_what_is_left_over_and_removes_it(stack: Stack) -> None:
    stack.put(KEY, markdown("Doctor", "[DOCTOR]", "A document in good health."))
    stack.until_indexed(KEY)
    orphan = {
        "key": "doctor/orphan.md",
        "revision": 1,
        "fingerprint": "orphan",
        "ordinal": 0,
        "part": 1,
        "section": "",
        "domain": "doctor",
        "text": "left over",
        "vector": stack.vector_of("left over"),
    }
    with stack.index.with_chunk(orphan):
        found = doctor(stack)
        fixed = doctor(stack, "--fix")
        left = stack.index.chunks_of("doctor/orphan.md")
        after = doctor(stack)
    assert found.returncode == 4, found.stdout + found.stderr
    assert "doctor/orphan.md" in found.stdout
    assert (fixed.returncode, left) == (0, 0), fixed.stdout + fixed.stderr
    assert after.returncode == 0, after.stdout + after.stderr
    assert stack.ask("DOCTOR").body["primary"]["source"] == KEY
