"""What kb serve shows: colour and a bar in a terminal, the same lines elsewhere."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from kb.characters import clean
from kb.documents import CatalogRow, Status

EXCERPT = 120
"""Characters of the sample answer."""
COLOURS = {
    Status.INDEXED: "green",
    Status.SEMANTIC_ONLY: "yellow",
    Status.EMPTY: "yellow",
    Status.FAILED: "red",
    Status.DELETED: "dim",
}


class ServeScreen:
    """Prints to `console`; names and texts are shown as they are, never as markup."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def bar(self, name: str) -> Iterator["Bar"]:
        """A bar below the lines while it lasts; in a pipe there is none."""
        if not self._console.is_terminal:
            yield Bar(None, name)
            return
        with Progress(console=self._console, transient=True) as progress:
            yield Bar(progress, name)

    def warnings(self, warnings: Iterable[str]) -> None:
        for warning in warnings:
            self._line("warning", "yellow", warning, "")

    def rows(self, rows: Iterable[CatalogRow]) -> None:
        """What became of each document."""
        for row in rows:
            parts = _counted(row.parts, "part") if row.parts else ""
            self._line(row.status, COLOURS[row.status], row.key, row.reason or parts)

    def filled(self, rows: Mapping[str, CatalogRow], seconds: float, new: int, kept: int) -> None:
        """The sum: chunks embedded now, and those whose vectors earlier runs kept."""
        statuses = Counter(row.status for row in rows.values())
        told = ", ".join(f"{number} {status}" for status, number in sorted(statuses.items()))
        self._print(
            f"{_counted(len(rows), 'document')} in {seconds:.1f} s: {told or 'none yet'}."
            f" {_counted(new, 'chunk')} embedded now, {kept} kept from earlier runs."
        )

    def answer(self, question: str, answer: Mapping[str, Any]) -> None:
        """A sample question with what an agent would get."""
        passage = answer.get("primary") or answer.get("supplement")
        if not passage:
            return
        excerpt = _on_one_line(passage["content"])[:EXCERPT]
        self._print("")
        self._print("Question ", style="bold", rest=_on_one_line(question))
        place = f"{_on_one_line(passage['source'])}  part {passage['part']} of {passage['parts']}"
        self._print("Answer   ", style="bold", rest=f"{answer['relevanceLevel']}  {place}")
        self._print(f"         {excerpt}…")
        self._print(f"         {answer['completenessHint']}")

    def serving(self, url: str, folder: str) -> None:
        self._print("")
        rest = f"{url} until Ctrl-C; sessions and the log last as long."
        self._print("Serving ", style="bold", rest=rest)
        self._print(f"""  curl -s {url}/lookup -d '{{"query": "…", "session_id": "s1"}}'""")
        self._print(f"  Watching {_on_one_line(folder)}: changes are taken in as they are saved.")

    def stopping(self) -> None:
        self._print("Stopping.")

    def _line(self, word: str, colour: str, name: str, detail: str) -> None:
        text = Text("  ").append(f"{word:<13}", colour).append(f"  {_on_one_line(name)}")
        if detail:
            text.append(f"  {_on_one_line(detail)}", "dim")
        self._console.print(text)

    def _print(self, text: str, style: str = "", rest: str = "") -> None:
        self._console.print(Text(text, style).append(rest, "not bold"))


class Bar:
    """How far a step is."""

    def __init__(self, progress: Progress | None, name: str) -> None:
        self._progress = progress
        self._task = progress.add_task(name, total=None) if progress else None

    def at(self, done: int, total: int) -> None:
        if self._progress and self._task is not None:
            self._progress.update(self._task, completed=done, total=total)


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _on_one_line(text: str) -> str:
    return " ".join(clean(text).split())
