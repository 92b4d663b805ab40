"""How sure it is that a document answers the question, from few readable signals."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signals:
    """What the searches say of one document, beside the others."""

    similarity: float
    """In [0, 1]: 1 - min(d2, max_l2) / max_l2."""
    cosine: float
    """Of the question and the document's nearest chunk."""
    height: float
    """That cosine above the average of all chunks found; small where nothing stands out."""
    lead: float
    """Rank of the document above the next best, or the average chunk, in standard deviations."""
    coverage: float
    """Share in [0, 1] of the question's words, weighed by rarity, in its best chunk."""
    agrees: bool
    """Vectors alone and words alone have it first too."""


@dataclass(frozen=True, slots=True)
class Background:
    """Cosines of questions and the chunks found for them, right or wrong, of one model."""

    cosine: float
    spread: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Coefficients of a logistic, fitted on labelled questions by `kb calibrate`."""

    constant: float
    cosine: float
    height: float
    lead: float
    coverage: float
    agrees: float
    background: Background


def evidence_of(signals: Signals, calibration: Calibration | None) -> float:
    """In [0, 1]: the similarity itself, or, calibrated, the chance that the document is right."""
    if calibration is None:
        return signals.similarity
    return chance(
        calibration.constant
        + calibration.cosine * signals.cosine
        + calibration.height * signals.height
        + calibration.lead * damped(signals.lead)
        + calibration.coverage * signals.coverage
        + calibration.agrees * signals.agrees
    )


def damped(lead: float) -> float:
    """ln(1 + lead), 0 for what does not lead: a lead of 8 says little more than one of 6."""
    return math.log1p(max(lead, 0.0))


def chance(logit: float) -> float:
    """1 / (1 + e^-x), without overflow."""
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else 1 - 1 / (1 + math.exp(logit))
