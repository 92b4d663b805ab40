"""A process killed before or after any of ingest's outside calls, wherever they are."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from kb.answers import Passage, Question
from kb.ingest import Ingest
from kb.settings import IngestSettings, read_settings
from kb.stores import dynamodb
from kb.wiring import LookupParts, make_ingest

from tests.conftest import System, markdown
from tests.crashes import Killed, Tripwire, Watched, watching_aws
from tests.dying_ingest import SECRET, IndexServer
from tests.ingest_world import World, assert_agrees

# ------------------------------------------------------------------ in memory: all that may follow

Change = tuple[str, ...]
CASES: dict[str, tuple[list[Change], Change]] = {
    "create": ([], ("put", "several parts")),
    "update": ([("put", "one part")], ("put", "several parts")),
    "update to what cannot be indexed": ([("put", "several parts")], ("put", "no text")),
    "update to no body": ([("put", "several parts")], ("put", "empty")),
    "back to what is served": ([("put", "one part"), ("put", "no text")], ("put", "one part")),
    "delete": ([("put", "several parts")], ("delete",)),
    "undelete": ([("put", "several parts"), ("delete",)], ("undelete",)),
    "create again": ([("put", "several parts"), ("delete",)], ("put", "one part")),
}
THEN: dict[str, list[Change]] = {
    "nothing else": [],
    "another version": [("put", "semantic only")],
    "the version before": [("put", "one part")],
    "delete": [("delete",)],
    "another version and back": [("put", "semantic only"), ("put", "several parts")],
}


@pytest.mark.parametrize("then", THEN.values(), ids=THEN)
@pytest.mark.parametrize(("before", "change"), CASES.values(), ids=CASES)
def test_retry_after_a_kill_at_any_call_agrees_with_the_bucket(
    before: list[Change], change: Change, then: list[Change], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dynamodb, "BATCH_WRITE_MOST", 2)
    calls = 0
    while not killed_after(calls, before, change, then):
        calls += 1
    assert calls >= 8  # prepare, row, object, commit, two removals, note, object again


def make(world: World, change: Change) -> None:
    name, *text = change
    getattr(world, name)("a", *text)


def killed_after(calls: int, before: list[Change], change: Change, then: list[Change]) -> bool:
    """Kill an ingest after so many calls, let `then` happen, retry; whether it was over by then."""
    world = World()
    for earlier in before:
        make(world, earlier)
        world.worker("a").finish()
    make(world, change)
    worker = world.worker("a")
    for _ in range(calls):
        worker.step()
        world.check_served("a")
        if worker.is_done:
            break
    was_over = worker.is_done
    worker.kill()
    for later in then:
        make(world, later)
    for _ in (change, *then):
        world.worker("a").finish()
        world.check_served("a")
    assert_agrees(world, "a")
    return was_over


# ------------------------------------------------------- on moto: what a lookup gives meanwhile

KEY = "运维/disk.md"
OLD = markdown("旧", "[磁盘告警, old word]", "# 旧\n\n" + "清理旧日志。" * 600)
NEW = markdown("新", "[磁盘告警, new word]", "# 新\n\n" + "扩容新磁盘。" * 900)
QUESTIONS = ("磁盘告警", "清理旧日志。" * 20, "扩容新磁盘。" * 20)
MOVES: dict[str, tuple[str | None, str | None]] = {
    "create": (None, NEW),
    "update": (OLD, NEW),
    "delete": (OLD, None),
}
Answers = tuple[Any, ...]


@pytest.fixture
def wire() -> Iterator[Tripwire]:
    wire = Tripwire()
    with watching_aws(wire):
        yield wire


def watched_ingest(system: System, wire: Tripwire) -> Ingest:
    settings = read_settings(IngestSettings, system.environment)
    embedder, index = Watched(system.embedder, wire), Watched(system.index, wire)
    return make_ingest(settings, embedder, index, system.clock.seconds).ingest


def store(system: System, key: str, text: str | None) -> None:
    if text is None:
        system.delete(key)
    else:
        system.put(key, text)


def answers(parts: LookupParts) -> Answers:
    """What every question gets: whole passages."""
    given = [parts.lookup.answer(Question(question), "caller") for question in QUESTIONS]
    return tuple(
        replace(
            answer,
            invocation_id="",
            primary=_timeless(answer.primary),
            supplement=_timeless(answer.supplement),
        )
        for answer in given
    )


def _timeless(passage: Passage | None) -> Passage | None:
    """Without the note of a cleanup, which is no part of an answer."""
    return passage and replace(passage, row=replace(passage.row, cleanup_pending=False))


@pytest.mark.parametrize(("old", "new"), MOVES.values(), ids=MOVES)
def test_at_every_moment_a_lookup_gives_the_old_or_the_new_version_whole(
    system: System, wire: Tripwire, old: str | None, new: str | None
) -> None:
    system.ingest("other.md", markdown("别的", "[别的]", "别的内容。" * 50))
    if old is not None:
        system.ingest(KEY, old)
    warm = system.new_lookup()
    before = answers(warm)
    store(system, KEY, new)
    cold: list[Answers] = []
    stale: list[Answers] = []

    def look(number: int, name: str) -> None:
        cold.append(answers(system.new_lookup()))
        stale.append(answers(warm))

    with wire.set(look):
        watched_ingest(system, wire).reconcile(KEY)
    after = answers(system.new_lookup())
    switch = cold.index(after)
    assert before != after
    assert 0 < switch < len(cold) - 1
    assert cold == [before] * switch + [after] * (len(cold) - switch)
    # One that has not looked at the catalog since may answer as before as long as it can.
    assert stale[:switch] == [before] * switch
    for answered in stale[switch:]:
        assert all(got in (b, a) for got, b, a in zip(answered, before, after, strict=True))


@pytest.mark.parametrize(("old", "new"), MOVES.values(), ids=MOVES)
def test_kill_at_any_call_and_retry_end_as_an_undisturbed_ingest(
    system: System, wire: Tripwire, old: str | None, new: str | None
) -> None:
    for text in (old, new):
        store(system, "undisturbed/doc.md", text)
        system.ingest("undisturbed/doc.md")
    expected = held(system, "undisturbed/doc.md")
    points: list[str] = []
    while True:
        key = f"{len(points)}/doc.md"
        if old is not None:
            system.ingest(key, old)
        store(system, key, new)
        try:
            with wire.set(partial(die_at, len(points), points)):
                watched_ingest(system, wire).reconcile(key)
            break
        except Killed:
            system.ingest(key)
            assert (points[-1], held(system, key)) == (points[-1], expected)
    names = [point.split() for point in points]
    assert [when for when, _ in names] == ["before", "after"] * (len(points) // 2)
    assert {name for _, name in names} >= {"GetItem", "GetObject", "PutItem", "remove_others"}


def die_at(number: int, points: list[str], at: int, name: str) -> None:
    if at == number:
        points.append(name)
        raise Killed


def held(system: System, key: str) -> Any:
    """What the catalog, the index and the content table hold of a key, whichever key it is."""
    parts = system.new_lookup()
    row = parts.documents.read(key)
    assert row is not None
    hits = [h for h in system.index.search([1.0] + [0.0] * 63, 100_000) if h.key == key]
    chunks = sorted((h.ordinal, h.part, h.section, h.version == row.served) for h in hits)
    items = [(version == row.served, count) for _, version, count in parts.content.versions(key)]
    whole = parts.content.read([(row, range(1, row.parts + 1))]) if row.served else {}
    served = row.served.fingerprint if row.served else None
    row = replace(row, key="", domain="", revision=0, changed_at=0, served=None, updated_at="")
    return row, served, chunks, items, list(whole.values())


# ------------------------------------------------------------------------------ SIGKILL, for real


@pytest.fixture(scope="module")
def server() -> Iterator[IndexServer]:
    """An index in a process of its own, so that it outlives the ingest that is killed."""
    server = IndexServer(("127.0.0.1", 0), SECRET, ctx=get_context("spawn"))
    server.start()
    yield server
    server.shutdown()


@pytest.mark.parametrize("point", ["after write", "before PutItem", "after PutItem"])
def test_process_ended_by_sigkill_leaves_nothing_that_a_retry_does_not_mend(
    system: System, server: IndexServer, point: str
) -> None:
    system.index = server.index()
    for key in ("undisturbed/doc.md", KEY):
        system.ingest(key, OLD)
    expected_before = held(system, "undisturbed/doc.md")
    system.ingest("undisturbed/doc.md", NEW)
    system.put(KEY, NEW)
    died = subprocess.run(  # noqa: S603 - our own module
        [sys.executable, "-m", "tests.dying_ingest", KEY, point, str(server.address[1])],
        cwd=Path(__file__).parents[2],
        env=os.environ | system.environment,
        check=False,
    )
    row, served = held(system, KEY)[:2]
    system.ingest(KEY)
    assert died.returncode == -signal.SIGKILL
    assert row.cleanup_pending is (point == "after PutItem")
    assert (served == expected_before[1]) is (point != "after PutItem")
    assert held(system, KEY) == held(system, "undisturbed/doc.md")
