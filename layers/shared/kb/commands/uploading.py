"""kb upload: a folder into the bucket, and what ingest made of each document."""

import os
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kb.commands.exits import ExitCode, WrongUsage
from kb.commands.options import ApiKey
from kb.commands.screen import on_one_line, say, steps

if TYPE_CHECKING:
    from kb.commands.api_client import Api
    from kb.commands.bucket_sync import Bucket, Plan
    from kb.commands.ingest_status import Expected, Statuses
    from kb.commands.markdown_files import MarkdownFile

COLOURS = {"indexed": "green", "failed": "red", "deleted": "dim", "not read": "red"}
USUAL = "yellow"
"""Colour of the other statuses: they have a reason."""


def upload(
    folder: Annotated[Path, typer.Argument(help="Folder of Markdown.", show_default=False)],
    bucket: Annotated[
        str, typer.Option(envvar="KB_BUCKET", show_default=False, help="Bucket of documents.")
    ] = "",
    delete: Annotated[
        bool, typer.Option("--delete", help="Remove documents that the folder does not have.")
    ] = False,
    table: Annotated[
        str,
        typer.Option(
            envvar="KB_CATALOG_TABLE",
            show_default=False,
            help="Catalog table to read statuses from, with the shell's AWS credentials.",
        ),
    ] = "",
    url: Annotated[
        str,
        typer.Option(
            envvar="KB_URL", show_default=False, help="Or the API to ask for them; or a kb serve."
        ),
    ] = "",
    api_key: ApiKey = "",
    wait: Annotated[
        float, typer.Option(min=0, help="Seconds without news to wait for statuses; 0: none.")
    ] = 600,
) -> int:
    """Put a folder into the bucket and wait for each status.

    Only what differs is put, by hash; interrupted and started again, it goes on. With the --url
    of a kb serve it uploads to that. Exit code 4 where documents could not be read or indexed.

    \b
    Example: kb upload docs --bucket kb-knowledge --table kb-catalog --delete
    Example: kb upload docs --url http://127.0.0.1:8000
    """
    from kb.commands.api_client import Api
    from kb.commands.aws import client, local_cloud
    from kb.commands.bucket_sync import Bucket
    from kb.commands.markdown_files import markdown_below

    if not folder.is_dir():
        raise WrongUsage(f"{folder} is no folder")
    api = Api(url, api_key) if url else None
    cloud = local_cloud(api) if api and not os.environ.get("AWS_ENDPOINT_URL") else None
    bucket = bucket or (cloud or {}).get("KNOWLEDGE_BUCKET", "")
    if not bucket:
        raise WrongUsage("no bucket is named; name it with --bucket or KB_BUCKET")
    files = {file.key: file for file in markdown_below(folder)}
    if not files:
        raise WrongUsage(f"{folder} holds no document")
    store = Bucket(client("s3", cloud), bucket)
    plan = store.plan(list(files.values()))
    for file in plan.unread:
        _say_status("not read", file.key, file.problem)
    try:
        stored = _put(store, plan)
        removed = _remove(store, plan, cloud, bucket) if delete else {}
        _say_counts(plan, delete)
        expected = _expected(files, plan.same | stored, removed)
        statuses = _statuses(table, cloud, api) if wait else None
        failed = _wait(expected, statuses, wait, quiet=set(plan.same)) if statuses else 0
    except KeyboardInterrupt:
        say("Interrupted; started again, it goes on.")
        raise
    return ExitCode.NOT_IN_ORDER if failed or plan.unread else ExitCode.DONE


def _put(store: "Bucket", plan: "Plan") -> dict[str, datetime]:
    """When each was stored."""
    from kb.commands.bucket_sync import at_once

    stored: dict[str, datetime] = {}
    with steps("Uploading", len(plan.put)) as step:
        for key, when in at_once({file.key: partial(store.put, file) for file in plan.put}):
            if when is None:
                _say_status("not read", key, "it is gone")
            else:
                stored[key] = when
                step(f"stored         {on_one_line(key)}")
    return stored


def _remove(
    store: "Bucket", plan: "Plan", cloud: Mapping[str, str] | None, bucket: str
) -> dict[str, datetime]:
    """When each was removed."""
    from kb.commands.aws import client
    from kb.commands.bucket_sync import at_once
    from kb.local.deletions import announce_removal

    sqs = client("sqs", cloud) if cloud else None
    removed: dict[str, datetime] = {}
    with steps("Removing", len(plan.extra)) as step:
        for key, _ in at_once({key: partial(store.remove, key) for key in plan.extra}):
            if cloud and sqs:
                announce_removal(sqs, cloud["INGEST_QUEUE_URL"], bucket, key)
            removed[key] = datetime.now(UTC)
            step(f"removed        {on_one_line(key)}")
    return removed


def _expected(
    files: Mapping[str, "MarkdownFile"],
    stored: Mapping[str, datetime],
    removed: Mapping[str, datetime],
) -> dict[str, "Expected"]:
    from kb.commands.ingest_status import Expected, content_hash_of

    there = {
        key: Expected(files[key], when, content_hash_of(files[key]))
        for key, when in sorted(stored.items())
    }
    return there | {key: Expected(None, when) for key, when in removed.items()}


def _statuses(table: str, cloud: Mapping[str, str] | None, api: "Api | None") -> "Statuses | None":
    from kb.commands.aws import client
    from kb.commands.ingest_status import statuses_of_api, statuses_of_table

    if table:
        return statuses_of_table(client("dynamodb", cloud), table)
    if api:
        return statuses_of_api(api)
    say("Name --url or --table to see what becomes of them.")
    return None


def _wait(
    expected: Mapping[str, "Expected"], statuses: "Statuses", patience: float, quiet: set[str]
) -> int:
    """Print each status; of those that were there already (`quiet`) only what needs its writer.

    How many failed.
    """
    from kb.commands.ingest_status import wait_for

    counts: Counter[str] = Counter()
    with steps("Indexing", len(expected)) as step:
        for key, state in wait_for(expected, statuses, patience):
            status, reason = (str(state.status), state.reason) if state else ("deleted", "")
            counts[status] += 1
            if key not in quiet or reason:
                _say_status(status, key, reason)
            step("")
    say(", ".join(f"{number} {status}" for status, number in sorted(counts.items())))
    return counts["failed"]


def _say_counts(plan: "Plan", delete: bool) -> None:
    counts = {
        "put": len(plan.put),
        "unchanged": len(plan.same),
        "not read": len(plan.unread),
        "removed" if delete else "only in the bucket (--delete removes)": len(plan.extra),
    }
    say(", ".join(f"{number} {name}" for name, number in counts.items() if number))


def _say_status(status: str, key: str, reason: str) -> None:
    line = f"{status:<13}  {on_one_line(key)}  {on_one_line(reason)}"
    say(line.rstrip(), COLOURS.get(status, USUAL))
