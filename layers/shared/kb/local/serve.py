"""The whole system in one process: started, filled from a folder, asked once, served, watched."""

import errno
import json
import logging
import os
import signal
import socket
import threading
import time
from pathlib import Path

from rich.console import Console
from watchfiles import watch

from kb.documents import CatalogRow
from kb.errors import KbError
from kb.local.cloud import LocalCloud, MotoServer
from kb.local.embedded_model import CACHE, EmbeddedModel
from kb.local.event_source import EventSource
from kb.local.folder import FolderSync
from kb.local.functions import CHECKOUT, handler_of
from kb.local.http import Gateway
from kb.local.serve_screen import ServeScreen
from kb.settings import IngestSettings, LookupSettings, check_settings
from kb.stores.catalog_table import CatalogTable
from kb.wiring import embedded_model, ingest_parts, lookup_parts

TICK_MILLISECONDS = 500
"""Between looks at folder and catalog, so that a change is seen within two seconds."""
LATE = 30_000
"""Milliseconds between a row's stamp and its commit at most."""
BATCH_SIZE = 1
"""Messages an invocation, as in template.yaml."""


class CannotStart(KbError):
    """What keeps the local system from starting, in one line."""


def serve(folder: Path, port: int, console: Console) -> None:
    """Run until Ctrl-C. Raises CannotStart, or Misconfigured where a setting is wrong."""
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.X_OK):
        raise CannotStart(f"{folder} is no folder that can be read; name one with --folder")
    screen = ServeScreen(console)
    listener = _listen(port)
    # Explicitly, since a shell's background jobs start with SIGINT ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    moto = MotoServer()
    cloud = LocalCloud(moto, CHECKOUT / "template.yaml")
    _settle_in(cloud)
    check_settings(os.environ, IngestSettings, LookupSettings)
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
    rows = _fill(sync, feed, screen)
    _ask_sample(gateway, rows, screen)
    server = gateway.serve(listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    screen.serving(url, str(folder))
    ticks = watch(
        folder,
        step=100,
        debounce=300,
        rust_timeout=TICK_MILLISECONDS,
        yield_on_timeout=True,
        raise_interrupt=False,
    )
    for _ in ticks:
        screen.warnings(sync.sync().warnings)
        screen.rows(feed.new())
    screen.stopping()
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
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        reason = "is in use" if taken else "cannot be taken"
        raise CannotStart(f"port {port} {reason}; name another with --port") from error
    listener.listen()
    return listener


def _settle_in(cloud: LocalCloud) -> None:
    cloud.enter()
    os.environ.setdefault(CACHE, str(CHECKOUT / ".kb"))
    handler = logging.StreamHandler()
    handler.setFormatter(
        logging.Formatter("  %(levelname)s %(message)s %(cause)s", defaults={"cause": ""})
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    # It warns of Ctrl-C.
    logging.getLogger("watchfiles").setLevel(logging.ERROR)


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
        # A row is committed within seconds of being stamped, so only these may still come late.
        self._since = max([self._since, *(row.changed_at - LATE for row in rows)])
        return rows


def _fill(sync: FolderSync, feed: _StatusFeed, screen: ServeScreen) -> dict[str, CatalogRow]:
    """Take the folder in, a status line a document; the rows by key."""
    started = time.monotonic()
    rows: dict[str, CatalogRow] = {}
    with screen.bar("Indexing") as bar:
        changes = sync.sync()
        screen.warnings(changes.warnings)
        waiting = set(changes.put)
        total = len(waiting)
        while waiting:
            new = feed.new()
            screen.rows(new)
            rows |= {row.key: row for row in new}
            waiting -= rows.keys()
            bar.at(len(rows), total)
            time.sleep(TICK_MILLISECONDS / 1000)
    model = embedded_model()
    counts = (model.embedded, model.reused) if isinstance(model, EmbeddedModel) else (0, 0)
    screen.filled(rows, time.monotonic() - started, *counts)
    return rows


def _ask_sample(gateway: Gateway, rows: dict[str, CatalogRow], screen: ServeScreen) -> None:
    """Ask for the first keyword of the first document that has one, over the API."""
    question = next((rows[k].keywords[0] for k in sorted(rows) if rows[k].keywords), None)
    if question is not None:
        body = json.dumps({"query": question}).encode()
        _, _, data = gateway.call("POST", "/lookup", body=body)
        screen.answer(question, json.loads(data))
