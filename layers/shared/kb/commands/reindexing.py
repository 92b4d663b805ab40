"""kb reindex: another embedding model, mapping, chunker or other sizes, without an outage."""

from typing import Annotated

import typer

from kb.commands.exits import ExitCode, WrongUsage
from kb.commands.options import Stack
from kb.commands.screen import on_one_line, say


def reindex(
    stack: Stack = "",
    embedding_function: Annotated[
        str,
        typer.Option(
            show_default=False,
            help="Name or ARN of the new model's function, where the stack still has the old one.",
        ),
    ] = "",
    url: Annotated[
        str, typer.Option(envvar="KB_URL", show_default=False, help="Of a kb serve; see below.")
    ] = "",
) -> int:
    """Bring the index to this version's model, chunker and sizes.

    A new index is made beside the old one from the text in it; when it is whole, the alias moves
    to it, then documents cut otherwise are cut anew, and old indexes are removed. Lookups get each
    document's old or new version, whole, by vectors of one model. Ended anywhere, it goes on when
    started again.

    Without an outage: deploy the new model's embedding function by itself; run this with
    --embedding-function; deploy the stack with that function; run this again without. From the
    first run's end to the deployment, changed documents wait in the queue, for about 20 minutes;
    later they are dead letters, to be driven back. In any other order, semantic search is down
    until the new index is whole.

    kb serve makes its index anew at every start: restart it. Exit code 4 where documents keep
    their old cut since their newest content cannot be indexed.

    \b
    Example: kb reindex --stack kb --embedding-function arn:aws:lambda:...:function:bge-next
    Example: kb reindex --stack kb
    """
    from kb.commands.doctoring import parts_of
    from kb.reindex import Did
    from kb.wiring import make_reindex

    if url and not stack and _is_kb_serve(url):
        raise WrongUsage("kb serve makes its index anew at every start: restart it")
    changed = {"EMBEDDING_FUNCTION": embedding_function} if embedding_function else {}
    counts: dict[Did, int] = {}
    for step in make_reindex(parts_of(stack, url, changed)).run(ahead=bool(embedding_function)):
        counts[step.did] = counts.get(step.did, 0) + 1
        of = f"  {step.number} of {step.total}" if step.total > 1 else ""
        say(f"{step.did:<8}  {on_one_line(step.name)}{of}")
    done = ", ".join(f"{number} {did}" for did, number in counts.items())
    say(done or "Nothing to do.")
    if embedding_function:
        say("Now deploy the stack with this embedding function, then run kb reindex without it.")
    return ExitCode.NOT_IN_ORDER if counts.get(Did.FAILED) else ExitCode.DONE


def _is_kb_serve(url: str) -> bool:
    from kb.commands.api_client import Api
    from kb.commands.aws import local_cloud

    return local_cloud(Api(url, "")) is not None
