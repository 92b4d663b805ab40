"""The system that tests run against: real stores on moto, made from template.yaml."""

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kb.answers import Answer, Question
from kb.ingest import Outcome
from kb.local.cloud import LocalCloud, MotoServer
from kb.local.embedded_index import EmbeddedIndex
from kb.settings import IngestSettings, LookupSettings, read_settings
from kb.wiring import IngestParts, LookupParts, make_ingest, make_lookup

from tests.api_client import ApiClient
from tests.fakes import HashingEmbedder
from tests.wire import Wire, watched

TEMPLATE = Path(__file__).parents[1] / "template.yaml"
STACKS = itertools.count()


@dataclass(slots=True)
class Clock:
    """Stands still until told to move."""

    nanoseconds: int = 1_800_000_000_000_000_000

    def advance(self, seconds: float) -> None:
        self.nanoseconds += int(seconds * 1e9)

    def seconds(self) -> float:
        return self.nanoseconds / 1e9

    def ticking(self) -> int:
        """A nanosecond later at every look, so that order can be told."""
        self.nanoseconds += 1
        return self.nanoseconds


@dataclass(slots=True)
class System:
    """One whole system: its cloud, and the ingest and lookup parts over it."""

    cloud: LocalCloud
    embedder: HashingEmbedder
    index: EmbeddedIndex
    clock: Clock
    overrides: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return self.cloud.environment | self.overrides

    def new_ingest(self) -> IngestParts:
        """Another ingest function of this system, as a second Lambda environment would be."""
        settings = read_settings(IngestSettings, self.environment)
        return make_ingest(settings, self.embedder, self.index, self.clock.seconds)

    def new_lookup(self) -> LookupParts:
        """Another lookup function of this system, its catalog not yet loaded."""
        settings = read_settings(LookupSettings, self.environment)
        return make_lookup(settings, self.embedder, self.index, self.clock.ticking)

    def put(self, key: str, text: str | bytes) -> None:
        """Store an object; nothing is ingested yet."""
        data = text.encode() if isinstance(text, str) else text
        self.cloud.client("s3").put_object(Bucket=self.cloud.bucket, Key=key, Body=data)

    def delete(self, key: str) -> None:
        self.cloud.client("s3").delete_object(Bucket=self.cloud.bucket, Key=key)

    def ingest(self, key: str, text: str | bytes | None = None) -> Outcome:
        """Store the object (None: as it is) and look at its key."""
        if text is not None:
            self.put(key, text)
        return self.new_ingest().ingest.reconcile(key)

    def ask(self, query: str, caller: str = "caller", **fields: Any) -> Answer:
        """Ask a lookup function whose catalog is fresh."""
        return self.new_lookup().lookup.answer(Question(query, **fields), caller)


def markdown(title: str, keywords: str, body: str, summary: str = "一句话", **fields: str) -> str:
    """A document with frontmatter; `keywords` as YAML, such as "[a, b]"."""
    lines = [f"title: {title}", f"keywords: {keywords}", f"summary: {summary}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "---\n" + "\n".join(lines) + f"\n---\n\n{body}\n"


@pytest.fixture(scope="session")
def moto() -> Iterator[MotoServer]:
    server = MotoServer()
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(
        AWS_ENDPOINT_URL=server.endpoint,
        AWS_REGION="us-east-1",
        AWS_DEFAULT_REGION="us-east-1",
        AWS_ACCESS_KEY_ID="local",
        AWS_SECRET_ACCESS_KEY="local",
        AWS_CONFIG_FILE=os.devnull,
    )
    yield server
    os.environ.clear()
    os.environ.update(before)
    server.close()


@pytest.fixture
def cloud(moto: MotoServer) -> LocalCloud:
    """A stack of its own for every test."""
    return LocalCloud(moto, TEMPLATE, stack=f"test-{next(STACKS)}")


@pytest.fixture
def system(cloud: LocalCloud) -> System:
    embedder = HashingEmbedder()
    index = EmbeddedIndex(model=embedder.model, dimension=embedder.dimension)
    # The test embedder's cosines spread over [0, 1], so the specification's profile fits it.
    specified = {
        "RETRIEVAL_NORMALIZATION_MAX_L2_DISTANCE": "2.0",
        "RETRIEVAL_HIGHLY_RELEVANT_THRESHOLD": "0.75",
        "RETRIEVAL_REFERENCE_THRESHOLD": "0.5",
        "RETRIEVAL_CALIBRATION": "none",
    }
    return System(cloud, embedder, index, Clock(), specified)


@pytest.fixture
def wire(moto: MotoServer) -> Iterator[Wire]:
    """Ask for it before parts are made: it sees the clients made after it."""
    with watched() as wire:
        yield wire


@pytest.fixture
def api(system: System) -> ApiClient:
    """The API over a lookup function of the system; move the clock for it to see changes."""
    return ApiClient(system.new_lookup())
