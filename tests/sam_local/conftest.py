"""One set-up for all these tests, and the SAM CLI as a person calls it."""

# ruff: noqa: S603 -- the command is the SAM CLI

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.sam_local.cloud import ROOT, Cloud
from tests.sam_local.engine import NoEngine
from tests.sam_local.set_up import SAM, ready

WANTED = "SAM_LOCAL_TEST"
not_tested: list[str] = []
"""Why these tests were skipped though they were wanted."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it once, not once a test."""
    for reason in not_tested:
        terminalreporter.write_line(f"sam local is not tested here: {reason}")


@pytest.fixture(scope="session")
def running() -> Iterator[Cloud]:
    """The cloud, with a Docker engine and built functions; skips where no engine can run."""
    if WANTED not in os.environ:
        pytest.skip("make test-sam-local sets up what these tests need")
    try:
        with ready() as cloud:
            yield cloud
    except NoEngine as absent:
        not_tested.append(str(absent))
        pytest.skip(str(absent))


@dataclass(frozen=True, slots=True)
class Sam:
    """`sam local` with samconfig.toml's defaults."""

    log: Path
    """What functions and the CLI say."""

    def invoke(self, function: str, event: Path) -> Any:
        """What the function returns."""
        with self.log.open("ab") as log:
            done = subprocess.run(
                self.command("invoke", function, "--event", str(event)),
                cwd=ROOT,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=log,
                check=False,
            )
        assert done.returncode == 0, self.log.read_text(errors="replace")[-3000:]
        return json.loads(done.stdout)

    def command(self, *arguments: str) -> list[str]:
        return [str(SAM), "local", *arguments]

    @property
    def environment(self) -> dict[str, str]:
        # Its lock on the image lies there, and one that a killed run left would hold up the next.
        return os.environ | {"SAM_CLI_TELEMETRY": "0", "TMPDIR": str(self.log.parent)}


@pytest.fixture(scope="session")
def sam(running: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Sam:
    assert shutil.which(SAM)
    return Sam(tmp_path_factory.mktemp("sam") / "log")


def notification(*keys: str) -> dict[str, Any]:
    """What S3 says of these keys, which need no encoding."""
    return {"Records": [{"eventSource": "aws:s3", "s3": {"object": {"key": key}}} for key in keys]}
