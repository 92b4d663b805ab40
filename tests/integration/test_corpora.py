"""A mixed corpus through the handler: every document gets what its kind must get.

`tests/benchmarks/run_corpus.py` does the same with 10,000 documents and stores of other processes.
"""

import json
import re
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote_plus

import pytest
from kb.documents import CatalogRow, Status
from kb.local.functions import Context, handler_of

from tests.corpus import CHUNKS, DOCUMENT_BYTES, KINDS, Sample, corpus
from tests.ingest_world import SETTINGS, World

COUNT = 300
BATCH = 3
LIMITED = SETTINGS.model_copy(
    update={
        "content_limit": 2000,
        "chunk_size": 800,
        "chunk_overlap": 100,
        "embed_batch": 32,
        "document_bytes": DOCUMENT_BYTES,
        "chunks_per_document": CHUNKS,
    }
)
Deliver = Callable[[World, list[Sample]], Any]


@pytest.fixture
def deliver(monkeypatch: pytest.MonkeyPatch) -> Deliver:
    """Put the documents and take their messages to the handler; its answer."""
    handler, parts = handler_of("ingest"), SimpleNamespace()
    monkeypatch.setitem(handler.__globals__, "ingest_parts", lambda: parts)

    def deliver(world: World, samples: list[Sample]) -> Any:
        parts.ingest = world.ingest()
        for sample in samples:
            world.s3.put(sample.key, sample.data)
        return handler({"Records": [_message(sample.key) for sample in samples]}, Context("ingest"))

    return deliver


def _message(key: str) -> dict[str, Any]:
    body = {"Records": [{"s3": {"object": {"key": quote_plus(key, safe="/")}}}]}
    return {"messageId": key, "eventSource": "aws:sqs", "body": json.dumps(body)}


def batches(samples: Iterable[Sample]) -> Iterable[list[Sample]]:
    batch: list[Sample] = []
    for sample in samples:
        batch.append(sample)
        if len(batch) == BATCH:
            yield batch
            batch = []


def test_every_document_ends_in_the_status_of_its_kind_and_the_counts_add_up(
    deliver: Deliver,
) -> None:
    world = World(LIMITED)
    samples = list(corpus(COUNT))
    answers = [deliver(world, batch) for batch in batches(samples)]
    rows = {row.key: row for row in world.catalog().load()}
    counts = Counter(row.status for row in rows.values())
    wrong = {s.key: (s.kind, rows[s.key]) for s in samples if not is_as_expected(s, rows[s.key])}
    assert answers == [{"batchItemFailures": []}] * (COUNT // BATCH)
    assert wrong == {}
    assert counts == Counter(sample.status for sample in samples)
    assert len(counts) == 4
    assert {sample.kind for sample in samples} == set(KINDS)
    held = Counter(key for key, _, _ in world.index.chunks)
    assert set(held) == {
        key for key, row in rows.items() if row.status in (Status.INDEXED, Status.SEMANTIC_ONLY)
    }


def is_as_expected(sample: Sample, row: CatalogRow) -> bool:
    return (
        row.status is sample.status
        and re.fullmatch(sample.reason, row.reason, re.DOTALL) is not None
        and not row.cleanup_pending
    )


def test_memory_does_not_grow_with_the_documents(deliver: Deliver) -> None:
    """What the stores hold is no memory of ingest, so each document has stores of its own."""
    samples = list(corpus(2 * len(KINDS)))
    peaks = []
    tracemalloc.start()
    for _ in range(2):
        tracemalloc.reset_peak()
        for sample in samples:
            deliver(World(LIMITED), [sample])
        peaks.append(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
    assert peaks[1] <= 1.1 * peaks[0]
