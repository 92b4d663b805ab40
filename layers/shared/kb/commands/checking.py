"""kb check: what ingest would say, before anything is uploaded."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kb.commands.exits import ExitCode, WrongUsage
from kb.commands.options import AsJson
from kb.commands.screen import say, say_json

if TYPE_CHECKING:
    from kb.commands.document_check import CheckedDocument, Problem
    from kb.commands.markdown_files import MarkdownFile

COLOURS = {"error": "red", "warning": "yellow", "note": "dim"}


def check(
    paths: Annotated[list[Path], typer.Argument(help="Folders or files.", show_default=False)],
    within: Annotated[
        Path | None,
        typer.Option(help="Folder of all documents, to compare the files with.", metavar="FOLDER"),
    ] = None,
    allow_warnings: Annotated[
        bool, typer.Option("--allow-warnings", help="Exit code 4 for errors alone.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Say what ingest would say, before uploading.

    One line a problem: file:line:column: error, warning or note. Errors: not indexed as meant.
    Warnings: keywords that several documents share or contain, or that are too short; sections
    that cannot be asked for by name. Notes change nothing. Exit code 4 where there are errors or
    warnings, 3 where there is no document. Limits come from ingest's environment variables.

    \b
    Example: kb check docs
    Example: kb check docs/new.md --within docs     (before a commit)
    """
    import os

    from kb.commands.document_check import check_document
    from kb.commands.keyword_check import across
    from kb.settings import DocumentLimits, read_settings

    limits = read_settings(DocumentLimits, os.environ)
    asked = {file.path.absolute(): file for path in paths for file in _files(path, within)}
    others = {file.path.absolute(): file for file in (_files(within, None) if within else ())}
    documents = [check_document(file, limits) for file in (others | asked).values()]
    shared = across(documents)
    told = [
        (one, sorted((*one.problems, *shared.get(str(one.file.path), ()))))
        for one in documents
        if one.file.path.absolute() in asked
    ]
    if as_json:
        say_json({"documents": [_as_json(one, problems) for one, problems in told]})
    else:
        _say(told)
    if not told:
        return ExitCode.NOTHING_FOUND
    counts = Counter(problem.severity for _, problems in told for problem in problems)
    is_fine = not counts["error"] and (allow_warnings or not counts["warning"])
    return ExitCode.DONE if is_fine else ExitCode.NOT_IN_ORDER


def _files(path: Path, within: Path | None) -> Iterator["MarkdownFile"]:
    from kb.commands.markdown_files import markdown_below, markdown_file
    from kb.documents import is_document

    if path.is_dir():
        yield from markdown_below(path)
    elif is_document(path.name):
        is_below = within and path.absolute().is_relative_to(within.absolute())
        place = path.absolute().relative_to(within.absolute()) if within and is_below else path
        yield markdown_file(path, place.as_posix())
    elif not path.exists():
        raise WrongUsage(f"{path} does not exist")


def _say(told: Sequence[tuple["CheckedDocument", list["Problem"]]]) -> None:
    for one, problems in told:
        for problem in problems:
            say(
                f"{one.file.path}:{problem.line}:{problem.column}: {problem.severity}:"
                f" {problem.message} [{problem.rule}]",
                COLOURS[problem.severity],
            )
    statuses = Counter(str(one.status) for one, _ in told)
    severities = Counter(str(problem.severity) for _, problems in told for problem in problems)
    say(
        f"{_counted(len(told), 'document')}: {_listed(statuses) or 'none found'};"
        f" {_listed(severities, plural=True) or 'no problem'}"
    )


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _listed(counts: Counter[str], plural: bool = False) -> str:
    return ", ".join(
        _counted(number, name) if plural else f"{number} {name}"
        for name, number in sorted(counts.items())
    )


def _as_json(one: "CheckedDocument", problems: Sequence["Problem"]) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "path": str(one.file.path),
        "key": one.file.key,
        "status": one.status,
        "problems": [asdict(problem) for problem in problems],
    }
