"""One order of chunks from vectors and words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kb.documents import Version
from kb.evidence import Background
from kb.ports import Hit, WordHit
from kb.ranking import Ranked, cosine_of, mean_and_spread, rank

FIRST = Version(1, "f")


def hit(key: str, score: float, ordinal: int = 0) -> Hit:
    return Hit(key, FIRST, ordinal, part=1, section="", score=score)


def near(key: str, cosine: float) -> Hit:
    return hit(key, 1 / (1 + 2 - 2 * cosine))


def said(key: str, score: float, *words: str) -> WordHit:
    return WordHit(hit(key, score), frozenset(words))


def keys(ranked: list[Ranked]) -> list[str]:
    return [one.hit.key for one in ranked]


@given(cosine=st.floats(-1, 1))
def test_cosine_is_read_off_the_score(cosine: float) -> None:
    assert cosine_of(near("a", cosine).score) == pytest.approx(cosine, abs=1e-9)


def test_without_words_the_nearest_comes_first() -> None:
    ranked = rank([near("a", 0.5), near("b", 0.8), near("c", 0.2)], [], {})
    assert keys(ranked) == ["b", "a", "c"]


def test_words_that_cover_the_question_lift_a_chunk_over_a_nearer_one() -> None:
    rarity = {"disk": 2.0, "full": 2.0}
    found = [near("a", 0.60), near("b", 0.58), near("c", 0.2), near("d", 0.3)]
    ranked = rank(found, [said("b", 4.0, "disk", "full")], rarity)
    assert (keys(ranked)[0], ranked[0].coverage) == ("b", 1.0)


def test_few_words_of_the_question_lift_little() -> None:
    rarity = {"disk": 2.0, "oben": 8.0, "voll": 8.0, "platte": 8.0}
    found = [near("a", 0.60), near("b", 0.3), near("c", 0.2), near("d", 0.25)]
    ranked = rank(found, [said("b", 2.0, "disk")], rarity)
    assert (keys(ranked)[0], ranked[1].coverage) == ("a", pytest.approx(2 / 26))


def test_chunk_that_only_words_found_counts_as_far_as_the_farthest_near_one() -> None:
    ranked = rank([near("a", 0.6), near("b", 0.2)], [said("c", 4.0, "disk")], {"disk": 2.0})
    [only_said] = [one for one in ranked if one.hit.key == "c"]
    assert (only_said.is_near, only_said.cosine) == (False, pytest.approx(0.2))


def test_equal_ranks_come_by_key_then_ordinal() -> None:
    ranked = rank([hit("b", 0.5), hit("a", 0.5, ordinal=1), hit("a", 0.5)], [], {})
    assert [(one.hit.key, one.hit.ordinal) for one in ranked] == [("a", 0), ("a", 1), ("b", 0)]


def test_nothing_found_ranks_nothing() -> None:
    assert rank([], [], {}) == []


def test_background_stands_beside_the_few_chunks_found() -> None:
    background = Background(cosine=0.2, spread=0.1)
    mean, spread = mean_and_spread([0.9], background)
    [alone] = rank([near("a", 0.9)], [], {}, background)
    assert (mean, alone.rank) == (
        pytest.approx((0.9 + 10 * 0.2) / 11),
        pytest.approx((0.9 - mean) / spread),
    )


def test_order_of_the_searches_results_does_not_matter() -> None:
    found = [near("a", 0.5), near("b", 0.8), near("c", 0.2)]
    words = [said("a", 3.0, "disk"), said("d", 1.0, "disk")]
    rarity = {"disk": 2.0}
    assert rank(found, words, rarity) == rank(found[::-1], words[::-1], rarity)
