"""What all commands share: help, exit codes, one line for what went wrong, a quick start."""

import io
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import kb
import pytest
import typer
from kb import cli
from kb.cli import run
from kb.commands import screen
from kb.commands.exits import ExitCode, WrongUsage, code_of
from kb.errors import (
    InvalidInput,
    KbError,
    Misconfigured,
    NotFound,
    TooLarge,
    Unavailable,
)

COMMANDS = list(typer.main.get_command(cli.app).commands)
PROGRAM = "from kb.cli import main; main()"


def start(*arguments: str, code: str = PROGRAM, **environment: str) -> subprocess.Popen[bytes]:
    """A kb process with pipes."""
    return subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(kb.__file__).parents[1]), **environment},
    )


def help_of(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run([command, "--help"]) == 0
    return capsys.readouterr().out


def test_help_lists_every_command_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    commands = out.partition("Commands:\n")[2].splitlines()
    assert sorted(line.split()[0] for line in commands) == sorted(COMMANDS)
    assert {"serve", "lookup", "documents", "sql", "check", "upload"} <= set(COMMANDS)
    assert not any(line.endswith("...") for line in commands)
    for code in (0, 1, 2, 3, 4):
        assert f"\n    {code}  " in out


def test_without_a_command_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    assert "Commands:" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_has_an_example_and_fits_a_terminal(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = help_of(command, capsys)
    assert f"  Example: kb {command}" in out
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nope"], "No such command 'nope'; see kb --help"),
        (["--nope"], "No such option: --nope"),
        (["lookup"], "Missing argument 'question'; see kb lookup --help"),
        (["lookup", "q", "--part", "x"], "Invalid value for '--part'"),
        (["lookup", "q", "--nope"], "No such option: --nope"),
        (["lookup", "q", "r"], "unexpected extra argument"),
        (["documents", "--status", "done"], "is not one of 'indexed', 'semantic_only', 'empty'"),
    ],
    ids=str,
)
def test_wrong_usage_is_exit_code_2_and_one_line_that_names_the_help(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert captured.err.startswith("kb: ")
    assert line in captured.err
    assert captured.err.endswith(" --help\n")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (WrongUsage("x"), 2),
        (InvalidInput("f", "x"), 2),
        (TooLarge("x"), 2),
        (NotFound("x"), 3),
        (Unavailable("log"), 1),
        (Misconfigured("x"), 1),
        (KbError("x"), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_error_has_its_exit_code(error: KbError, code: int) -> None:
    assert code_of(error) == code


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """`kb fail` raises what is put here."""
    raised: list[BaseException] = []
    app = typer.Typer(rich_markup_mode=None)

    @app.command()
    def fail() -> None:
        raise raised[0]

    @app.callback()
    def about() -> None:
        pass

    monkeypatch.setattr(cli, "app", app)
    return raised


def test_a_fault_of_the_program_is_one_line_too(
    failing: list[BaseException],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failing.append(ZeroDivisionError("division\nby zero"))
    assert run(["fail"]) == 1
    assert capsys.readouterr().err == (
        "kb: this should not have happened: ZeroDivisionError: division by zero;"
        " KB_TRACEBACK=1 shows where\n"
    )
    monkeypatch.setenv("KB_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        run(["fail"])


def test_ctrl_c_is_exit_code_130_and_prints_nothing(
    failing: list[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    failing.append(KeyboardInterrupt())
    assert run(["fail"]) == ExitCode.INTERRUPTED == 130
    assert capsys.readouterr() == ("", "")


def test_a_reader_that_goes_away_is_no_error() -> None:
    process = start("settings")
    assert process.stdout is not None
    process.stdout.close()
    _, complaints = process.communicate()
    assert (complaints, process.returncode) == (b"", 141)


def test_text_that_the_terminal_does_not_have_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "文.md").write_text("文")
    process = start("check", str(tmp_path), PYTHONIOENCODING="ascii")
    out, complaints = process.communicate()
    assert (complaints, process.returncode) == (b"", 4)
    assert b"?.md:1:1: warning: no frontmatter" in out


def test_help_loads_nothing_that_only_a_command_needs() -> None:
    heavy = {"boto3", "botocore", "moto", "numpy", "pydantic", "requests", "rich", "yaml"}
    code = (
        "import sys\nfrom kb.cli import run\nrun(sys.argv[1:])\n"
        f"print(sorted(set({sorted(heavy)}) & set(sys.modules)), file=sys.stderr)"
    )
    out, loaded = start("--help", code=code).communicate()
    assert b"Commands:" in out
    assert loaded == b"[]\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, **environment: str) -> str:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", stream)
    screen.say("PRECISE", "bold green")
    screen.say_table(("status", "key"), [("indexed", "a\tb[bold].md"), (None, "z" * 200)])
    return stream.getvalue()


def test_a_pipe_gets_plain_lines_with_tabs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed(io.StringIO(), monkeypatch) == (
        f"PRECISE\nindexed\ta b[bold].md\n\t{'z' * 200}\n"
    )


def test_a_terminal_gets_colour_and_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    out = printed(Terminal(), monkeypatch)
    assert "\x1b[1;32mPRECISE" in out
    assert "a b[bold].md" in out
    assert "─" in out
    assert out.count("z") == 200


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_a_terminal_without_colour_gets_none(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = printed(Terminal(), monkeypatch, **environment)
    assert "\x1b[1;32m" not in out
    assert "a b[bold].md" in out


def steps_on(stream: io.StringIO, lines: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", stream)
    with screen.steps("Uploading", len(lines)) as step:
        for line in lines:
            step(line)
    return stream.getvalue()


def test_steps_are_lines_in_a_pipe_and_a_bar_in_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert steps_on(io.StringIO(), ["stored a", "", "stored b"], monkeypatch) == (
        "stored a\nstored b\n"
    )
    bar = steps_on(Terminal(), ["stored a", "stored b"], monkeypatch)
    assert "Uploading" in bar
    assert "stored" not in bar
