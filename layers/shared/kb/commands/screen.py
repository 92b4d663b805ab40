"""How answers are printed: colour and tables where a person looks, plain lines elsewhere."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from kb.characters import clean

if TYPE_CHECKING:
    from rich.console import Console


def is_watched(stream: TextIO | None = None) -> bool:
    """Whether a person looks at the stream (default: stdout)."""
    return (stream or sys.stdout).isatty() and os.environ.get("TERM") != "dumb"


def console(stream: TextIO | None = None) -> "Console":
    """A console for the stream (default: stdout); lines wrap in a terminal only."""
    from rich.console import Console

    stream = stream or sys.stdout
    return Console(file=stream, soft_wrap=not is_watched(stream), highlight=False)


def shown(text: object) -> str:
    """The text without what a terminal would obey; None as nothing."""
    return "" if text is None else clean(str(text))


def on_one_line(text: object) -> str:
    """The same with line breaks and tabs as blanks."""
    return " ".join(shown(text).split())


def say(text: str = "", style: str = "") -> None:
    """Print a line or several, in a style where a person looks."""
    if style and is_watched():
        from rich.text import Text

        console().print(Text(shown(text), style=style))
    else:
        print(shown(text))


def say_json(value: Any) -> None:
    """Print the value as JSON."""
    print(json.dumps(value, ensure_ascii=False, indent=2))


def say_table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table where a person looks, else a line a row with tabs and without names."""
    cells = [[on_one_line(cell) for cell in row] for row in rows]
    if not is_watched():
        for row in cells:
            print("\t".join(row))
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE, pad_edge=False)
    for name in names:
        table.add_column(name, overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    console().print(table)


@contextmanager
def steps(name: str, total: int) -> Iterator[Callable[[str], None]]:
    """A bar where a person looks, else the line of each step, if it has one."""
    if not is_watched():
        yield lambda line: say(line) if line else None
        return
    from rich.progress import Progress

    with Progress(console=console(), transient=True) as progress:
        task = progress.add_task(name, total=total)
        yield lambda _: progress.advance(task)
