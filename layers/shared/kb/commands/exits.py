"""What the commands' exit codes say."""

from enum import IntEnum

from kb.errors import InvalidInput, KbError, NotFound, TooLarge


class ExitCode(IntEnum):
    """Documented in `kb --help`."""

    DONE = 0
    FAILED = 1
    """The system or the network."""
    WRONG_USAGE = 2
    NOTHING_FOUND = 3
    NOT_IN_ORDER = 4
    """What was checked or uploaded needs its writer."""
    INTERRUPTED = 130
    """As shells count Ctrl-C."""
    PIPE_CLOSED = 141
    """As shells count a reader that went away."""


class WrongUsage(KbError):
    """The command was called in a way it cannot be; the message says the way out."""


def code_of(error: KbError) -> ExitCode:
    """The exit code that a failure comes to."""
    match error:
        case WrongUsage() | InvalidInput() | TooLarge():
            return ExitCode.WRONG_USAGE
        case NotFound():
            return ExitCode.NOTHING_FOUND
        case _:
            return ExitCode.FAILED
