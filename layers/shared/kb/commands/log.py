"""kb sql: questions to the log of invocations."""

from typing import Annotated, Any

import typer

from kb.commands.options import LOCAL_URL, AsJson, Url
from kb.commands.screen import say_json, say_table


def sql(
    query: Annotated[str, typer.Argument(help="One SELECT on the table tool_invocation.")],
    table: Annotated[
        str,
        typer.Option(
            envvar="KB_INVOCATION_TABLE",
            show_default=False,
            help="Log's table of a deployed stack, read with the shell's AWS credentials.",
        ),
    ] = "",
    as_json: AsJson = False,
    url: Url = LOCAL_URL,
) -> None:
    """Ask the log of invocations in plain SQL; it is only read.

    Without --table it is the log of the kb serve at --url. Columns: invocation_id, tool_name,
    session_id, query, created_at, duration_ms, found, relevance_level, dedup_reason and
    retrieval_details (JSON; json_extract reads it).

    \b
    Example: kb sql "SELECT relevance_level, COUNT(*) FROM tool_invocation
                     WHERE tool_name='lookup_knowledge' GROUP BY relevance_level"
    """
    from kb.commands.api_client import Api, CannotAsk
    from kb.commands.aws import client, local_cloud
    from kb.commands.exits import WrongUsage
    from kb.commands.log_query import run_query
    from kb.errors import Unavailable
    from kb.stores.invocation_table import InvocationTable

    cloud = None if table else local_cloud(Api(url, ""))
    if not table and not cloud:
        raise WrongUsage(f"{url} is no kb serve; name the log's table with --table")
    name = cloud["INVOCATION_TABLE"] if cloud else table
    log = InvocationTable(client("dynamodb", cloud), name, ttl=0)
    try:
        result = run_query(query, log.read_all())
    except Unavailable as error:
        way_out = "check --table and the shell's AWS credentials and region"
        raise CannotAsk(f"the table {name} cannot be read: {error}; {way_out}") from error
    if as_json:
        say_json([dict(zip(result.columns, map(_plain, row), strict=True)) for row in result.rows])
    else:
        say_table(result.columns, ([_shown(value) for value in row] for row in result.rows))


def _plain(value: Any) -> Any:
    """A value of SQLite as JSON has it: bytes in hex, no infinity."""
    if isinstance(value, bytes):
        return value.hex()
    return None if value in (float("inf"), float("-inf")) else value


def _shown(value: Any) -> str:
    return "NULL" if value is None else str(_plain(value))
