"""How sure the best document of L1 is, from few readable signals."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signals:
    """What the searches say of the best document, beside the others."""

    similarity: float
    """In [0, 1]; design: 1 - min(d2, max_l2) / max_l2."""
    cosine: float
    """Of the question and the document's best chunk."""
    height: float
    """Cosine of the nearest chunk above the average of all found; small: nothing stands out."""
    lead: float
    """Rank of the best document above the second one's, in standard deviations."""
    coverage: float
    """Share in [0, 1] of the question's words, weighed by rarity, in the best chunk."""
    agrees: bool
    """Vectors and words have the same best document."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Coefficients of a logistic, fitted on labelled questions by `kb calibrate`."""

    constant: float
    cosine: float
    height: float
    lead: float
    coverage: float
    agrees: float


def evidence_of(signals: Signals, calibration: Calibration | None) -> float:
    """In [0, 1]: the similarity itself, or, calibrated, the chance that the document is right."""
    if calibration is None:
        return signals.similarity
    return chance(
        calibration.constant
        + calibration.cosine * signals.cosine
        + calibration.height * signals.height
        + calibration.lead * math.log1p(max(signals.lead, 0.0))
        + calibration.coverage * signals.coverage
        + calibration.agrees * signals.agrees
    )


def chance(logit: float) -> float:
    """1 / (1 + e^-x), without overflow."""
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else 1 - 1 / (1 + math.exp(logit))
