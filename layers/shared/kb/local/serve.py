"""The whole system in one process: started, filled from a folder, asked once, served, watched."""

import json
import logging
import os
import socket
import threading
import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from watchfiles import watch

from kb.documents import CatalogRow, Status
from kb.errors import KbError
from kb.local.cloud import LocalCloud, MotoServer
from kb.local.embedded_model import CACHE, EmbeddedModel
from kb.local.event_source import EventSource
from kb.local.folder import Changes, FolderSync
from kb.local.functions import CHECKOUT, handler_of
from kb.local.http import Gateway
from kb.stores.catalog_table import CatalogTable
from kb.wiring import embedded_model, ingest_parts, lookup_parts

TICK_MILLISECONDS = 500
"""Between looks at folder and catalog, so that a change is seen within two seconds."""
BATCH_SIZE = 3
"""Messages an invocation, as in template.yaml."""
EXCERPT = 120
"""Characters of the sample answer on screen."""
COLOURS = {
    Status.INDEXED: "green",
    Status.SEMANTIC_ONLY: "yellow",
    Status.EMPTY: "yellow",
    Status.FAILED: "red",
    Status.DELETED: "dim",
}


class CannotStart(KbError):
    """What keeps the local system from starting, in one line."""


def serve(folder: Path, port: int, screen: Console) -> None:
    """Run until Ctrl-C. Raises CannotStart, or Misconfigured where a setting is wrong."""
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.X_OK):
        raise CannotStart(f"{folder} is no folder that can be read; name one with --folder")
    listener = _listen(port)
    moto = MotoServer()
    cloud = LocalCloud(moto, CHECKOUT / "template.yaml")
    _become_the_cloud(cloud)
    ingest_parts()
    lookup_parts()
    gateway = Gateway(handler_of("lookup"), cloud.environment)
    sqs = cloud.client("sqs")
    source = EventSource(
        sqs,
        cloud.queue_url,
        handler_of("ingest"),
        workers=os.cpu_count() or 1,
        batch_size=BATCH_SIZE,
    )
    sync = FolderSync(folder, cloud.client("s3"), cloud.bucket, sqs, cloud.queue_url)
    feed = _StatusFeed(lookup_parts().documents)
    source.start()
    rows = _fill(sync, feed, screen, folder)
    _ask_sample(gateway, rows, screen)
    server = gateway.serve(listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    screen.print(f"\n[bold]Serving[/] {url} until Ctrl-C; sessions and the log last as long.")
    screen.print(
        f"""  curl -s {url}/lookup -d '{{"query": "…", "session_id": "s1"}}'""", highlight=False
    )
    screen.print(f"  Watching {escape(str(folder))}: changes are taken in as they are saved.")
    ticks = watch(
        folder,
        step=100,
        debounce=300,
        rust_timeout=TICK_MILLISECONDS,
        yield_on_timeout=True,
        raise_interrupt=False,
    )
    for _ in ticks:
        _warn(sync.sync(), screen)
        for row in feed.new():
            _print_row(row, screen)
    screen.print("Stopping.")
    server.shutdown()
    source.stop()
    moto.close()


def _listen(port: int) -> socket.socket:
    """Take the port at once, so that a taken one is said before anything is done."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        listener.close()
        reason = "is in use" if isinstance(error, OSError) else "is no port"
        raise CannotStart(f"port {port} {reason}; name another with --port") from error
    listener.listen()
    return listener


def _become_the_cloud(cloud: LocalCloud) -> None:
    """Make this process see the local cloud only, whatever account the shell is set up for."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(cloud.environment)
    os.environ["AWS_CONFIG_FILE"] = os.devnull
    os.environ["NO_PROXY"] = f"127.0.0.1,{os.environ.get('NO_PROXY', '')}".rstrip(",")
    os.environ.setdefault(CACHE, str(CHECKOUT / ".kb"))
    handler = logging.StreamHandler()
    handler.setFormatter(
        logging.Formatter("  %(levelname)s %(message)s %(cause)s", defaults={"cause": ""})
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


class _StatusFeed:
    """Rows committed since the last look, each once."""

    def __init__(self, table: CatalogTable) -> None:
        self._table = table
        self._since = int(time.time() * 1000)
        self._seen: dict[str, int] = {}

    def new(self) -> list[CatalogRow]:
        rows = [
            row
            for row in self._table.changed_since(self._since)
            if row.revision > self._seen.get(row.key, 0)
        ]
        self._seen |= {row.key: row.revision for row in rows}
        return rows


def _fill(
    sync: FolderSync, feed: _StatusFeed, screen: Console, folder: Path
) -> dict[str, CatalogRow]:
    """Take the folder in, a status line a document; the rows by key."""
    started = time.monotonic()
    rows: dict[str, CatalogRow] = {}
    with Progress(console=screen, transient=True) as progress:
        task = progress.add_task(f"Reading {escape(str(folder))}", total=None)
        changes = sync.sync()
        _warn(changes, screen)
        waiting = set(changes.put)
        progress.update(task, description="Indexing", total=len(waiting))
        while waiting:
            for row in feed.new():
                _print_row(row, screen)
                rows[row.key] = row
                waiting.discard(row.key)
            progress.update(task, completed=len(rows))
            time.sleep(TICK_MILLISECONDS / 1000)
    counts = Counter(row.status for row in rows.values())
    model = embedded_model()
    new = model.embedded if isinstance(model, EmbeddedModel) else 0
    screen.print(
        f"{len(rows)} documents in {time.monotonic() - started:.1f} s:"
        f" {', '.join(f'{number} {status}' for status, number in counts.items()) or 'none yet'}."
        f" {new} chunks embedded; the vectors of unchanged text are kept for the next run."
    )
    return rows


def _warn(changes: Changes, screen: Console) -> None:
    for warning in changes.warnings:
        screen.print(f"  [yellow]warning[/]        {escape(warning)}", highlight=False)


def _print_row(row: CatalogRow, screen: Console) -> None:
    colour = COLOURS[row.status]
    detail = row.reason or (f"{row.parts} part{'s' if row.parts != 1 else ''}" if row.parts else "")
    screen.print(
        f"  [{colour}]{row.status:<13}[/]  {escape(row.key)}  [dim]{escape(detail)}[/]",
        highlight=False,
    )


def _ask_sample(gateway: Gateway, rows: dict[str, CatalogRow], screen: Console) -> None:
    """Ask for the first keyword of the first document that has one, over the API."""
    question = next((rows[k].keywords[0] for k in sorted(rows) if rows[k].keywords), None)
    if question is None:
        return
    body = json.dumps({"query": question}).encode()
    _, _, data = gateway.call("POST", "/lookup", body=body)
    answer = json.loads(data)
    passage = answer.get("primary") or answer.get("supplement") or {}
    excerpt = " ".join(passage.get("content", "").split())[:EXCERPT]
    screen.print(f"\n[bold]Question[/] {escape(question)}")
    screen.print(
        f"[bold]Answer[/]   [green]{answer.get('relevanceLevel')}[/]"
        f"  {escape(passage.get('source', ''))}"
        f"  part {passage.get('part')} of {passage.get('parts')}",
        highlight=False,
    )
    screen.print(f"         {escape(excerpt)}…", highlight=False)
    screen.print(f"         {escape(answer.get('completenessHint') or '')}", highlight=False)
