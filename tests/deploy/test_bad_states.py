"""What is set up wrongly is told in the answer and in the log, and costs no document."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from kb.stores.opensearch_mapping import mapping_for

from tests.conftest import markdown
from tests.deploy.conftest import EMBEDDING
from tests.deploy.stack import EMBEDDER, Stack, until, zipped

MODEL = "BAAI/bge-m3"
KEY = "kept/document.md"
NEW = "kept/put meanwhile.md"
STRONG = "KEPT-DOCUMENT"
WEAK = "KEPT-DOCUMENT in which chapter exactly"
MEANING = "ostriches juggle crimson lanterns"

EMBEDDERS = {
    "another model": (
        {'"BAAI/bge-m3"': '"some/other-model"'},
        "the embedding function has model some/other-model, not BAAI/bge-m3",
    ),
    "another dimension": ({"DIMENSION = 1024": "DIMENSION = 512"}, "512"),
    "out of memory": (
        {"    vectors =": "    __import__('os').kill(__import__('os').getpid(), 9)\n    vectors ="},
        "embedding did not answer (function error",
    ),
    "no contract": (
        {'return {"vectors": vectors,': 'return {"embeddings": vectors,'},
        "answers in a form that no embedding function has",
    ),
}
INDEXES = {
    "another model": (
        mapping_for("some/other-model", 1024),
        "OpenSearch index wrong-1 holds vectors of the embedding model some/other-model,"
        f" and this function embeds with {MODEL}",
    ),
    "another dimension": (
        mapping_for(MODEL, 512),
        "OpenSearch index wrong-1 has another mapping: properties.vector.dimension is 512"
        " and not 1024",
    ),
    "no mapping of ours": (
        {"properties": {"text": {"type": "text"}}},
        "OpenSearch index wrong-1 holds vectors of the embedding model None",
    ),
}


@dataclass(frozen=True, slots=True)
class Told:
    """What a caller and the log are told in a bad state."""

    answers: list[tuple[int, Any]]
    """Of a strong keyword, a weak one and a question by meaning: status, degraded or code."""
    retry_after: str | None
    health: str
    lookup_log: str
    ingest_log: str


HONEST = [(200, []), (200, ["semantic"]), (503, "semantic_unavailable")]
"""The keyword's answer as ever, or with a word on what is missing; never "nothing found"."""


@pytest.fixture(scope="module")
def kept(stack: Stack) -> Iterator[Stack]:
    """One document is there before, and afterwards as it was; nothing else came or went."""
    stack.put(KEY, markdown("Kept", f"[{STRONG}]", MEANING))
    stack.until_indexed(KEY)
    before = state(stack)
    assert [degraded for _, degraded in before[0]] == [[], [], []]
    yield stack
    assert until(lambda: state(stack), lambda seen: seen == before) == before


def state(stack: Stack) -> tuple[list[tuple[int, Any]], str, int]:
    content = stack.ask(STRONG).body["primary"]["content"]
    return answers(stack), content, stack.index.chunks_of(KEY)


def answers(stack: Stack) -> list[tuple[int, Any]]:
    replies = [stack.ask(query) for query in (STRONG, WEAK, MEANING)]
    return [(r.status, r.body["degraded"] if r.status == 200 else r.code) for r in replies]


def told(stack: Stack) -> Told:
    started = time.time()
    replies = answers(stack)
    retry_after = stack.ask(MEANING).headers.get("retry-after")
    health = stack.call("GET", "/health").body
    wrong = {name: word for name, word in health["parts"].items() if word != "ok"}
    causes = [
        str(line["cause"])
        for line in stack.log("lookup", started)
        if line["message"] == "semantic search failed"
    ]
    stack.put(KEY, markdown("Kept", f"[{STRONG}]", MEANING + " and more"))
    ingest_log = stack.ingest(KEY)
    stack.put(KEY, markdown("Kept", f"[{STRONG}]", MEANING))
    return Told(replies, retry_after, json.dumps(wrong), " ".join(causes), ingest_log)


@contextmanager
def embedder_changed(stack: Stack, changes: dict[str, str]) -> Iterator[None]:
    source = EMBEDDING.read_text(encoding="utf-8")
    changed = source
    for old, new in changes.items():
        assert old in source
        changed = changed.replace(old, new)
    functions = stack.client("lambda")
    functions.update_function_code(FunctionName=EMBEDDER, ZipFile=zipped(changed))
    try:
        yield
    finally:
        functions.update_function_code(FunctionName=EMBEDDER, ZipFile=zipped(source))


@pytest.mark.parametrize("fault", EMBEDDERS)
def test_an_embedding_function_that_does_not_fit_is_told(kept: Stack, fault: str) -> None:
    changes, cause = EMBEDDERS[fault]
    with kept.quiet(), embedder_changed(kept, changes):
        seen = told(kept)
    assert seen.answers == HONEST
    assert seen.retry_after == "5"
    assert json.loads(seen.health).keys() == {"embedding"}
    assert cause in seen.lookup_log
    assert cause in seen.ingest_log


def test_a_permission_that_is_missing_is_told(kept: Stack) -> None:
    with (
        kept.quiet(),
        kept.without("LookupRole", "Search", "es:ESHttpPost"),
        kept.without("IngestRole", "ReadAndWrite", "es:ESHttpPost"),
    ):
        seen = told(kept)
    assert seen.answers == HONEST
    for log in (seen.lookup_log, seen.ingest_log):
        assert "is not authorized to perform: es:ESHttpPost" in log
        assert "allow the function's role es:ESHttpGet, es:ESHttpPost" in log


def test_an_index_that_is_another_systems_is_told(kept: Stack) -> None:
    seen = {}
    with kept.quiet(), kept.updated(OpenSearchIndex="wrong"):
        for fault, (mapping, _) in INDEXES.items():
            with kept.index.with_index("wrong", mapping):
                seen[fault] = told(kept)
    for fault, (_, cause) in INDEXES.items():
        assert seen[fault].answers == HONEST
        assert json.loads(seen[fault].health) == {"vectors": "is set up wrongly"}
        assert cause in seen[fault].lookup_log
        assert cause in seen[fault].ingest_log


def test_where_nobody_answers_is_told_and_documents_wait_until_somebody_does(kept: Stack) -> None:
    started = time.time()
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        nowhere = f"https://127.0.0.1:{nobody.getsockname()[1]}"
        with kept.updated(OpenSearchEndpoint=nowhere):
            with kept.quiet():
                seen = told(kept)
            kept.put(NEW, markdown("Meanwhile", "[KEPT-MEANWHILE]", "Put while all was wrong."))
            until(lambda: [line for line in kept.log("ingest", started) if line.get("key") == NEW])
            listed = kept.documents("kept").keys()
    kept.until_indexed(NEW)
    found = kept.ask("KEPT-MEANWHILE").body["primary"]["source"]
    kept.delete(NEW)
    kept.until_gone(NEW)
    assert seen.answers == HONEST
    assert json.loads(seen.health) == {"vectors": "does not answer"}
    assert "vectors did not answer" in seen.lookup_log
    assert "vectors did not answer" in seen.ingest_log
    assert listed == {KEY}
    assert found == NEW
