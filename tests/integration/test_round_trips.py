"""How often an answer waits for something outside, the one after the other."""

from typing import Any

import pytest
from kb.answers import Question
from kb.wiring import LookupParts

from tests.conftest import System, markdown
from tests.wire import Watched, Wire

HOLD = 0.1
"""Seconds that every call is held, so that calls made side by side overlap."""
SECTIONS = "\n\n".join(f"## 章 {n}\n\n{'正文' * 700} 词{n}" for n in range(1, 13))
BODY = "alpha beta gamma delta"


@pytest.fixture
def parts(wire: Wire, system: System) -> LookupParts:
    """A warm lookup function, its catalog due for a look."""
    system.ingest("ops/disk.md", markdown("磁盘", "[磁盘告警]", "清理旧日志。"))
    system.ingest("a/one.md", markdown("alpha", "[alpha beta]", f"{BODY} one"))
    system.ingest("b/two.md", markdown("alpha", "[zeta]", f"{BODY} two"))
    system.ingest("pay/book.md", markdown("手册", "[退款手册, 词 7, 章 11]", SECTIONS))
    system.embedder = Watched(system.embedder, wire)  # type: ignore[assignment]
    system.index = Watched(system.index, wire)  # type: ignore[assignment]
    parts = system.new_lookup()
    parts.lookup.answer(Question("alpha beta gamma delta"), "caller")
    system.clock.advance(2)
    wire.calls.clear()
    wire.delay = HOLD
    return parts


def ask(parts: LookupParts, query: str, **fields: Any) -> Any:
    return parts.lookup.answer(Question(query, session_id="s1", **fields), "caller")


def test_precise_waits_four_times(wire: Wire, parts: LookupParts) -> None:
    answer = ask(parts, "磁盘告警", request_id="r1")
    assert (answer.level, answer.primary.content) == ("PRECISE", "清理旧日志。")
    assert sorted(wire.names[:2]) == ["Query CatalogTable", "Query SessionTable"]
    assert wire.names[2:] == [
        "BatchGetItem ContentTable",
        "UpdateItem SessionTable",
        "PutItem InvocationTable",
    ]
    assert wire.sequential() == 4


@pytest.mark.parametrize(
    ("query", "asked", "part"),
    [
        ("退款手册", {}, 1),
        ("词 7", {}, 1),
        ("退款手册", {"section_title": "章 5"}, 5),
        ("退款手册", {"part": 12}, 12),
    ],
)
def test_part_of_a_long_document_takes_no_further_trip(
    wire: Wire, parts: LookupParts, query: str, asked: dict[str, Any], part: int
) -> None:
    answer = ask(parts, query, **asked)
    assert (answer.level, answer.primary.part) == ("PRECISE", part)
    assert wire.names.count("BatchGetItem ContentTable") == 1
    assert wire.sequential() == 4


def test_section_behind_the_first_parts_takes_one_more(wire: Wire, parts: LookupParts) -> None:
    answer = ask(parts, "章 11")
    assert (answer.level, answer.primary.part) == ("PRECISE", 11)
    assert wire.names.count("BatchGetItem ContentTable") == 2
    assert wire.sequential() == 5


def test_question_for_meaning_waits_six_times(wire: Wire, parts: LookupParts) -> None:
    answer = ask(parts, "alpha beta gamma delta")
    assert (answer.primary.row.key, answer.supplement.row.key) == ("a/one.md", "b/two.md")
    assert wire.names.count("BatchGetItem ContentTable") == 1
    assert wire.names.count("UpdateItem SessionTable") == 2
    assert wire.sequential() == 6


def test_first_question_for_meaning_waits_once_more_at_most(
    wire: Wire, parts: LookupParts, system: System
) -> None:
    fresh = system.new_lookup()
    fresh.catalog.refresh()
    wire.calls.clear()
    answer = ask(fresh, "alpha beta gamma delta")
    assert answer.primary.row.key == "a/one.md"
    assert "prepare" in wire.names
    assert wire.sequential() <= 7


def test_nothing_found_waits_four_times(wire: Wire, parts: LookupParts) -> None:
    assert ask(parts, "qqqq wwww").found is False
    assert wire.names.count("PutItem InvocationTable") == 1
    assert wire.sequential() == 4


def test_within_the_refresh_interval_the_catalog_is_not_asked(
    wire: Wire, parts: LookupParts
) -> None:
    ask(parts, "磁盘告警")
    wire.calls.clear()
    ask(parts, "磁盘告警")
    assert wire.names == [
        "Query SessionTable",
        "BatchGetItem ContentTable",
        "PutItem InvocationTable",
    ]


def test_without_session_nothing_of_it_is_read_or_written(wire: Wire, parts: LookupParts) -> None:
    parts.lookup.answer(Question("磁盘告警"), "caller")
    assert [name for name in wire.names if "SessionTable" in name] == []
    assert wire.sequential() == 3


def test_health_asks_all_parts_side_by_side(wire: Wire, parts: LookupParts) -> None:
    from kb.health import health_of

    assert health_of(parts)["status"] == "ok"
    assert len(wire.names) == 5
    assert wire.sequential() == 1
