"""Another chunker or other sizes: each document is cut anew by ingest, and none twice."""

from dataclasses import dataclass
from itertools import islice
from typing import Any

import pytest
from kb import reindex
from kb.reindex import Did, Reindex, Step
from kb.stores.opensearch_generations import Generation

from tests.conftest import System, markdown

BINARY = b"\0\1\2\3" * 100
BODY = "Alpha beta gamma. " * 40
KEYS = ["a.md", "b.md", "c.md", "d.md"]


@dataclass(frozen=True, slots=True)
class OneGeneration:
    """An index of this model, and none before it."""

    def current(self) -> Generation:
        return Generation("index", "hashing-test-model", True)

    def earlier(self, current: Any = None) -> list[Generation]:
        return []


def reindexed(system: System) -> Reindex:
    parts = system.new_ingest()
    return Reindex(
        ingest=parts.ingest,
        catalog=parts.catalog,
        embedder=parts.embedder,
        index=parts.index,  # type: ignore[arg-type]
        generations=OneGeneration(),  # type: ignore[arg-type]
        embed_batch=32,
    )


@pytest.fixture
def filled(system: System, monkeypatch: pytest.MonkeyPatch) -> System:
    """Four documents cut by other sizes than those that hold now."""
    monkeypatch.setattr(reindex, "PARALLEL", 1)
    for key in KEYS:
        system.ingest(key, markdown(key, f"[keyword {key}]", f"# {key}\n\n{BODY}"))
    system.ingest("gone.md", markdown("Gone", "[gone]", "Text."))
    system.delete("gone.md")
    system.ingest("gone.md")
    system.overrides["CHUNK_SIZE"] = "300"
    system.embedder.passages.clear()
    return system


def cuts(system: System) -> dict[str, list[int]]:
    """Chunks of each version that the index holds, by key."""
    found: dict[str, list[int]] = {}
    for key, _, count in system.index.versions():
        found.setdefault(key, []).append(count)
    return found


def assert_answers(system: System) -> None:
    """Each document answers, by its keyword and by its text, whole."""
    for key in KEYS:
        answer = system.ask(f"keyword {key}")
        assert answer.primary is not None
        assert (answer.primary.row.key, answer.primary.content) == (
            key,
            f"# {key}\n\n{BODY.strip()}",
        )
        assert system.ask("alpha beta gamma").supplement is not None


def test_every_document_is_cut_anew_and_a_second_run_has_nothing_to_do(filled: System) -> None:
    assert cuts(filled) == {key: [1] for key in KEYS}
    assert list(reindexed(filled).run()) == [
        Step(Did.RENEWED, key, number, 4) for number, key in enumerate(KEYS, 1)
    ]
    assert cuts(filled) == {key: [4] for key in KEYS}
    assert list(reindexed(filled).run()) == []


@pytest.mark.parametrize("done", range(5))
def test_ended_after_any_document_it_goes_on_and_each_is_served_old_or_new_meanwhile(
    filled: System, done: int
) -> None:
    run = reindexed(filled).run()
    for _ in islice(run, done):
        assert_answers(filled)
    run.close()
    assert_answers(filled)
    list(reindexed(filled).run())
    assert_answers(filled)
    assert cuts(filled) == {key: [4] for key in KEYS}
    assert len(filled.embedder.passages) == 4 * len(KEYS)


def test_with_a_model_ahead_of_the_functions_documents_are_left_to_their_ingest(
    filled: System,
) -> None:
    assert list(reindexed(filled).run(ahead=True)) == []
    assert cuts(filled) == {key: [1] for key in KEYS}


def test_a_document_whose_newest_content_cannot_be_indexed_keeps_its_old_cut(
    filled: System,
) -> None:
    filled.ingest("b.md", BINARY)
    steps = list(reindexed(filled).run())
    assert [(step.name, step.did) for step in steps] == [
        ("a.md", Did.RENEWED),
        ("b.md", Did.FAILED),
        ("c.md", Did.RENEWED),
        ("d.md", Did.RENEWED),
    ]
    assert cuts(filled)["b.md"] == [1]
    assert_answers(filled)
