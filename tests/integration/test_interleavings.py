"""Whatever happens in whatever order: at rest, the indexes are what the bucket holds."""

import os
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kb.stores import dynamodb

from tests.ingest_world import TEXTS, World, assert_agrees

EXAMPLES = int(os.environ.get("INTERLEAVINGS", "2000"))
KEYS = "aaaaaaabbbcde"
"""Five keys, most often the same one: that is where workers meet."""


@pytest.fixture(autouse=True)
def _many_small_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two items a batch, so that every document takes several calls to write and to remove."""
    monkeypatch.setattr(dynamodb, "BATCH_WRITE_MOST", 2)


numbers = st.integers(0, 1000)
actions = st.one_of(
    *[st.tuples(st.just("put"), st.sampled_from(KEYS), st.sampled_from(tuple(TEXTS)))] * 2,
    st.tuples(st.sampled_from(("delete", "undelete")), st.sampled_from(KEYS)),
    *[st.tuples(st.just("deliver"), numbers)] * 2,
    *[st.tuples(st.just("step"), numbers, st.integers(1, 12))] * 4,
    st.tuples(st.sampled_from(("double", "lose", "kill")), numbers),
    st.tuples(st.just("redrive")),
)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.integers(1, 40).flatmap(lambda n: st.lists(actions, min_size=n, max_size=n)), st.integers()
)
def test_indexes_equal_the_bucket_whatever_happened_in_whatever_order(
    actions: list[tuple[Any, ...]], seed: int
) -> None:
    world, random = World(), Random(seed)  # noqa: S311 - no secret
    for name, *arguments in actions:
        getattr(world, name)(*arguments)
    world.come_to_rest(random)
    for key in sorted(set(KEYS)):
        assert_agrees(world, key)


def test_content_that_comes_back_is_served_though_another_was_about_to_be_committed() -> None:
    world = World()
    world.put("a", "one part")
    world.worker("a").finish()
    world.put("a", "several parts")
    late = world.worker("a")
    late.step_to("embed")
    world.put("a", "one part")
    world.worker("a").finish()
    late.finish()
    assert_agrees(world, "a")


def test_writer_about_to_commit_what_came_and_went_is_overtaken() -> None:
    world = World()
    world.put("a", "one part")
    world.worker("a").finish()
    world.put("a", "several parts")
    late = world.worker("a")
    late.step_to("put_item")
    world.put("a", "one part")
    world.worker("a").finish()
    assert_agrees(world, "a")
    late.kill()
    assert_agrees(world, "a")


def test_what_a_dead_writer_left_goes_though_the_object_is_again_what_is_served() -> None:
    world = World()
    world.put("a", "one part")
    world.worker("a").finish()
    world.put("a", "several parts")
    dead = world.worker("a")
    dead.step_to("put_item")
    dead.kill()
    world.put("a", "one part")
    world.worker("a").finish()
    assert_agrees(world, "a")


def test_what_a_late_writer_left_after_the_removal_goes_when_its_message_is_back() -> None:
    world = World()
    world.put("a", "several parts")
    late = world.worker("a")
    late.step_to("write")
    world.delete("a")
    world.worker("a").finish()
    late.step_to("put_item")
    late.kill()
    assert world.held("a").chunks
    world.worker("a").finish()
    assert_agrees(world, "a")


def test_what_an_attempt_left_under_a_failures_revision_goes_with_the_failure() -> None:
    world = World()
    world.put("a", "one part")
    world.worker("a").finish()
    world.put("a", "several parts")
    dead = world.worker("a")
    dead.step_to("put_item")
    dead.kill()
    world.put("a", "no text")
    world.worker("a").finish()
    assert_agrees(world, "a")
