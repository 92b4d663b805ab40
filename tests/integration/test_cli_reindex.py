"""kb reindex: a line a step, and what it says where it cannot go on."""

from collections.abc import Iterator
from typing import Any

import kb.wiring
import pytest
from kb.cli import run
from kb.errors import Misconfigured
from kb.reindex import Did, Step

from tests.conftest import System
from tests.served import serving

STEPS = [
    Step(Did.EMBEDDED, "a.md", 1, 2),
    Step(Did.EMBEDDED, "b.md", 2, 2),
    Step(Did.SWITCHED, "kb-chunks-2"),
]


@pytest.fixture(autouse=True)
def shell(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KB_URL", "KB_STACK", "CATALOG_TABLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def reindexes(monkeypatch: pytest.MonkeyPatch) -> "Reindexes":
    """A shell with an ingest function's environment, and steps told in advance."""
    reindexes = Reindexes(STEPS)
    monkeypatch.setenv("CATALOG_TABLE", "catalog")
    monkeypatch.setenv("EMBEDDING_FUNCTION", "old")
    monkeypatch.setattr(kb.wiring, "ingest_parts_of", lambda environment: environment)
    monkeypatch.setattr(kb.wiring, "make_reindex", reindexes.made_of)
    return reindexes


class Reindexes:
    def __init__(self, steps: list[Step]) -> None:
        self.steps = steps
        self.asked: list[tuple[str, bool]] = []

    def made_of(self, environment: dict[str, str]) -> Any:
        self._function = environment["EMBEDDING_FUNCTION"]
        return self

    def run(self, ahead: bool) -> Iterator[Step]:
        self.asked.append((self._function, ahead))
        yield from self.steps


def test_each_step_is_a_line(reindexes: Reindexes, capsys: pytest.CaptureFixture[str]) -> None:
    reindexes.steps = [*STEPS, Step(Did.REMOVED, "kb-chunks-1")]
    assert run(["reindex"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "embedded  a.md  1 of 2",
        "embedded  b.md  2 of 2",
        "switched  kb-chunks-2",
        "removed   kb-chunks-1",
        "2 embedded, 1 switched, 1 removed",
    ]
    assert reindexes.asked == [("old", False)]


def test_ahead_of_the_deployment_the_new_function_embeds_and_the_next_step_is_said(
    reindexes: Reindexes, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["reindex", "--embedding-function", "next"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "2 embedded, 1 switched",
        "Now deploy the stack with this embedding function, then run kb reindex without it.",
    ]
    assert reindexes.asked == [("next", True)]


def test_nothing_to_do_is_said(reindexes: Reindexes, capsys: pytest.CaptureFixture[str]) -> None:
    reindexes.steps = []
    assert run(["reindex"]) == 0
    assert capsys.readouterr().out == "Nothing to do.\n"


def test_documents_that_keep_their_old_cut_are_exit_code_4(reindexes: Reindexes) -> None:
    reindexes.steps = [Step(Did.FAILED, "a.md", 1, 1)]
    assert run(["reindex"]) == 4


def test_a_kb_serve_needs_no_reindex(
    system: System, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(system, monkeypatch) as url:
        assert run(["reindex", "--url", url]) == 2
    line = "kb: kb serve makes its index anew at every start: restart it\n"
    assert capsys.readouterr().err == line


def test_an_index_in_memory_is_none_to_move(system: System) -> None:
    with pytest.raises(Misconfigured, match="made anew at every start"):
        kb.wiring.make_reindex(system.new_ingest())
    assert system.index.model == "hashing-test-model"
