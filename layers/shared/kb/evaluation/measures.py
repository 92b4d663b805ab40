"""Figures of one trial: how good each way of looking up is, and how true each level."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from kb.evaluation.trial import RANKED_MOST, Ranking, Trial
from kb.grading import Level

WAYS: dict[str, Callable[[Trial], Ranking]] = {
    "L0 keywords": lambda trial: trial.by_keywords,
    "BM25 alone": lambda trial: trial.by_words,
    "vectors alone": lambda trial: trial.by_vectors,
    "L1 both": lambda trial: trial.by_meaning,
    "whole": lambda trial: trial.whole,
}


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Of the answerable questions."""

    hit_1: float
    hit_3: float
    recall_10: float
    mrr_10: float


@dataclass(frozen=True, slots=True)
class OfLevel:
    """How often a level is given, and how often what it delivers is right."""

    answers: int
    right: float | None
    """None where it was never given."""
    answerable: float
    """Share of the answerable questions that get it."""
    unanswerable: float
    """Share of the unanswerable ones."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One group of questions of one set."""

    questions: int
    unanswerable: int
    ways: dict[str, Retrieval]
    levels: dict[str, OfLevel]
    holds: float | None
    """Share of questions with a known text whose delivered part has it."""
    milliseconds: float
    """Median of an answer."""


def figures(trials: Sequence[Trial]) -> Figures:
    """Of these questions together."""
    answerable = [trial for trial in trials if trial.question.relevant]
    known = [trial.holds for trial in trials if trial.holds is not None]
    levels = {str(level): _of_level(level, trials) for level in Level}
    return Figures(
        len(trials),
        len(trials) - len(answerable),
        {name: _retrieval(answerable, way) for name, way in WAYS.items()},
        levels | {"not found": _of_level(None, trials)},
        fmean(known) if known else None,
        1000 * median(trial.seconds for trial in trials) if trials else 0.0,
    )


def by_kind(trials: Sequence[Trial]) -> dict[str, Figures]:
    """All ordinary questions together, and each other kind apart."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(trial.question.kind or "all", []).append(trial)
    return {kind: figures(group) for kind, group in groups.items()}


def is_right(trial: Trial) -> bool:
    """Whether the first document delivered answers the question."""
    return bool(trial.whole) and trial.whole[0] in trial.question.relevant


def _retrieval(trials: Sequence[Trial], way: Callable[[Trial], Ranking]) -> Retrieval:
    ranks = [
        [key in trial.question.relevant for key in way(trial)[:RANKED_MOST]] for trial in trials
    ]
    counts = [len(trial.question.relevant) for trial in trials]
    return Retrieval(
        _mean([any(found[:1]) for found in ranks]),
        _mean([any(found[:3]) for found in ranks]),
        _mean([sum(found) / count for found, count in zip(ranks, counts, strict=True)]),
        _mean([1 / (found.index(True) + 1) if any(found) else 0.0 for found in ranks]),
    )


def _of_level(level: Level | None, trials: Sequence[Trial]) -> OfLevel:
    given = [trial for trial in trials if trial.level is level]
    answerable = [trial.level is level for trial in trials if trial.question.relevant]
    others = [trial.level is level for trial in trials if not trial.question.relevant]
    right = [
        is_right(trial) if level else not trial.question.relevant  # saying nothing is right then
        for trial in given
    ]
    return OfLevel(len(given), fmean(right) if right else None, _mean(answerable), _mean(others))


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0
