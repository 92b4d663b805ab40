"""Forty troublesome documents, each of its own kind, from the bucket's event to what is served."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kb.documents import CatalogRow, Status
from kb.folding import fold
from kb.local.cloud import LocalCloud, MotoServer
from kb.local.embedded_index import EmbeddedIndex
from kb.local.event_source import EventSource
from kb.local.functions import handler_of
from kb.ports import IndexedChunk

from tests.conftest import TEMPLATE, Clock, System
from tests.fakes import HashingEmbedder

DOCUMENTS = Path(__file__).parents[1] / "documents"
MANIFEST: dict[str, dict[str, Any]] = json.loads((DOCUMENTS / "manifest.json").read_text("utf-8"))


class RecordingIndex(EmbeddedIndex):
    """Remembers the text of what was written, by key."""

    def __init__(self, *, model: str, dimension: int) -> None:
        super().__init__(model=model, dimension=dimension)
        self.texts: dict[str, list[str]] = {}

    def write(self, chunks: Sequence[IndexedChunk]) -> None:
        super().write(chunks)
        for chunk in chunks:
            self.texts.setdefault(chunk.key, []).append(chunk.text)


@dataclass(frozen=True, slots=True)
class Ingested:
    """All forty, after their events were handled."""

    system: System
    index: RecordingIndex
    rows: dict[str, CatalogRow]


@pytest.fixture(scope="module")
def ingested(moto: MotoServer) -> Ingested:
    embedder = HashingEmbedder()
    index = RecordingIndex(model=embedder.model, dimension=embedder.dimension)
    cloud = LocalCloud(moto, TEMPLATE, stack="documents")
    system = System(cloud, embedder, index, Clock())
    for name, entry in MANIFEST.items():
        system.put(entry["key"], (DOCUMENTS / name).read_bytes())
    handler = handler_of("ingest")
    parts = system.new_ingest()
    source = EventSource(cloud.client("sqs"), cloud.queue_url, handler, workers=1, batch_size=10)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(handler.__globals__, "ingest_parts", lambda: parts)
        while source.deliver_once():
            pass
    rows = {row.key: row for row in system.new_lookup().documents.load()}
    return Ingested(system, index, rows)


NO_FRONTMATTER = "no frontmatter: line 1 is not `---`"
UNUSABLE = "frontmatter unusable: "
ONE_CHUNK = (Status.INDEXED, "", 1)
EXPECTED: dict[str, tuple[Status, str, int]] = {
    **dict.fromkeys(MANIFEST, ONE_CHUNK),
    "fence_at_eof.md": (Status.EMPTY, "there is no text below the frontmatter", 0),
    "html_comment_first.md": (Status.SEMANTIC_ONLY, NO_FRONTMATTER, 1),
    "hr_first.md": (
        Status.SEMANTIC_ONLY,
        f"{UNUSABLE}line 3, column 1: it is text, not `name: value` lines",
        1,
    ),
    "fullwidth_colon.md": (
        Status.SEMANTIC_ONLY,
        f"{UNUSABLE}line 2, column 1: it is text, not `name: value` lines;"
        " a full-width ： is no colon to YAML",
        1,
    ),
    "colon_in_title.md": (
        Status.SEMANTIC_ONLY,
        f"{UNUSABLE}line 2, column 13: mapping values are not allowed here"
        " (put quotes around a value that holds `: `)",
        1,
    ),
    "percent_scalar.md": (
        Status.SEMANTIC_ONLY,
        f"{UNUSABLE}line 4, column 5: found character '%' that cannot start any token"
        " (put quotes around the value)",
        1,
    ),
    "template_braces.md": (
        Status.SEMANTIC_ONLY,
        f"{UNUSABLE}line 2, column 9: a field's name is a list or a mapping",
        1,
    ),
    "nested_list.md": (
        Status.SEMANTIC_ONLY,
        f"{UNUSABLE}line 3, column 12: a keyword must be text, not a list or mapping",
        1,
    ),
    "dup_keys.md": (
        Status.INDEXED,
        "frontmatter, line 3, column 1: `title` is given twice, this last one counts",
        1,
    ),
    "yaml_bomb.md": (
        Status.SEMANTIC_ONLY,
        f"{UNUSABLE}line 2, column 8: its aliases expand to more than 131072 characters",
        1,
    ),
    "toml.md": (Status.SEMANTIC_ONLY, NO_FRONTMATTER, 1),
    "json_first_line.md": (Status.SEMANTIC_ONLY, NO_FRONTMATTER, 1),
    "unterminated.md": (
        Status.SEMANTIC_ONLY,
        "no frontmatter: `---` in line 1 is never closed",
        1,
    ),
    "long_cjk_no_punct.md": (Status.INDEXED, "", 36),
    "base64_line.md": (Status.INDEXED, "", 93),
    **dict.fromkeys(
        ("whitespace_only.md", "zero.md"),
        (Status.EMPTY, "no frontmatter: the document is blank; there is no text", 0),
    ),
    "nul_in_fm.md": (
        Status.SEMANTIC_ONLY,
        f"{UNUSABLE}line 2, column 9: character U+0000 is not allowed",
        1,
    ),
    "long_keyword.md": (
        Status.SEMANTIC_ONLY,
        f"{UNUSABLE}line 3, column 11: every keyword is too long; frontmatter, line 3, column 11:"
        " keyword `长长长长长长长长长长长长长长长长长长长长…` is dropped, it has 900 characters,"
        " at most 256 are allowed",
        1,
    ),
}
"""Status, reason and chunks."""


def test_manifest_names_every_document() -> None:
    files = {path.name for path in DOCUMENTS.glob("*.md")} - {"README.md"}
    assert (MANIFEST.keys(), len(MANIFEST)) == (files, 40)


@pytest.mark.parametrize("name", MANIFEST)
def test_document_gets_the_status_keywords_and_reason_of_its_kind(
    ingested: Ingested, name: str
) -> None:
    entry = MANIFEST[name]
    row = ingested.rows[entry["key"]]
    chunks = len(ingested.index.texts.get(entry["key"], []))
    assert (row.status, row.reason, chunks) == EXPECTED[name]
    assert row.keywords == tuple(entry["keywords"] or ())
    assert not row.cleanup_pending


@pytest.mark.parametrize("name", MANIFEST)
def test_chunks_hold_the_text_and_nothing_but_the_text(ingested: Ingested, name: str) -> None:
    entry = MANIFEST[name]
    text = "\n".join(ingested.index.texts.get(entry["key"], []))
    present = [wanted in text for wanted in entry["semantic_must_contain"]]
    unwanted = [w in text for w in (*entry["semantic_must_not_contain"], "\0", "\ufffd", "\ufeff")]
    assert (all(present), any(unwanted)) == (True, False)


def test_index_holds_the_served_version_of_each_and_nothing_else(ingested: Ingested) -> None:
    question = ingested.system.embedder.embed_question("磁盘")
    hits = ingested.index.search(question, 10_000)
    held = Counter((hit.key, hit.version) for hit in hits)
    expected = {
        (row.key, row.served): EXPECTED[name][2]
        for name, entry in MANIFEST.items()
        if (row := ingested.rows[entry["key"]]) and EXPECTED[name][2]
    }
    assert held == expected


@pytest.mark.parametrize("name", [name for name in MANIFEST if MANIFEST[name]["keywords"]])
def test_every_keyword_leads_to_its_document(ingested: Ingested, name: str) -> None:
    catalog = ingested.system.new_lookup().catalog
    catalog.refresh()
    row = ingested.rows[MANIFEST[name]["key"]]
    twins = {twin.key for twin in catalog.twins(row)}
    for keyword in row.keywords:
        assert twins & {match.key for match in catalog.match(fold(keyword)) if match.whole}


def test_short_keyword_is_not_found_inside_a_word(ingested: Ingested) -> None:
    catalog = ingested.system.new_lookup().catalog
    catalog.refresh()
    matched = {q: {m.key for m in catalog.match(fold(q))} for q in ("email 验证码", "用ai写")}
    assert matched == {"email 验证码": set(), "用ai写": {"short_kw.md"}}


def test_only_documents_of_equal_text_are_twins(ingested: Ingested) -> None:
    catalog = ingested.system.new_lookup().catalog
    catalog.refresh()
    groups = {tuple(twin.key for twin in catalog.twins(row)) for row in ingested.rows.values()}
    by_text: dict[str, list[str]] = {}
    for name, entry in MANIFEST.items():
        data = (DOCUMENTS / name).read_bytes()
        text = data.decode("utf-16" if data[:1] in (b"\xff", b"\xfe") else "utf-8-sig")
        by_text.setdefault(text, []).append(entry["key"])
    assert groups == {tuple(sorted(keys)) for keys in by_text.values()}
