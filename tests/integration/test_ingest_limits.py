"""Long and odd documents: indexed, or refused with the limit named, before anything is embedded."""

import re
from collections.abc import Iterable
from typing import Any

import pytest
from kb.admission import SECTIONS_MOST
from kb.documents import Status
from kb.stores.content_table import METADATA, OUTLINE

from tests.conftest import System, markdown

ROW_BYTES = 64 * 1024
MEGABYTE = 1024 * 1024


def document(body: str, keywords: Iterable[str] = ("词",), **fields: str) -> str:
    return markdown("长文", f"[{', '.join(keywords)}]", body, **fields)


INDEXED = {
    "a paragraph of 212,000 characters": (document("测" * 212_000), 318, ""),
    "sentences without end": (document("清理旧日志。" * 35_000), 321, ""),
    "one line of 60 KB": (document("QUJD" * 15_000), 90, ""),
    "3,000 sections": (
        document("\n\n".join(f"## 第{n}节\n\n内容{n}" for n in range(3000))),
        84,
        "",
    ),
    "a table of 5,000 rows": (
        document("| 名 | 值 |\n|---|---|\n" + "".join(f"| a{n} | b{n} |\n" for n in range(5000))),
        138,
        "",
    ),
    "2,000 keywords": (document("正文", (f"关键词{n}" for n in range(2000))), 1, ""),
    "2,000 long keywords": (
        document("正文", (f"一个相当长的关键词名字{n}" for n in range(2000))),
        1,
        r"only the first 1,?\d+ of 2000 keywords are kept: a catalog row has at most 65,536 bytes",
    ),
    "fields as long as the frontmatter": (
        document("正文", **dict.fromkeys(("category", "version", "author"), "长" * 9000)),
        1,
        r"category is cut to 300 characters, it has 9000; version is cut .*; author is cut .*",
    ),
}


@pytest.mark.parametrize(("text", "chunks", "reason"), INDEXED.values(), ids=INDEXED)
def test_long_document_is_indexed_whole(
    system: System, text: str, chunks: int, reason: str
) -> None:
    outcome = system.ingest("a/long.md", text)
    parts = system.new_lookup()
    row = parts.documents.read("a/long.md")
    assert row is not None
    assert row.served is not None
    hits = system.index.search(system.embedder.embed_question("x"), 10_000)
    outline, texts = parts.content.read([(row, range(1, min(row.parts, 90) + 1))])[row.key]
    assert (outcome.status, len(hits)) == (Status.INDEXED, chunks)
    assert re.fullmatch(reason, row.reason)
    assert outline.parts == row.parts >= len(texts) == min(row.parts, 90)
    assert item_bytes(system, "CatalogTable", "a/long.md") < ROW_BYTES


def test_keywords_that_fit_are_found_and_the_others_are_said_to_be_dropped(system: System) -> None:
    keywords = [f"一个相当长的关键词名字{n:04}" for n in range(2000)]
    system.ingest("a/long.md", document("正文", keywords))
    row = system.new_lookup().documents.read("a/long.md")
    assert row is not None
    assert 1000 < len(row.keywords) < 2000
    assert row.keywords == tuple(keywords[: len(row.keywords)])
    assert system.ask(row.keywords[-1]).level == "PRECISE"


REFUSED = {
    "5 MB of lines": (
        document("word word word word word.\n" * 200_000),
        r"the document has [\d,]+ chunks; at most [\d,]+ are indexed: split it",
    ),
    "5 MB of Chinese": (
        document("这是一段用来测试的文字。" * 140_000),
        r"the document has [\d,]+ chunks; at most [\d,]+ are indexed: split it",
    ),
    "more bytes than are read": (
        document("x" * 10 * MEGABYTE),
        r"the file has 10,485,\d{3} bytes; at most 10,485,760 are indexed: split it",
    ),
    "more sections than an answer can name": (
        document("# a\n" * (SECTIONS_MOST + 1)),
        r"the document has 10,001 sections; at most 10,000 are indexed: split it",
    ),
}


@pytest.mark.parametrize(("text", "reason"), REFUSED.values(), ids=REFUSED)
def test_document_over_a_limit_is_refused_by_its_name_and_nothing_is_embedded(
    system: System, text: str, reason: str
) -> None:
    system.ingest("a/long.md", document("旧的正文", ["旧词"]))
    before = system.embedder.passages.copy()
    outcome = system.ingest("a/long.md", text)
    answer = system.ask("旧词")
    assert outcome.status is Status.FAILED
    assert re.fullmatch(reason, outcome.reason)
    assert system.embedder.passages == before
    assert (answer.level, answer.primary and answer.primary.content) == ("PRECISE", "旧的正文")


def test_frontmatter_over_its_limit_costs_the_keywords_only(system: System) -> None:
    outcome = system.ingest("a/long.md", document("正文", summary="长" * 70_000))
    assert (outcome.status, outcome.reason) == (
        Status.SEMANTIC_ONLY,
        "frontmatter unusable: it has 70034 characters, at most 65536 are read",
    )


def test_largest_outline_and_frontmatter_fit_their_items(system: System) -> None:
    headings = "\n".join(f"# {n * 7919 % 1_000_003:x} 标题" for n in range(SECTIONS_MOST))
    metadata = "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(60_000))
    outcome = system.ingest("a/long.md", document(headings, notes=metadata))
    sizes = [item_bytes(system, "ContentTable", "a/long.md", name) for name in (OUTLINE, METADATA)]
    assert outcome.status is Status.INDEXED
    assert all(1000 < size < 400_000 for size in sizes)


def item_bytes(system: System, table: str, key: str, name: str = "") -> int:
    """The size of an item by DynamoDB's rules: names and values, 3 and 1 more for collections."""
    client = system.cloud.client("dynamodb")
    pages = client.get_paginator("scan").paginate(TableName=system.cloud._name(table))
    [item] = [
        item
        for page in pages
        for item in page["Items"]
        if item["key"]["S"] == key and item.get("item", {"S": name})["S"].endswith(name)
    ]
    return sum(len(attribute.encode()) + _bytes(value) for attribute, value in item.items())


def _bytes(typed: dict[str, Any]) -> int:
    [(kind, value)] = typed.items()
    match kind:
        case "S":
            return len(value.encode())
        case "B":
            return len(value)
        case "N":
            return len(value) // 2 + 2
        case "L":
            return 3 + sum(1 + _bytes(inner) for inner in value)
        case "M":
            return 3 + sum(1 + len(n.encode()) + _bytes(inner) for n, inner in value.items())
        case _:
            return 1
