"""kb eval and kb calibrate: how good the lookup is on labelled questions, and what they support."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from kb.commands.exits import ExitCode, WrongUsage
from kb.commands.options import AsJson
from kb.commands.screen import say, say_json, say_table, steps

if TYPE_CHECKING:
    from kb.evaluation.calibrate import Measured
    from kb.evaluation.labelled_set import LabelledSet
    from kb.evaluation.measures import Figures
    from kb.evaluation.trial import Bench

T = TypeVar("T")

Sets = Annotated[
    list[Path],
    typer.Argument(help="Folders with questions.jsonl and documents/.", show_default=False),
]


def evaluate(
    sets: Sets,
    out: Annotated[
        Path | None, typer.Option(help="Write the figures here, for a later --against.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="Figures of an earlier run, shown beside these.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw risk and reliability as a PNG (extra kb[eval]).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure the lookup on labelled questions.

    Each set is taken in by a system of its own, with the embedded model and the settings of the
    environment. A line of questions.jsonl: {"question", "relevant": [keys]}, none of them where
    nothing answers it.

    \b
    Example: kb eval tests/evalsets/seed --out before.json
    Example: kb eval tests/evalsets/seed --against before.json --picture seed.png
    """
    import json
    from dataclasses import asdict

    from kb.evaluation.measures import by_kind

    before: dict[str, Any] = json.loads(against.read_text(encoding="utf-8")) if against else {}
    result: dict[str, Any] = {}
    for labelled, bench in _benches(sets):
        trials = list(_followed(bench.ask(labelled.questions), len(labelled.questions), "Asking"))
        groups = by_kind(trials)
        result[labelled.name] = {kind: asdict(one) for kind, one in groups.items()}
        if not as_json:
            for kind, one in groups.items():
                _say_figures(
                    f"{labelled.name}, {kind}", one, before.get(labelled.name, {}).get(kind, {})
                )
        if picture:
            try:
                from kb.evaluation.picture import draw
            except ImportError as error:
                raise WrongUsage("--picture needs matplotlib: install kb[eval]") from error

            draw(trials, labelled.name, picture)
    if out:
        out.write_text(json.dumps(result, ensure_ascii=False, indent=1), encoding="utf-8")
    if as_json:
        say_json(result)


def calibrate(
    sets: Sets,
    rate: Annotated[
        float, typer.Option(min=0.5, max=0.999, help="HIGHLY_RELEVANT shall be right this often.")
    ] = 0.9,
    out: Annotated[
        Path | None, typer.Option(help="Write the profile here, as environment variables.")
    ] = None,
) -> int:
    """Fit evidence and thresholds to labelled questions.

    Prints a profile that the settings take, what it does on every set, and on each set what the
    others alone would give it. Questions of the other sets stand for those off every topic. Exit
    code 4, and no profile, where the sets do not support the rate.

    \b
    Example: kb calibrate sets/alerts sets/faq tests/evalsets/seed --out profile.env
    """
    import json
    from dataclasses import asdict, replace

    from kb.evaluation import calibrate as fitting
    from kb.evidence import Background, Calibration

    benches = list(_benches(sets))
    backgrounds = [bench.background(labelled.questions) for labelled, bench in benches]
    background = Background(
        round(sum(one.cosine for one in backgrounds) / len(backgrounds), 3),
        round(sum(one.spread for one in backgrounds) / len(backgrounds), 3),
    )
    # Ranks depend on the background, so that it stands before the signals are looked at.
    blank = Calibration(0, 0, 0, 0, 0, 0, background)
    overrides = {"RETRIEVAL_CALIBRATION": json.dumps(asdict(blank))}
    samples = []
    for labelled, bench in benches:
        others = [
            replace(question, relevant=frozenset(), holds="")
            for other, _ in benches
            if other is not labelled
            for question in other.questions[:: len(benches)]
        ]
        count = len(labelled.questions)
        own = list(_followed(bench.ask(labelled.questions, overrides), count, "Asking"))
        off = list(_followed(bench.ask(others, overrides), len(others), "Asking off topic"))
        samples.append(fitting.sample_of(labelled.name, own, off))
    calibration = fitting.fit(samples, background)
    chosen = fitting.thresholds(samples, calibration, rate)
    if chosen is None:
        say(f"No threshold is right in {rate:.0%} of its answers on every set:")
        for sample in samples:
            say(f"  {sample.name}: {fitting.curve(sample, calibration)}")
        return ExitCode.NOT_IN_ORDER
    _say_measured(
        "With all sets",
        [fitting.measure(s, fitting.evidences(s, calibration), *chosen) for s in samples],
    )
    held_out = fitting.held_out(samples, background, rate)
    _say_measured("With the others alone", [one for one in held_out.values() if one])
    profile = "\n".join(
        [
            f"RETRIEVAL_HIGHLY_RELEVANT_THRESHOLD={chosen[0]}",
            f"RETRIEVAL_REFERENCE_THRESHOLD={chosen[1]}",
            f"RETRIEVAL_CALIBRATION={json.dumps(asdict(calibration))}",
        ]
    )
    if out:
        out.write_text(profile + "\n", encoding="utf-8")
    say(profile)
    return ExitCode.DONE


def _benches(paths: Sequence[Path]) -> Iterator[tuple["LabelledSet", "Bench"]]:
    import os

    from kb.evaluation.labelled_set import read_set
    from kb.evaluation.trial import Bench
    from kb.local.cloud import MotoServer
    from kb.local.embedded_model import CACHE, EmbeddedModel
    from kb.local.functions import CHECKOUT

    labelled_sets = [read_set(path) for path in paths]
    os.environ.setdefault(CACHE, str(CHECKOUT / ".kb"))
    server, embedder = MotoServer(), EmbeddedModel()
    for labelled in labelled_sets:
        bench = Bench(labelled, server, embedder)
        for _ in _followed(bench.ingest(), len(labelled.documents), f"Indexing {labelled.name}"):
            pass
        yield labelled, bench


def _followed(work: Iterable[T], total: int, name: str) -> Iterator[T]:
    """The same, a bar beside it."""
    with steps(name, total) as step:
        for one in work:
            yield one
            step("")


def _say_figures(title: str, now: "Figures", before: dict[str, Any]) -> None:
    say(f"{title}: {now.questions} questions, {now.unanswerable} unanswerable", "bold")
    earlier = before.get("ways", {})
    say_table(
        ["", "hit@1", "hit@3", "recall@10", "MRR@10", "hit@1 before"],
        [
            (
                name,
                *map(_figure, (way.hit_1, way.hit_3, way.recall_10, way.mrr_10)),
                _figure(earlier.get(name, {}).get("hit_1")),
            )
            for name, way in now.ways.items()
        ],
    )
    say_table(
        ["level", "given", "right", "of answerable", "of unanswerable", "right before"],
        [
            (
                name,
                level.answers,
                *map(_figure, (level.right, level.answerable, level.unanswerable)),
                _figure(before.get("levels", {}).get(name, {}).get("right")),
            )
            for name, level in now.levels.items()
        ],
    )
    if now.holds is not None:
        say(f"the delivered part has what answers: {now.holds:.3f}")
    say(f"{now.milliseconds:.0f} ms an answer (median)")


def _say_measured(title: str, measured: Sequence["Measured"]) -> None:
    say(title, "bold")
    say_table(
        [
            "set",
            "right",
            "90 % interval",
            "fired",
            "unanswerable fired",
            "off topic found",
            "right kept",
        ],
        [
            (
                one.name,
                _figure(one.right),
                "–".join(map(_figure, one.right_interval)),
                *map(
                    _figure,
                    (one.fired, one.unanswerable_fired, one.off_topic_found, one.right_kept),
                ),
            )
            for one in measured
        ],
    )


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
