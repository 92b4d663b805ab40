"""The chance that a document is right, from readable signals."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kb.evidence import Background, Calibration, Signals, chance, damped, evidence_of

SIGNALS = Signals(similarity=0.4, cosine=0.5, height=0.2, lead=1.0, coverage=0.5, agrees=True)
CALIBRATION = Calibration(-3.0, 1.0, 2.0, 1.5, 1.0, 0.5, Background(0.1, 0.1))


def test_evidence_is_the_similarity_where_nothing_was_fitted() -> None:
    assert evidence_of(SIGNALS, None) == 0.4


def test_calibrated_evidence_is_the_logistic_of_the_weighed_signals() -> None:
    logit = -3.0 + 0.5 + 2.0 * 0.2 + 1.5 * damped(1.0) + 0.5 + 0.5
    assert evidence_of(SIGNALS, CALIBRATION) == pytest.approx(chance(logit))


@pytest.mark.parametrize("signal", ["cosine", "height", "lead", "coverage"])
def test_more_of_a_signal_is_more_evidence(signal: str) -> None:
    more = replace(SIGNALS, **{signal: getattr(SIGNALS, signal) + 0.1})
    assert evidence_of(more, CALIBRATION) > evidence_of(SIGNALS, CALIBRATION)


def test_agreement_is_evidence() -> None:
    without = replace(SIGNALS, agrees=False)
    assert evidence_of(without, CALIBRATION) < evidence_of(SIGNALS, CALIBRATION)


def test_falling_behind_is_no_worse_than_not_leading() -> None:
    assert damped(-3.0) == damped(0.0) == 0.0


@given(logit=st.floats(-1e6, 1e6))
def test_chance_lies_between_0_and_1(logit: float) -> None:
    assert 0.0 <= chance(logit) <= 1.0
