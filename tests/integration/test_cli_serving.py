"""kb serve: what keeps it from starting is one line; its screen in a pipe and in a terminal."""

import io
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import kb
import pytest
from kb.cli import run
from kb.documents import CatalogRow, Status
from kb.local.serve_screen import ServeScreen
from rich.console import Console

from tests.conftest import markdown

PROGRAM = "from kb.cli import main; main()"
ROWS = [
    CatalogRow("a/long " + "name" * 30 + ".md", 1, Status.INDEXED, 0, parts=3),
    CatalogRow("[red]b\n.md", 1, Status.FAILED, 0, reason="not a text\x1b[2J: 100%"),
    CatalogRow("c.md", 2, Status.DELETED, 0),
]


def test_a_port_in_use_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert run(["serve", "--folder", str(tmp_path), "--port", port]) == 1
    assert capsys.readouterr().err == f"kb: port {port} is in use; name another with --port\n"


@pytest.mark.parametrize("port", ["70000", "-1"])
def test_a_number_that_is_no_port_is_one_line(
    port: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", "--folder", str(tmp_path), "--port", port]) == 1
    assert capsys.readouterr().err == f"kb: port {port} cannot be taken; name another with --port\n"


def test_a_folder_that_cannot_be_read_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "none"
    assert run(["serve", "--folder", str(folder)]) == 1
    assert capsys.readouterr().err == (
        f"kb: {folder} is no folder that can be read; name one with --folder\n"
    )


def started(folder: Path, **environment: str) -> subprocess.Popen[bytes]:
    arguments = ["serve", "--folder", str(folder), "--port", "0"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    place = {"PYTHONPATH": str(Path(kb.__file__).parents[1]), "KB_CACHE": str(folder / ".kb")}
    return subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=kept | place | environment,
    )


def test_wrong_settings_of_both_functions_are_named_in_one_line(tmp_path: Path) -> None:
    wrong = {"CHUNK_SIZE": "1", "SEARCH_K": "x", "LANGUAGE": "fr"}
    out, complaints = (process := started(tmp_path, **wrong)).communicate()
    assert (process.returncode, out, complaints.count(b"\n")) == (1, b"", 1)
    for name in wrong:
        assert f"{name}: ".encode() in complaints


def test_it_serves_a_folder_until_ctrl_c_with_plain_lines_in_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "disk.md").write_text(markdown("Disk", "[disk alarm]", "# One\n\nText."))
    process = started(tmp_path)
    assert process.stdout is not None
    lines = []
    while not lines or "Watching" not in lines[-1]:
        line = process.stdout.readline().decode()
        assert line, process.communicate()
        lines.append(line.rstrip("\n"))
    url = next(line.split()[1] for line in lines if line.startswith("Serving "))
    with urllib.request.urlopen(f"{url}/health") as answer:  # noqa: S310 - this machine
        assert answer.status == 200
    process.send_signal(signal.SIGINT)
    rest, complaints = process.communicate()
    assert (process.returncode, rest, complaints) == (0, b"Stopping.\n", b"")
    assert lines[0] == "  indexed        disk.md  1 part"
    assert lines[1].startswith("1 document in ")
    assert lines[1].endswith(" s: 1 indexed. 1 chunk embedded now, 0 kept from earlier runs.")
    assert lines[3:5] == ["Question disk alarm", "Answer   PRECISE  disk.md  part 1 of 1"]
    assert "\x1b" not in "".join(lines)


def shown(terminal: bool) -> str:
    stream = io.StringIO()
    console = Console(
        file=stream, width=80, soft_wrap=not terminal, force_terminal=terminal, highlight=False
    )
    screen = ServeScreen(console)
    screen.warnings(["x.md: cannot be read (Permission denied)"])
    screen.rows(ROWS)
    return stream.getvalue()


def test_lines_do_not_wrap_in_a_pipe_and_names_are_no_markup() -> None:
    assert shown(terminal=False).splitlines() == [
        "  warning        x.md: cannot be read (Permission denied)",
        f"  indexed        a/long {'name' * 30}.md  3 parts",
        "  failed         [red]b .md  not a text[2J: 100%",
        "  deleted        c.md",
    ]


def test_statuses_have_colours_in_a_terminal() -> None:
    out = shown(terminal=True)
    assert "\x1b[31mfailed" in out
    assert "\x1b[2J" not in out
