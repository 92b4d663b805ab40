"""The README's commands do what the README says, on this machine, as a newcomer would run them."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.M | re.S)
COMMANDS = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines() if line]
RUN_ELSEWHERE = {
    "make test",  # what runs this test
}


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[int, str]]:
    """`make run` on a free port: the port, and what stood on the screen until it served."""
    assert shutil.which("make")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(  # noqa: S603 - the README's own command
        ["make", "run", f"PORT={port}"],  # noqa: S607
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"COLUMNS": "200"},
        start_new_session=True,
    )
    assert process.stdout is not None
    screen = ""
    for line in process.stdout:
        screen += line
        if "Serving" in line:
            break
    try:
        yield port, screen
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.stdout.read()
        process.stdout.close()
        process.wait()


def test_every_command_is_run_here_or_is_known_to_run_elsewhere() -> None:
    run_here = {c for c in COMMANDS if c == "make run" or c.startswith("curl -s http://127.0.0.1")}
    assert set(COMMANDS) - run_here == RUN_ELSEWHERE


def test_make_run_prints_what_the_readme_shows(running: tuple[int, str]) -> None:
    port, screen = running
    shown = next(text for kind, text in BLOCKS if kind == "")
    printed = _without_figures(screen)
    missing = [
        line
        for line in shown.splitlines()
        if line.strip() not in ("", "…") and _without_figures(line) not in printed
    ]
    assert (missing, f":{port} " in screen) == ([], True)


def test_curl_gets_an_answer_of_the_shape_that_the_readme_shows(running: tuple[int, str]) -> None:
    port, _ = running
    [command] = [c for c in COMMANDS if c.startswith("curl")]
    words = shlex.split(command.replace(":8000", f":{port}"))
    answer = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)  # noqa: S603
    shown = json.loads(next(text for kind, text in BLOCKS if kind == "json"))
    assert _shape(answer) == _shape(shown)
    assert answer["relevanceLevel"] == shown["relevanceLevel"]


def _without_figures(text: str) -> str:
    """Times, ports and how many chunks were embedded differ from run to run."""
    return re.sub(r"\d+(\.\d+)?", "#", text)


def _shape(value: object) -> object:
    if isinstance(value, dict):
        return {name: _shape(inner) for name, inner in value.items()}
    return None if value is None else type(value).__name__


def test_settings_table_is_the_one_of_the_code() -> None:
    shown = subprocess.run(  # noqa: S603 - the README's own command
        [Path(sys.executable).with_name("kb"), "settings", "--check", "README.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (shown.returncode, shown.stderr) == (0, "")
