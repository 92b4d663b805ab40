"""One text under several keys counts once, and each key goes its own way when it changes."""

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kb.answers import Question
from kb.catalog import Catalog
from kb.documents import Status
from kb.folding import fold
from kb.wiring import LookupParts

from tests.conftest import System, markdown
from tests.ingest_world import World
from tests.workers import Worker

TEXT = markdown(
    "磁盘告警处理", "[磁盘告警]", "# 处理\n\n先清理旧日志，再扩容磁盘，最后确认告警恢复。"
)
OTHER = markdown("发布流程", "[发布]", "# 步骤\n\n提交变更单，灰度发布，观察指标后全量。")
QUERY = "先清理旧日志，再扩容磁盘，最后确认告警恢复。"
TEXT = markdown("磁盘告警处理", "[磁盘告警]", f"# 处理\n\n{QUERY}")


def seen(parts: LookupParts, query: str, **fields: Any) -> tuple[str | None, list[str]]:
    """The level, and the sources of primary and supplement."""
    answer = parts.lookup.answer(Question(query, **fields), "caller")
    return answer.level, [p.row.key for p in (answer.primary, answer.supplement) if p]


@pytest.fixture
def warm(system: System) -> LookupParts:
    """A lookup function that saw the copy come and go."""
    system.ingest("other.md", OTHER)
    system.ingest("b/two.md", TEXT)
    warm = system.new_lookup()
    assert seen(warm, "磁盘告警") == ("PRECISE", ["b/two.md"])
    return warm


def both(system: System, warm: LookupParts, query: str, **fields: Any) -> Any:
    """What the warm function and a cold one give, which must be the same."""
    system.clock.advance(2)
    cold = seen(system.new_lookup(), query, **fields)
    assert seen(warm, query, **fields) == cold
    return cold


def test_copy_costs_nobody_precise_and_the_smallest_key_stands_for_both(
    system: System, warm: LookupParts
) -> None:
    system.ingest("a/one.md", TEXT)
    assert both(system, warm, "磁盘告警") == ("PRECISE", ["a/one.md"])


def test_copies_are_one_document_to_l1(system: System, warm: LookupParts) -> None:
    before = both(system, warm, QUERY)
    for key in ("a/one.md", "c/three.md"):
        system.ingest(key, TEXT)
    level, sources = both(system, warm, QUERY)
    assert before == ("HIGHLY_RELEVANT", ["b/two.md"])
    assert (level, sources) == ("HIGHLY_RELEVANT", ["a/one.md"])


def test_copy_answers_in_its_own_domain(system: System, warm: LookupParts) -> None:
    system.ingest("a/one.md", TEXT)
    found = [both(system, warm, "磁盘告警", domain=domain) for domain in ("a", "b")]
    assert found == [("PRECISE", ["a/one.md"]), ("PRECISE", ["b/two.md"])]


@pytest.mark.parametrize("gone", ["a/one.md", "b/two.md"])
def test_when_one_is_deleted_the_other_answers(
    system: System, warm: LookupParts, gone: str
) -> None:
    system.ingest("a/one.md", TEXT)
    both(system, warm, "磁盘告警")
    system.delete(gone)
    system.ingest(gone)
    [left] = {"a/one.md", "b/two.md"} - {gone}
    found = [both(system, warm, query) for query in ("磁盘告警", QUERY)]
    assert found == [("PRECISE", [left]), ("HIGHLY_RELEVANT", [left])]


@pytest.mark.parametrize("changed", ["a/one.md", "b/two.md"])
def test_when_one_changes_they_are_two_and_each_answers_for_itself(
    system: System, warm: LookupParts, changed: str
) -> None:
    system.ingest("a/one.md", TEXT)
    both(system, warm, "磁盘告警")
    system.ingest(changed, markdown("新", "[新词]", "完全不同的内容。"))
    [left] = {"a/one.md", "b/two.md"} - {changed}
    found = [both(system, warm, query) for query in ("磁盘告警", "新词")]
    assert found == [("PRECISE", [left]), ("PRECISE", [changed])]


def test_different_texts_of_one_keyword_cost_both_their_precise(
    system: System, warm: LookupParts
) -> None:
    system.ingest("a/one.md", TEXT + "一字之差。")
    levels = [both(system, warm, query)[0] for query in ("磁盘告警", "发布")]
    assert levels == ["REFERENCE", "PRECISE"]


def test_copy_whose_newest_version_cannot_be_indexed_still_counts_as_what_it_serves(
    system: System, warm: LookupParts
) -> None:
    system.ingest("a/one.md", TEXT)
    outcome = system.ingest("a/one.md", bytes(range(32)) * 8)
    found = both(system, warm, "磁盘告警")
    assert (outcome.status, found) == (Status.FAILED, ("PRECISE", ["a/one.md"]))


def test_other_encoding_of_the_same_text_is_a_copy(system: System, warm: LookupParts) -> None:
    system.ingest("a/one.md", TEXT.encode("utf-16"))
    assert both(system, warm, "磁盘告警") == ("PRECISE", ["a/one.md"])


WORDS = {"several parts": "first", "one part": "two"}
"""A keyword of each text that has one."""
PUT = (*WORDS, "semantic only")
steps = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from((*PUT, None))), max_size=15)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps, st.integers())
def test_whatever_is_put_where_each_content_counts_once_under_its_smallest_key(
    steps: list[tuple[str, str | None]], seed: int
) -> None:
    world, random = World(), Random(seed)  # noqa: S311 - no secret
    catalog = Catalog(world.catalog(), now=lambda: world.seconds, interval=1, overlap=30, idle=900)
    newest: dict[str, str | None] = {}
    running: list[Worker] = []
    for key, text in steps:
        newest[key] = text
        if text:
            world.put(key, text)
        else:
            world.delete(key)
        running.append(world.worker(key))
    while running:  # all at once
        worker = random.choice(running)
        worker.step()
        if worker.is_done:
            running.remove(worker)
        if random.random() < 0.05:
            world.seconds += 1
            catalog.refresh()
    world.seconds += 1
    catalog.refresh()
    keys = {text: sorted(key for key in newest if newest[key] == text) for text in PUT}
    matched = {text: [m.key for m in catalog.match(fold(word))] for text, word in WORDS.items()}
    twins = {
        key: [twin.key for twin in catalog.twins(row)]
        for key in newest
        if (row := catalog.row(key))
    }
    assert matched == {text: keys[text][:1] for text in WORDS}
    assert twins == {key: keys[text] for key, text in newest.items() if text}
