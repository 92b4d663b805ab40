"""Two diagrams of one trial: what evidence separates, and how true each level is."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from kb.evaluation.measures import figures
from kb.evaluation.trial import Trial


def draw(trials: Sequence[Trial], title: str, path: Path) -> None:
    """Risk against coverage of L1's best document by evidence, and right answers by level."""
    figure, (risk, levels) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    order = sorted(trials, key=lambda trial: -trial.evidence)
    wrong = np.array(
        [t.by_meaning[:1] == () or t.by_meaning[0] not in t.question.relevant for t in order]
    )
    answered = np.arange(1, len(order) + 1)
    risk.plot(answered / len(order), np.cumsum(wrong) / answered)
    risk.axhline(0.1, linestyle=":", color="grey")
    risk.set(
        xlabel="share of all questions answered, surest first",
        ylabel="share of those answers that are wrong",
        xlim=(0, 1),
        ylim=(0, None),
        title="Risk against coverage",
    )
    of_levels = figures(trials).levels
    names = list(of_levels)
    bars = levels.bar(names, [one.right or 0.0 for one in of_levels.values()])
    levels.bar_label(bars, [f"{one.answers}" for one in of_levels.values()])
    levels.axhline(0.9, linestyle=":", color="grey")
    levels.set(
        ylabel="share that is right (number: how often given)",
        ylim=(0, 1.08),
        title="Reliability of each level",
    )
    figure.suptitle(title)
    figure.savefig(path, dpi=120)
    plt.close(figure)
