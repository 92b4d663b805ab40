"""Ingest over stores in memory: a bucket, messages, and workers that stop before every call."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

from kb.documents import CatalogRow, Status, Version
from kb.errors import KbError
from kb.ingest import Ingest
from kb.ports import IndexedChunk
from kb.settings import IngestSettings
from kb.stores.catalog_table import CatalogTable
from kb.stores.content_table import ContentTable
from kb.stores.dynamodb import from_item
from kb.stores.knowledge_bucket import KnowledgeBucket

from tests.conftest import markdown
from tests.fakes import HashingEmbedder
from tests.memory_aws import MemoryDynamoDB, MemoryS3
from tests.workers import Worker, pause

TEXTS = {
    "several parts": markdown("One", "[one, first]", "# A\n\n" + "alpha beta. " * 30),
    "one part": markdown("Two", "[two]", "# B\n\n" + "gamma delta. " * 12),
    "semantic only": "no frontmatter, " * 10,
    "empty": markdown("Empty", "[empty]", ""),
    "no text": "\0\1\2\3",
}
SETTINGS = IngestSettings(
    knowledge_bucket="bucket",
    catalog_table="catalog",
    content_table="content",
    embedder="embedded",
    vector_index="embedded",
    content_limit=200,
    chunk_size=100,
    chunk_overlap=0,
    embed_batch=2,
)


class PausingEmbedder(HashingEmbedder):
    def embed_passages(self, texts: Any) -> Any:
        for _ in range(5):  # it is what a worker waits for longest
            pause("embed")
        return super().embed_passages(texts)


class PausingIndex:
    """The port as one dictionary; a write or removal takes effect chunk by chunk."""

    def __init__(self, may_remove: Callable[[str, Version], None]) -> None:
        self.chunks: dict[tuple[str, Version, int], str] = {}
        self.changes = 0
        self._written: list[IndexedChunk] = []
        self._may_remove = may_remove

    def prepare(self) -> None:
        pause("prepare")

    def write(self, chunks: Any) -> None:
        for chunk in chunks:
            pause("write")
            self._written.append(chunk)

    def refresh(self) -> None:
        pause("refresh")
        self._show_written()

    def remove_others(self, key: str, kept: Version | None, through: int) -> None:
        pause("remove")
        self._show_written()
        found = [
            identity
            for identity in self.chunks
            if identity[0] == key and identity[1] != kept and identity[1].revision <= through
        ]
        for identity in found:
            pause("remove one")
            self._may_remove(key, identity[1])
            self.chunks.pop(identity, None)
            self.changes += 1

    def _show_written(self) -> None:
        for chunk in self._written:
            self.chunks[chunk.key, chunk.version, chunk.ordinal] = chunk.text
            self.changes += 1
        self._written.clear()


@dataclass(frozen=True, slots=True)
class Held:
    """What the catalog says of a key, and what the other stores hold of it."""

    row: CatalogRow | None
    chunks: dict[tuple[Version, int], str]
    items: dict[tuple[Version, str], Any]


class World:
    """A bucket, what is made of it, messages on their way, and workers in the middle of things."""

    def __init__(self, settings: IngestSettings = SETTINGS) -> None:
        self.s3 = MemoryS3()
        self.dynamodb = MemoryDynamoDB("catalog", "content")
        self.s3.before = self.dynamodb.before = pause
        self.index = PausingIndex(self._may_remove)
        self.messages: list[str] = []
        self.lost: list[str] = []
        self.workers: list[tuple[str, Worker]] = []
        self._settings = settings
        self._checked = (0, 0)
        self.seconds = 1_800_000_000.0

    def put(self, key: str, text: str) -> None:
        self.s3.put(key, TEXTS[text].encode())
        self.messages.append(key)

    def delete(self, key: str) -> None:
        self.s3.delete(key)
        self.messages.append(key)

    def undelete(self, key: str) -> None:
        if self.s3.undelete(key):
            self.messages.append(key)

    def deliver(self, number: int) -> None:
        """Start a worker on one of the messages, which one is anybody's guess."""
        if self.messages:
            key = self.messages.pop(number % len(self.messages))
            self.workers.append((key, self.worker(key)))

    def worker(self, key: str) -> Worker:
        return Worker(lambda: self.ingest().reconcile(key))

    def double(self, number: int) -> None:
        if self.messages:
            self.messages.append(self.messages[number % len(self.messages)])

    def lose(self, number: int) -> None:
        """To the dead letter queue, until somebody drives it back."""
        if self.messages:
            self.lost.append(self.messages.pop(number % len(self.messages)))

    def redrive(self) -> None:
        self.messages += self.lost
        self.lost.clear()

    def step(self, number: int, times: int) -> None:
        """Let one worker go on; one that fails gives its message back."""
        if not self.workers:
            return
        key, worker = self.workers[number % len(self.workers)]
        try:
            while times and not worker.is_done:
                times -= 1
                worker.step()
                self.check_served(key)
        except KbError:
            self.messages.append(key)
        if worker.is_done:
            self.workers.remove((key, worker))

    def kill(self, number: int) -> None:
        """One that dies gives its message back too."""
        if self.workers:
            key, worker = self.workers.pop(number % len(self.workers))
            worker.kill()
            self.messages.append(key)

    def come_to_rest(self, random: Random) -> None:
        """Until no message is left: one worker goes on until, now and then, it stalls or dies."""
        changes = random.choices(("one part", "several parts", "several parts", None), k=5)
        self.redrive()
        while self.messages or self.workers:
            if self.messages and (not self.workers or random.random() < 0.1):
                self.deliver(random.randrange(1000))
                self.workers.insert(random.randrange(len(self.workers)), self.workers.pop())
            self.step(-1, 1)
            happens = random.random()
            if happens < 0.1 and self.workers:
                self.workers.insert(0, self.workers.pop())
            elif happens < 0.12:
                self.kill(-1)
            elif happens < 0.17 and changes:
                text = changes.pop()
                self.put("a", text) if text else self.delete("a")

    def held(self, key: str) -> Held:
        items = (item for item in self.dynamodb.items("content") if item["key"]["S"] == key)
        return Held(
            self.catalog().read(key),
            {(v, at): text for (k, v, at), text in self.index.chunks.items() if k == key},
            {_place(item): _content(item) for item in map(from_item, items)},
        )

    def ingest(self) -> Ingest:
        return Ingest(
            bucket=KnowledgeBucket(self.s3, "bucket"),
            catalog=self.catalog(),
            content=ContentTable(self.dynamodb, "content"),
            index=self.index,
            embedder=PausingEmbedder(),
            settings=self._settings,
            now=self._now,
        )

    def _now(self) -> float:
        self.seconds += 0.001
        return self.seconds

    def catalog(self) -> CatalogTable:
        return CatalogTable(self.dynamodb, "catalog")

    def _may_remove(self, key: str, version: Version) -> None:
        """Fail where somebody removes what a commit serves or may still come to serve."""
        rows = map(from_item, self.dynamodb.items("catalog"))
        row = next(row for row in rows if row["key"] == key)
        assert version != _version(row.get("served"))
        assert version.revision <= row["revision"]

    def check_served(self, key: str) -> None:
        """At every moment, what the catalog serves is there and whole."""
        changes = (self.dynamodb.changes, self.index.changes)
        if changes == self._checked:
            return
        self._checked = changes
        held = self.held(key)
        if held.row and held.row.served:
            served = held.row.served
            whole = by_fingerprint()[served.fingerprint]
            assert {at: t for (v, at), t in held.chunks.items() if v == served} == whole.chunks
            assert {n: i for (v, n), i in held.items.items() if v == served} == whole.items


@dataclass(frozen=True, slots=True)
class Whole:
    """One version as a single undisturbed ingest makes it."""

    row: CatalogRow
    chunks: dict[int, str]
    items: dict[str, Any]


def _place(item: dict[str, Any]) -> tuple[Version, str]:
    revision, fingerprint, name = item["item"].split("#", 2)
    return Version(int(revision), fingerprint), name


def _content(item: dict[str, Any]) -> Any:
    return {name: value for name, value in item.items() if name not in ("key", "item")}


def _version(served: dict[str, Any] | None) -> Version | None:
    return Version(served["revision"], served["fingerprint"]) if served else None


@cache
def undisturbed(text: str) -> Whole:
    """What a single ingest makes of one of the texts."""
    world = World()
    world.put("a", text)
    world.worker("a").finish()
    held = world.held("a")
    assert held.row is not None
    return Whole(
        replace(held.row, changed_at=0),
        {at: chunk for (_, at), chunk in held.chunks.items()},
        {name: item for (_, name), item in held.items.items()},
    )


@cache
def by_fingerprint() -> dict[str, Whole]:
    wholes = map(undisturbed, TEXTS)
    return {whole.row.served.fingerprint: whole for whole in wholes if whole.row.served}


def assert_agrees(world: World, key: str) -> None:
    """The row says what the object is, and the stores hold what the row serves, nothing else."""
    held = world.held(key)
    data = world.s3.newest(key)
    if data is None:
        assert held.row is None or held.row.status is Status.DELETED
        assert (held.chunks, held.items) == ({}, {})
        return
    assert held.row is not None
    text = next(name for name, text in TEXTS.items() if text.encode() == data)
    expected = undisturbed(text).row
    if expected.status is Status.FAILED:
        assert (held.row.status, held.row.reason) == (Status.FAILED, expected.reason)
    else:
        assert held.row.served is not None
        assert expected.served is not None
        assert replace(held.row, changed_at=0) == replace(
            expected,
            key=key,
            revision=held.row.revision,
            served=Version(held.row.served.revision, expected.served.fingerprint),
        )
    served = held.row.served
    whole = by_fingerprint()[served.fingerprint] if served else Whole(held.row, {}, {})
    assert held.chunks == {(served, at): text for at, text in whole.chunks.items()}
    assert held.items == {(served, name): item for name, item in whole.items.items()}
