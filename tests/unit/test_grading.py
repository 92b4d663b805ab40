"""Every row of the grading table, and the arithmetic below it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kb.grading import EMBEDDED, SPECIFIED, Level, Profile, grade, similarity, squared_distance

PRECISE, HIGH, REFERENCE = Level.PRECISE, Level.HIGHLY_RELEVANT, Level.REFERENCE


@pytest.mark.parametrize(
    ("cosine", "d2", "score", "expected"),
    [
        (1.0, 0.0, 1.0, 1.0),
        (0.75, 0.5, 2 / 3, 0.75),
        (0.5, 1.0, 0.5, 0.5),
        (0.0, 2.0, 1 / 3, 0.0),
        (-0.5, 3.0, 0.25, 0.0),
    ],
)
def test_score_becomes_distance_becomes_similarity(
    cosine: float, d2: float, score: float, expected: float
) -> None:
    assert squared_distance(score) == pytest.approx(d2)
    assert d2 == 2 - 2 * cosine
    assert similarity(d2, 2.0) == pytest.approx(expected)


def test_similarity_of_a_score_rounded_above_1_is_1() -> None:
    assert similarity(squared_distance(1.0000001), 2.0) == 1.0


@pytest.mark.parametrize(
    ("matches", "strong", "agrees", "evidence", "level"),
    [
        (1, True, False, None, PRECISE),
        (1, True, False, 0.0, PRECISE),
        (1, True, False, 0.9, PRECISE),
        (1, False, True, 0.5, PRECISE),
        (1, False, True, 0.9, PRECISE),
        (1, False, False, 0.9, HIGH),
        (1, False, False, 0.75, HIGH),
        (1, False, False, 0.6, REFERENCE),
        (1, False, True, 0.49, REFERENCE),
        (1, False, False, 0.1, REFERENCE),
        (1, False, False, None, REFERENCE),
        (2, False, True, 0.75, HIGH),
        (2, True, True, 0.74, REFERENCE),
        (2, False, False, None, REFERENCE),
        (9, False, False, 0.0, REFERENCE),
        (0, False, False, 1.0, HIGH),
        (0, False, False, 0.75, HIGH),
        (0, False, False, 0.7499, REFERENCE),
        (0, False, False, 0.5, REFERENCE),
        (0, False, False, 0.4999, None),
        (0, False, False, 0.0, None),
    ],
)
def test_level(
    matches: int, strong: bool, agrees: bool, evidence: float | None, level: Level | None
) -> None:
    assert grade(matches, evidence, SPECIFIED, strong=strong, agrees=agrees) is level


@pytest.mark.parametrize(
    ("evidence", "level"),
    [(0.95, HIGH), (0.94, HIGH), (0.93, REFERENCE), (0.23, REFERENCE), (0.22, None)],
)
def test_embedded_model_has_thresholds_of_its_own(evidence: float, level: Level | None) -> None:
    assert grade(0, evidence, EMBEDDED) is level


@given(
    matches=st.integers(0, 5),
    evidence=st.floats(0, 1),
    more=st.floats(0, 1),
    agrees=st.booleans(),
    thresholds=st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted),
)
def test_more_evidence_never_lowers_the_level(
    matches: int, evidence: float, more: float, agrees: bool, thresholds: list[float]
) -> None:
    profile = Profile(2.0, highly_relevant=thresholds[1], reference=thresholds[0])
    order = [None, REFERENCE, HIGH, PRECISE]
    low, high = sorted([evidence, more])
    less = grade(matches, low, profile, strong=False, agrees=agrees)
    assert order.index(less) <= order.index(
        grade(matches, high, profile, strong=False, agrees=agrees)
    )
