"""Fits the evidence and its thresholds to labelled questions, and says how far they carry."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kb.evaluation.trial import Trial
from kb.evidence import Background, Calibration, Signals, damped

Floats = NDArray[np.float64]

RIDGE = 1.0
"""Pulls coefficients to 0: signals go together, and a set has a few hundred questions."""
STEPS = 50
"""Of Newton's method; it settles in about ten."""
BOOTSTRAPS = 400
UNANSWERABLE_FIRED_MOST = 0.05
"""Share of a set's unanswerable questions that may get HIGHLY_RELEVANT."""
OFF_TOPIC_FOUND_MOST = 0.08
"""Share of other sets' questions that may be answered; some are near the set's own field."""
FIRED_LEAST = 20
"""HIGHLY_RELEVANT answers of a set from which on their rate says something."""
GRID = np.round(np.arange(0.01, 1.0, 0.01), 2)
"""Thresholds tried; finer ones would follow single questions."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The trials of one set that the fit looks at."""

    name: str
    signals: Floats
    """A row of features a question."""
    right: Floats
    """1 where L1's best document answers the question."""
    answerable: NDArray[np.bool_]
    off_topic: NDArray[np.bool_]
    """Questions of another set, asked here."""

    @property
    def weight(self) -> Floats:
        """Sets count alike, whatever their size; off-topic questions a third of the own ones."""
        own = ~self.off_topic
        weights = np.where(own, 1 / max(own.sum(), 1), 0.3 / max((~own).sum(), 1))
        return np.asarray(weights * 100)


def features(signals: Signals) -> list[float]:
    return [
        signals.cosine,
        signals.height,
        damped(signals.lead),
        signals.coverage,
        float(signals.agrees),
    ]


def sample_of(name: str, trials: Sequence[Trial], off_topic: Sequence[Trial]) -> Sample:
    """Trials without any document found are left out."""
    both = [(t, False) for t in trials if t.signals] + [(t, True) for t in off_topic if t.signals]
    return Sample(
        name,
        np.array([features(t.signals) for t, _ in both if t.signals]),
        np.array([float(not off and t.by_meaning[0] in t.question.relevant) for t, off in both]),
        np.array([not off and bool(t.question.relevant) for t, off in both]),
        np.array([off for _, off in both]),
    )


def fit(samples: Sequence[Sample], background: Background) -> Calibration:
    """Logistic regression by Newton's method, ridge on standardised signals."""
    x = np.vstack([sample.signals for sample in samples])
    y = np.concatenate([sample.right for sample in samples])
    w = np.concatenate([sample.weight for sample in samples])
    mean, spread = x.mean(axis=0), x.std(axis=0) + 1e-12
    a = np.column_stack([np.ones(len(x)), (x - mean) / spread])
    ridge = RIDGE * np.diag([0.0, *np.ones(x.shape[1])])
    b = np.zeros(a.shape[1])
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-a @ b))
        gradient = a.T @ (w * (y - p)) - ridge @ b
        curvature = (a * (w * p * (1 - p))[:, None]).T @ a + ridge + 1e-9 * np.eye(len(b))
        b += np.linalg.solve(curvature, gradient)
    slopes = b[1:] / spread
    constant = float(b[0] - slopes @ mean)
    cosine, height, lead, coverage, agrees = (round(float(slope), 3) for slope in slopes)
    return Calibration(round(constant, 3), cosine, height, lead, coverage, agrees, background)


def evidences(sample: Sample, calibration: Calibration) -> Floats:
    """The evidence of every row."""
    slopes = np.array(
        [
            calibration.cosine,
            calibration.height,
            calibration.lead,
            calibration.coverage,
            calibration.agrees,
        ]
    )
    return np.asarray(1 / (1 + np.exp(-(calibration.constant + sample.signals @ slopes))))


@dataclass(frozen=True, slots=True)
class Measured:
    """What two thresholds do on one set."""

    name: str
    answers: int
    """HIGHLY_RELEVANT ones, over the set's own questions."""
    right: float
    """Share of these that are right."""
    right_interval: tuple[float, float]
    """Bootstrap, 90 %."""
    fired: float
    """Share of answerable questions that get HIGHLY_RELEVANT."""
    unanswerable_fired: float
    off_topic_found: float
    right_kept: float
    """Share of right answers that stay at or above REFERENCE."""


def measure(sample: Sample, evidence: Floats, high: float, low: float) -> Measured:
    """`high` and `low` are the thresholds of HIGHLY_RELEVANT and REFERENCE."""
    own = ~sample.off_topic
    fires = own & (evidence >= high)
    right = sample.right[fires]
    draws = np.random.default_rng(7).integers(0, max(len(right), 1), (BOOTSTRAPS, len(right)))
    means = right[draws].mean(axis=1) if len(right) else np.array([np.nan])
    return Measured(
        sample.name,
        len(right),
        _mean(right),
        (float(np.quantile(means, 0.05)), float(np.quantile(means, 0.95))),
        _mean(evidence[sample.answerable] >= high),
        _mean(evidence[own & ~sample.answerable] >= high),
        _mean(evidence[sample.off_topic] >= low),
        _mean(evidence[sample.right == 1] >= low),
    )


def thresholds(
    samples: Sequence[Sample], calibration: Calibration, rate: float
) -> tuple[float, float] | None:
    """(HIGHLY_RELEVANT, REFERENCE), None where no threshold reaches the rate.

    The first is the lowest from which on answers are right at the rate on every set that has
    FIRED_LEAST of them, and few unanswerable questions of any set get one; the second the lowest
    that keeps other sets' questions out, in the mean of the sets.
    """
    by_set = [(sample, evidences(sample, calibration)) for sample in samples]

    def is_high(threshold: float) -> bool:
        done = [measure(sample, evidence, threshold, 0) for sample, evidence in by_set]
        judged = [one.right for one in done if one.answers >= FIRED_LEAST]
        unanswerable = max(one.unanswerable_fired for one in done)
        return bool(judged) and min(judged) >= rate and unanswerable <= UNANSWERABLE_FIRED_MOST

    def is_low(threshold: float) -> bool:
        found = [
            _mean(evidence[sample.off_topic] >= threshold)
            for sample, evidence in by_set
            if sample.off_topic.any()
        ]
        return not found or float(np.mean(found)) <= OFF_TOPIC_FOUND_MOST

    high = next((float(t) for t in GRID if is_high(t)), None)
    if high is None:
        return None
    return high, min(high, next((float(t) for t in GRID if is_low(t)), high))


def curve(sample: Sample, calibration: Calibration) -> str:
    """How often answers are right as evidence rises: what there is where the rate is not."""
    own = ~sample.off_topic
    evidence = evidences(sample, calibration)[own]
    steps = []
    for threshold in (0.5, 0.6, 0.7, 0.8, 0.9, 0.95):
        fires = evidence >= threshold
        steps.append(f"{threshold}: {_mean(sample.right[own][fires]):.2f} of {fires.sum()}")
    return ", ".join(steps)


def held_out(
    samples: Sequence[Sample], background: Background, rate: float
) -> Mapping[str, Measured | None]:
    """Each set measured with what the others alone give; None where they support nothing."""
    result: dict[str, Measured | None] = {}
    for left_out in samples:
        others = [sample for sample in samples if sample is not left_out]
        if not others:
            continue
        calibration = fit(others, background)
        chosen = thresholds(others, calibration, rate)
        result[left_out.name] = chosen and measure(
            left_out, evidences(left_out, calibration), *chosen
        )
    return result


def _mean(values: NDArray[np.bool_] | Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")
