"""Which level the evidence supports; pure, the only place that decides it."""

from dataclasses import dataclass
from enum import StrEnum

from kb.evidence import Background, Calibration


class Level(StrEnum):
    """How relevant an answer is, best first."""

    PRECISE = "PRECISE"
    HIGHLY_RELEVANT = "HIGHLY_RELEVANT"
    REFERENCE = "REFERENCE"


@dataclass(frozen=True, slots=True)
class Profile:
    """Where one embedding model's similarities mean something."""

    max_l2: float
    """Squared L2 distance at which similarity is 0."""
    highly_relevant: float
    """Evidence in [0, 1] from which an answer is HIGHLY_RELEVANT."""
    reference: float
    """Evidence in [0, 1] from which an answer is REFERENCE; below, it is none."""
    calibration: Calibration | None = None
    """None: the evidence is the similarity itself."""


SPECIFIED = Profile(max_l2=2.0, highly_relevant=0.75, reference=0.5)
"""The specification's rule; fits models whose cosines spread over [0, 1]."""
EMBEDDED = Profile(
    max_l2=2.0,
    highly_relevant=0.94,
    reference=0.23,
    calibration=Calibration(
        constant=-3.168,
        cosine=-3.312,
        height=10.744,
        lead=1.531,
        coverage=1.468,
        agrees=0.601,
        background=Background(cosine=0.146, spread=0.081),
    ),
)
"""For multilingual-e5-small: fitted by `kb calibrate` on 869 questions of three sets, operations in
English, operations in both languages, and Chinese encyclopedia text. HIGHLY_RELEVANT is right in
.97, .75 (of 4) and 1.00 of its answers, reaches .47, .02 and .52 of the answerable questions, and
.04, .01 and .00 of the unanswerable ones."""


def squared_distance(score: float) -> float:
    """d2 of OpenSearch's `_score` = 1 / (1 + d2) for space l2."""
    return 1 / score - 1


def similarity(d2: float, max_l2: float) -> float:
    """1 at distance 0, falling linearly in the squared L2 distance to 0 at `max_l2`."""
    return 1 - min(max(d2, 0.0), max_l2) / max_l2


def grade(
    matches: int,
    evidence: float | None,
    profile: Profile,
    *,
    strong: bool = True,
    agrees: bool = False,
) -> Level | None:
    """The level of a question, or None where nothing answers it.

    `matches` counts the documents that L0 matched, equal content once, before any domain filter.
    `evidence` is the best of L1, None where L1 was not asked or did not answer. `strong` and
    `agrees` say of a single match whether its keyword covers the question, and whether L1's best
    document is the same one.
    """
    found_by_meaning = evidence is not None and evidence >= profile.reference
    if matches == 1 and (strong or (found_by_meaning and agrees)):
        return Level.PRECISE
    if evidence is not None and evidence >= profile.highly_relevant:
        return Level.HIGHLY_RELEVANT
    if found_by_meaning or matches:
        return Level.REFERENCE
    return None
