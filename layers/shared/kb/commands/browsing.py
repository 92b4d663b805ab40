"""kb documents, document, domains, health: what the knowledge base holds and how it does."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from kb.commands.exits import ExitCode
from kb.commands.options import LOCAL_URL, ApiKey, AsJson, Url
from kb.commands.screen import on_one_line, say, say_json, say_table
from kb.documents import Status
from kb.errors import NotFound


def documents(
    status: Annotated[Status | None, typer.Option(help="Only those of this status.")] = None,
    domain: Annotated[str, typer.Option(help="Only those of this domain.")] = "",
    as_json: AsJson = False,
    url: Url = LOCAL_URL,
    api_key: ApiKey = "",
) -> None:
    """List all documents with their status.

    With the reason where one needs its writer.

    \b
    Example: kb documents --status failed
    Example: kb documents --domain payment --json
    """
    from kb.commands.api_client import Api

    found = sorted(
        Api(url, api_key).documents(status=status or "", domain=domain), key=lambda one: one["key"]
    )
    if as_json:
        say_json(found)
        return
    columns = ("status", "key", "domain", "title", "reason")
    say_table(columns, ([one.get(name) for name in columns] for one in found))


def document(
    key: Annotated[str, typer.Argument(help="Its key, as kb documents lists it.")],
    as_json: AsJson = False,
    url: Url = LOCAL_URL,
    api_key: ApiKey = "",
) -> None:
    """Show one document.

    Its status, sections, metadata, twin and keyword collisions; exit code 3 where there is none.

    Example: kb document payment/refund-policy.md
    """
    from kb.commands.api_client import Api

    try:
        found = Api(url, api_key).get("/document", key=key)
    except NotFound as error:
        raise NotFound(f"no document has the key {key}; kb documents lists them") from error
    if as_json:
        say_json(found)
    else:
        say("\n".join(_lines(found)))


def domains(as_json: AsJson = False, url: Url = LOCAL_URL, api_key: ApiKey = "") -> None:
    """List the domains with the number of their documents.

    Example: kb domains
    """
    from kb.commands.api_client import Api

    answer = Api(url, api_key).get("/domains")
    if as_json:
        say_json(answer)
        return
    found = answer["domains"]
    names = list(dict.fromkeys(name for one in found for name in one))
    say_table(names, ([_cell(one.get(name)) for name in names] for one in found))


def health(as_json: AsJson = False, url: Url = LOCAL_URL, api_key: ApiKey = "") -> int:
    """Ask each part of the system whether it works.

    Exit code 1 where one does not.

    Example: kb health
    """
    from kb.commands.api_client import Api

    answer = Api(url, api_key).get("/health")
    is_ok = answer.get("status") == "ok"
    if as_json:
        say_json(answer)
    else:
        say(str(answer.get("status")), "bold green" if is_ok else "bold red")
        say("\n".join(_lines({name: value for name, value in answer.items() if name != "status"})))
    return ExitCode.DONE if is_ok else ExitCode.FAILED


def _cell(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else on_one_line(value)


def _lines(value: dict[str, Any], indent: str = "") -> Iterator[str]:
    """An object of the API for reading: a line a field, lists and objects below their name."""
    for name, inner in value.items():
        if inner in (None, "", [], {}):
            continue
        if isinstance(inner, dict):
            yield f"{indent}{name}:"
            yield from _lines(inner, indent + "  ")
        elif isinstance(inner, list) and any(isinstance(one, dict) for one in inner):
            yield f"{indent}{name}:"
            yield from (f"{indent}  {_on_a_line(one)}" for one in inner)
        else:
            yield f"{indent}{on_one_line(name)}: {_cell(inner)}"


def _on_a_line(value: object) -> str:
    if not isinstance(value, dict):
        return _cell(value)
    return "  ".join(
        f"{name} {_cell(inner)}" for name, inner in value.items() if inner not in (None, "", [], {})
    )
