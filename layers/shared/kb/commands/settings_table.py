"""kb settings: every environment variable of the two functions, as the README's table."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kb.commands.exits import ExitCode, WrongUsage
from kb.commands.screen import say

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

BEGIN, END = "<!-- settings:begin -->", "<!-- settings:end -->"
NAMES = ("variable", "default", "unit", "what it is", "allowed", "read by")


def settings(
    check: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=f"Compare with the table between {BEGIN} and {END}."),
    ] = None,
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Put the table between the two marks.")
    ] = None,
) -> int:
    """Print the table of all settings in Markdown.

    Exit code 4 where a file to check has another table.

    \b
    Example: kb settings
    Example: kb settings --check README.md
    """
    table = markdown_table()
    if file := check or write:
        text = _read(file)
        begin, end = _marks(text, file)
        wanted = f"{text[:begin]}\n{table}\n{text[end:]}"
        if write and text != wanted:
            file.write_text(wanted, encoding="utf-8")
        elif check and text != wanted:
            say(f"{file}: the table of settings is not up to date; kb settings --write {file}")
            return ExitCode.NOT_IN_ORDER
    else:
        say(table)
    return ExitCode.DONE


def markdown_table() -> str:
    """A row a setting: those of both functions first, in the order of the models."""
    from kb.settings import FromEnvironment, IngestSettings, LookupSettings, variables_of

    models: dict[str, type[FromEnvironment]] = {"ingest": IngestSettings, "lookup": LookupSettings}
    readers: dict[str, list[str]] = {}
    fields: dict[str, FieldInfo] = {}
    for reader, model in models.items():
        for name, variable in variables_of(model).items():
            readers.setdefault(variable, []).append(reader)
            fields[variable] = model.model_fields[name]
    embedded = _with_embedded_model()
    rows = [
        (
            " or ".join(f"`{name}`" for name in (variable, *_spellings(variable))),
            _default(field, embedded.get(variable)),
            _unit(field),
            field.description or "",
            ", ".join(_allowed(field)),
            ", ".join(readers[variable]),
        )
        for variable, field in sorted(fields.items(), key=lambda one: -len(readers[one[0]]))
    ]
    lines = [NAMES, ["---"] * len(NAMES), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _with_embedded_model() -> dict[str, object]:
    """Lookup's settings that nobody set, where the embedded model is chosen."""
    from kb.settings import LookupSettings, read_settings, variables_of

    variables = variables_of(LookupSettings)
    required = [v for n, v in variables.items() if LookupSettings.model_fields[n].is_required()]
    chosen = {"EMBEDDER": "embedded", "VECTOR_INDEX": "embedded"}
    model = read_settings(LookupSettings, dict.fromkeys(required, "any") | chosen)
    return {v: getattr(model, name) for name, v in variables.items() if v not in chosen}


def _default(field: "FieldInfo", embedded: object) -> str:
    if field.is_required():
        return "none: must be set"
    if embedded in (None, field.default):
        return _number(field.default)
    return f"{_number(field.default)}; {_number(embedded)} with the embedded model"


def _spellings(variable: str) -> list[str]:
    from kb.settings import OTHER_SPELLINGS

    return [spelling for spelling, name in OTHER_SPELLINGS.items() if name == variable]


def _unit(field: "FieldInfo") -> str:
    from kb.settings import Unit

    return next((one.name for one in field.metadata if isinstance(one, Unit)), "")


def _number(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case str() | int():
            return str(value)
        case _:
            return "one of its own"


def _allowed(field: "FieldInfo") -> Iterator[str]:
    from typing import get_args

    if field.annotation is bool:
        yield "`true` or `false`"
    elif choices := [one for one in get_args(field.annotation) if isinstance(one, str)]:
        yield " or ".join(f"`{choice}`" for choice in choices)
    signs = {"gt": "> ", "ge": "≥ ", "lt": "< ", "le": "≤ "}
    for constraint in field.metadata:
        for name, sign in signs.items():
            if (bound := getattr(constraint, name, None)) is not None:
                yield f"{sign}{_number(bound)}"


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise WrongUsage(f"{file} cannot be read ({reason})") from error


def _marks(text: str, file: Path) -> tuple[int, int]:
    """Where the table's place begins and ends."""
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        raise WrongUsage(f"{file} does not hold {BEGIN} and, below it, {END}")
    return begin + len(BEGIN), end
