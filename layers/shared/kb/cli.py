"""The `kb` command: its commands, and how whatever ends one is said."""

import os
import sys
from collections.abc import Sequence

import typer

from kb.commands import (
    asking,
    browsing,
    checking,
    doctoring,
    evaluating,
    log,
    reindexing,
    serving,
    settings_table,
    uploading,
)
from kb.commands.exits import ExitCode, code_of
from kb.commands.screen import on_one_line
from kb.errors import KbError

HELP = """Graded knowledge lookup for agents.

\b
Exit codes:
  0  done, or answered
  1  the system or the network failed
  2  wrong usage: another call is needed
  3  nothing was found
  4  documents need their writer (check, upload), something is not in order (doctor,
     reindex), or a file is not up to date (settings)

\b
Example: kb serve --folder ./docs
Example: kb lookup "how are refunds approved"
"""
TRACEBACK = "KB_TRACEBACK"
"""Environment variable: set, a fault of the program itself shows where it happened."""

# Plain help: it loads nothing more, and reads the same in a pipe.
app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    serving.serve,
    asking.lookup,
    asking.session,
    browsing.documents,
    browsing.document,
    browsing.domains,
    browsing.health,
    log.sql,
    checking.check,
    uploading.upload,
    doctoring.doctor,
    reindexing.reindex,
    settings_table.settings,
    evaluating.calibrate,
):
    app.command()(command)
app.command("eval")(evaluating.evaluate)


@app.callback(help=HELP)
def _about() -> None:
    """Its help stands above."""


def run(arguments: Sequence[str]) -> int:
    """Run one command; its exit code. What went wrong is one line on stderr."""
    try:
        # Typer's own runner would print boxes and choose other exit codes.
        with typer.main.get_command(app).make_context(
            "kb", list(arguments) or ["--help"]
        ) as context:
            code = int(context.command.invoke(context) or ExitCode.DONE)
            sys.stdout.flush()
            return code
    except typer.Exit as done:
        return done.exit_code
    except typer.TyperException as error:
        return _refuse(_usage(error), ExitCode.WRONG_USAGE)
    except KbError as error:
        return _refuse(str(error), code_of(error))
    except (KeyboardInterrupt, typer.Abort, EOFError):
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # What is left cannot be written; Python would try again at exit, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.PIPE_CLOSED
    except Exception as error:  # outermost: a person gets a line, whatever it is
        if os.environ.get(TRACEBACK):
            raise
        line = f"this should not have happened: {type(error).__name__}: {error}"
        return _refuse(f"{line}; {TRACEBACK}=1 shows where", ExitCode.FAILED)


def _usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "kb"
    problem = on_one_line(error.format_message()).replace("Value error, ", "").rstrip(".")
    return f"{problem}; see {command} --help" if problem else f"see {command} --help"


def _refuse(line: str, code: ExitCode) -> ExitCode:
    print(f"kb: {on_one_line(line)}", file=sys.stderr)
    return code


def main() -> None:
    """Run the command of the command line."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A character that the terminal does not have is no reason to stop.
            stream.reconfigure(errors="replace")
    sys.exit(run(sys.argv[1:]))
