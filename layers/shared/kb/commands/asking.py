"""kb lookup and kb session: a question, and what a conversation has read."""

from typing import Annotated, Any

import typer

from kb.commands.exits import ExitCode
from kb.commands.options import LOCAL_URL, ApiKey, AsJson, Url
from kb.commands.screen import on_one_line, say, say_json, say_table

COLOURS = {"PRECISE": "bold green", "HIGHLY_RELEVANT": "bold cyan", "REFERENCE": "bold yellow"}


def lookup(
    question: Annotated[str, typer.Argument(help="What to look up.")],
    session: Annotated[str, typer.Option(help="Conversation; no text is given it twice.")] = "",
    section: Annotated[str, typer.Option(help="Heading to read from.")] = "",
    part: Annotated[int | None, typer.Option(help="Number of the part to read.")] = None,
    domain: Annotated[str, typer.Option(help="Only documents of this domain.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Give again what was given.")] = False,
    request_id: Annotated[
        str, typer.Option(help="Repeated, gets the same text again: for retries.")
    ] = "",
    as_json: AsJson = False,
    url: Url = LOCAL_URL,
    api_key: ApiKey = "",
) -> int:
    """Ask the knowledge base one question.

    Exit code 3 where it holds nothing on it.

    \b
    Example: kb lookup "how are refunds approved" --session s1
    Example: kb lookup PAY-5002 --part 2 --json
    """
    from kb.commands.api_client import Api

    optional = {
        "session_id": session or None,
        "section_title": section or None,
        "part": part,
        "domain": domain or None,
        "force": force or None,
        "request_id": request_id or None,
    }
    given = {name: value for name, value in optional.items() if value is not None}
    body: dict[str, Any] = {"query": question, **given}
    answer = Api(url, api_key).post("/lookup", body)
    if as_json:
        say_json(answer)
    else:
        _say_answer(answer)
    return ExitCode.DONE if answer.get("found") else ExitCode.NOTHING_FOUND


def session(
    id: Annotated[str, typer.Argument(help="The conversation.")],
    clear: Annotated[bool, typer.Option("--clear", help="Forget what it has read.")] = False,
    as_json: AsJson = False,
    url: Url = LOCAL_URL,
    api_key: ApiKey = "",
) -> None:
    """Show what a conversation has read, or clear it.

    \b
    Example: kb session s1
    Example: kb session s1 --clear
    """
    from kb.commands.api_client import Api

    api = Api(url, api_key)
    answer = api.delete("/session", id=id) if clear else api.get("/session", id=id)
    if as_json:
        say_json(answer)
    elif clear:
        say(f"Cleared {id}.")
    elif not answer["documents"]:
        say(f"{id} has read nothing.")
    else:
        say_table(
            ("domain", "document", "parts read", "first read"),
            (
                (read["domain"], read["source"], read["partsRead"], read["firstSeen"])
                for read in answer["documents"]
            ),
        )


def _say_answer(answer: dict[str, Any]) -> None:
    level = answer.get("relevanceLevel") or "NOTHING FOUND"
    say(level, COLOURS.get(level, "bold red"))
    for role in ("primary", "supplement"):
        if passage := answer.get(role):
            say()
            say(("" if role == "primary" else "See also: ") + _source(passage), "bold")
            say()
            say(passage["content"])
    notes = {
        "Hint": answer.get("completenessHint"),
        "Message": answer.get("message"),
        "Read in this session": ", ".join(answer.get("retrievedDomainsThisSession") or ()),
        "Answered without": ", ".join(answer.get("degraded") or ()),
    }
    if any(notes.values()):
        say()
    for name, note in notes.items():
        if note:
            say(f"{name}: {on_one_line(note)}", "dim")


def _source(passage: dict[str, Any]) -> str:
    """Where a text is from: key, title, section, part n of m, and the author's dates."""
    version = passage.get("version")
    details = (
        passage.get("title"),
        passage.get("section"),
        f"part {passage['part']} of {passage['parts']}",
        f"version {version}" if version else None,
        passage.get("author"),
        passage.get("updatedAt"),
    )
    return " · ".join(on_one_line(text) for text in (passage["source"], *details) if text)
