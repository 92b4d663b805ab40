"""What became of uploaded documents, asked until ingest has said it of each."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kb.admission import parse_within
from kb.commands.api_client import Api, CannotAsk
from kb.commands.document_check import check_document
from kb.commands.markdown_files import MarkdownFile
from kb.documents import CatalogRow, Status
from kb.errors import NotFound, Refused, Unavailable
from kb.settings import DocumentLimits, read_settings
from kb.stores.catalog_table import CatalogTable

ASKED_AT_ONCE = 100
"""Documents in one round; the others come when these have their status."""
PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 3.0
"""Between two rounds; longer while nothing happens."""


@dataclass(frozen=True, slots=True)
class State:
    """What the catalog says of one document."""

    status: Status
    reason: str
    content_hash: str
    changed_at: datetime


Statuses = Callable[[Sequence[str]], Mapping[str, State]]
"""The states of those of the documents that there are. Raises CannotAsk."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A stored document (`file`), or (None) one that was removed at `stored_at`."""

    file: MarkdownFile | None
    stored_at: datetime
    content_hash: str = ""

    def is_met_by(self, state: State | None) -> bool:
        """Whether the state is that of this very content."""
        if self.file is None:
            return state is None or state.status is Status.DELETED
        if state is None or state.status is Status.DELETED:
            return False
        if state.status is not Status.FAILED:
            return state.content_hash == self.content_hash
        # The same failure again changes nothing in the catalog, so its time tells too little.
        return state.changed_at >= self.stored_at or state.reason == _refusal(self.file)


def statuses_of_api(api: Api) -> Statuses:
    """By GET /document."""

    def one(key: str) -> State | None:
        try:
            found = api.get("/document", key=key)
        except NotFound:
            return None
        return State(
            Status(found["status"]),
            found["reason"] or "",
            found["contentHash"] or "",
            datetime.fromisoformat(found["changedAt"]),
        )

    def ask(keys: Sequence[str]) -> Mapping[str, State]:
        with ThreadPoolExecutor(8) as pool:
            return {k: s for k, s in zip(keys, pool.map(one, keys), strict=True) if s}

    return ask


def statuses_of_table(client: Any, table: str) -> Statuses:
    """By the catalog table itself."""
    catalog = CatalogTable(client, table)

    def ask(keys: Sequence[str]) -> Mapping[str, State]:
        try:
            rows = catalog.read_many(keys)
        except Unavailable as error:
            raise CannotAsk(f"the table {table} cannot be read: {error}; check --table") from error
        return {key: _state(row) for key, row in rows.items()}

    return ask


def wait_for(
    expected: Mapping[str, Expected],
    ask: Statuses,
    patience: float,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[tuple[str, State | None]]:
    """Each document when its status is known, those removed with None or a tombstone.

    Raises CannotAsk where nothing new is known for `patience` seconds, with the last reason.
    """
    waiting = list(expected)
    news, pause = now(), PAUSE_SECONDS
    trouble = "ingest has not said what became of them; kb documents shows it later"
    while waiting:
        asked = waiting[:ASKED_AT_ONCE]
        try:
            states = ask(asked)
        except CannotAsk as error:
            trouble, done = str(error), []
        else:
            done = [key for key in asked if expected[key].is_met_by(states.get(key))]
        for key in done:
            yield key, states.get(key)
        if done:
            news, pause = now(), PAUSE_SECONDS
            waiting = [key for key in waiting if key not in set(done)]
            continue
        if now() - news > patience:
            raise CannotAsk(f"{len(waiting)} documents after {patience:g} s: {trouble}")
        # Those asked may be the slow ones: the others get their turn.
        waiting = waiting[len(asked) :] + asked
        sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)


def content_hash_of(file: MarkdownFile) -> str:
    """The hash by which the catalog knows the file's content; "" where it is no text."""
    try:
        return parse_within(file.path.read_bytes(), _limits()).content_hash
    except (OSError, Refused):
        return ""


def _state(row: CatalogRow) -> State:
    changed_at = datetime.fromtimestamp(row.changed_at / 1000, UTC)
    return State(row.status, row.reason, row.content_hash, changed_at)


def _refusal(file: MarkdownFile) -> str:
    """Why ingest would refuse the file, in its words; "" where it would not."""
    checked = check_document(file, _limits())
    return checked.reason if checked.status is Status.FAILED else ""


def _limits() -> DocumentLimits:
    """Ingest's, where this shell has the same environment; else the usual ones."""
    return read_settings(DocumentLimits, os.environ)
