"""Another embedding model, beside a running system: what lookups and ingest meet at each step."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pytest
from kb import reindex
from kb.answers import Question
from kb.documents import Version
from kb.errors import KbError, Misconfigured, Unavailable
from kb.ports import Vector
from kb.reindex import Did, Reindex, Step
from kb.settings import IngestSettings, LookupSettings, read_settings
from kb.stores import opensearch_mapping
from kb.stores.opensearch_index import OpenSearchIndex
from kb.wiring import IngestParts, LookupParts, make_doctor, make_ingest, make_lookup, make_reindex
from opensearchpy import OpenSearch

from tests.conftest import System
from tests.fakes import HashingEmbedder

TEXTS = {
    f"{name}.md": f"{name} one {name} two " * 45
    for name in ("apple", "birch", "cedar", "dates", "elder")
}
"""Two chunks each."""
CHUNKS = 10


class NewModel(HashingEmbedder):
    """Of the same dimension, in a space where the old model's vectors mean nothing."""

    model = "new-test-model"

    def embed_question(self, text: str) -> Vector:
        vector = list(super().embed_question(text))
        return [*vector[37:], *vector[:37]]


class Killed(BaseException):
    """What no handler of ours stops, as SIGKILL."""


@dataclass(slots=True)
class World:
    system: System
    client: OpenSearch
    alias: str
    old: HashingEmbedder = field(default_factory=HashingEmbedder)
    new: HashingEmbedder = field(default_factory=NewModel)

    def index(self, embedder: HashingEmbedder, may_lag: bool = False) -> OpenSearchIndex:
        return OpenSearchIndex(
            self.client,
            index=self.alias,
            model=embedder.model,
            dimension=embedder.dimension,
            may_lag=may_lag,
        )

    def ingest(self, embedder: HashingEmbedder) -> IngestParts:
        settings = read_settings(IngestSettings, self.system.environment)
        return make_ingest(settings, embedder, self.index(embedder), self.system.clock.seconds)

    def lookup(self, embedder: HashingEmbedder) -> LookupParts:
        settings = read_settings(LookupSettings, self.system.environment)
        index = self.index(embedder, may_lag=True)
        return make_lookup(settings, embedder, index, self.system.clock.ticking)

    def reindex(self, embedder: HashingEmbedder | None = None) -> Reindex:
        return make_reindex(self.ingest(embedder or self.new))

    def put(self, key: str, text: str, embedder: HashingEmbedder | None = None) -> None:
        self.system.put(key, text)
        self.ingest(embedder or self.old).ingest.reconcile(key)

    @property
    def indexes(self) -> dict[str, list[str]]:
        """Index -> its aliases."""
        found = self.client.indices.get_alias(index=f"{self.alias}*")
        return {name: sorted(one["aliases"]) for name, one in found.items()}


@pytest.fixture
def world(client: OpenSearch, name: str, system: System, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(reindex, "PARALLEL", 1)
    world = World(system, client, name)
    for key, text in TEXTS.items():
        world.put(key, text)
    return world


def answered(parts: LookupParts, texts: dict[str, str] = TEXTS) -> dict[str, tuple[str, str]]:
    """By key whose text is asked for: which document answers, and with what text."""
    found = {}
    for key, text in texts.items():
        passage = parts.lookup.answer(Question(text[:60]), "caller").supplement
        found[key] = (passage.row.key, passage.content) if passage else ("", "")
    return found


RIGHT = {key: (key, text.strip()) for key, text in TEXTS.items()}


def assert_down(parts: LookupParts) -> None:
    with pytest.raises(Unavailable, match="semantic"):
        parts.lookup.answer(Question("apple one"), "caller")


def test_ahead_of_the_deployment_lookups_of_each_model_meet_their_own_vectors_at_every_step(
    world: World,
) -> None:
    warm = world.lookup(world.old)
    assert answered(warm) == RIGHT
    steps = []
    for step in world.reindex().run(ahead=True):
        steps.append(step)
        assert answered(warm) == RIGHT
        assert answered(world.lookup(world.old)) == RIGHT
        new = world.lookup(world.new)
        if step.did is Did.SWITCHED:
            assert answered(new) == RIGHT
        else:
            assert_down(new)
    first, second = f"{world.alias}-1", f"{world.alias}-2"
    assert steps == [
        *(Step(Did.EMBEDDED, key, n, 5) for n, key in enumerate(sorted(TEXTS), 1)),
        Step(Did.SWITCHED, second),
    ]
    assert world.indexes == {first: [], second: [world.alias]}
    assert list(world.reindex().run()) == [Step(Did.REMOVED, first)]
    assert world.indexes == {second: [world.alias]}
    assert len(world.new.passages) == CHUNKS
    assert answered(world.lookup(world.new)) == RIGHT
    assert_down(warm)


def test_after_the_deployment_a_single_run_does_it_all(world: World) -> None:
    waiting = world.lookup(world.new)
    assert_down(waiting)
    with pytest.raises(Misconfigured, match="kb reindex"):
        world.put("apple.md", "new text", world.new)
    done = [step.did for step in world.reindex().run()]
    assert done == [Did.EMBEDDED] * 5 + [Did.SWITCHED, Did.REMOVED]
    world.ingest(world.new).ingest.reconcile("apple.md")
    world.put("apple.md", TEXTS["apple.md"], world.new)
    assert answered(waiting) == RIGHT


@pytest.mark.parametrize("done", range(8))
def test_ended_after_any_step_it_goes_on_without_embedding_anything_twice(
    world: World, done: int
) -> None:
    run = world.reindex().run()
    steps = list(islice(run, done))
    run.close()
    assert len(steps) == min(done, 7)
    is_switched = any(step.did is Did.SWITCHED for step in steps)
    parts = world.lookup(world.new if is_switched else world.old)
    assert answered(parts) == RIGHT
    list(world.reindex().run())
    assert len(world.new.passages) == CHUNKS
    assert world.indexes == {f"{world.alias}-2": [world.alias]}
    assert answered(world.lookup(world.new)) == RIGHT
    assert list(world.reindex().run()) == []


@pytest.mark.parametrize("when", ["before it is written", "half written", "after it is written"])
@pytest.mark.parametrize("document", range(5))
def test_killed_at_any_document_it_goes_on_and_embeds_at_most_that_one_again(
    world: World, monkeypatch: pytest.MonkeyPatch, document: int, when: str
) -> None:
    write, written = OpenSearchIndex.write, []

    def until_killed(self: OpenSearchIndex, chunks: Any) -> None:
        written.append(chunks[0].key)
        if len(written) <= document:
            write(self, chunks)
            return
        write(self, {"b": (), "h": chunks[:1], "a": chunks}[when[0]])
        raise Killed

    embed = world.new.embed_passages

    def unless_killed(texts: Any) -> Any:
        if len(written) > document:
            raise Killed  # the next document's turn comes before the pool is told
        return embed(texts)

    with monkeypatch.context() as patch:
        patch.setattr(OpenSearchIndex, "write", until_killed)
        patch.setattr(world.new, "embed_passages", unless_killed)
        with pytest.raises(Killed):
            list(world.reindex().run())
    assert answered(world.lookup(world.old)) == RIGHT
    list(world.reindex().run())
    again = 0 if when == "after it is written" else 2
    assert len(world.new.passages) == CHUNKS + again
    assert answered(world.lookup(world.new)) == RIGHT
    assert_agrees(world)


def assert_agrees(world: World, embedder: HashingEmbedder | None = None) -> None:
    """The doctor finds nothing."""
    parts = world.ingest(embedder or world.new)
    _, examined = make_doctor(parts, world.system.clock.seconds).examine()
    assert [one.found for one in examined if one.found] == []


def test_what_is_ingested_meanwhile_is_in_the_new_index_too(world: World) -> None:
    text = "fig tree " * 20
    changed = TEXTS | {"apple.md": "avocado pear " * 20, "fig.md": text}
    run = world.reindex().run(ahead=True)
    next(run)
    world.put("apple.md", changed["apple.md"])  # after it was copied
    world.put("fig.md", text)
    world.system.delete("elder.md")
    world.ingest(world.old).ingest.reconcile("elder.md")
    del changed["elder.md"]
    right = {key: (key, text.strip()) for key, text in changed.items()}
    for _ in run:
        assert answered(world.lookup(world.old), changed) == right
    assert answered(world.lookup(world.new), changed) == right
    list(world.reindex().run())
    assert_agrees(world)


def test_from_the_switch_on_the_old_models_ingest_waits_and_loses_nothing(world: World) -> None:
    warm, lookup = world.ingest(world.old), world.lookup(world.old)
    warm.ingest.reconcile("apple.md")
    list(world.reindex().run(ahead=True))
    world.system.put("birch.md", "bamboo cane " * 20)
    for parts in (warm, world.ingest(world.old)):
        with pytest.raises(Misconfigured, match="new-test-model"):
            parts.ingest.reconcile("birch.md")
    assert answered(lookup) == RIGHT
    assert answered(world.lookup(world.new)) == RIGHT
    world.ingest(world.new).ingest.reconcile("birch.md")
    list(world.reindex().run())
    changed = TEXTS | {"birch.md": "bamboo cane " * 20}
    right = {key: (key, text.strip()) for key, text in changed.items()}
    assert answered(world.lookup(world.new), changed) == right
    assert_agrees(world)


def test_a_commit_just_before_the_switch_is_brought_after(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kb.stores.opensearch_generations import Generations

    switch: Callable[..., str] = Generations.switch

    def late(self: Generations, current: Any) -> str:
        world.put("apple.md", "avocado pear " * 20)
        return switch(self, current)

    monkeypatch.setattr(Generations, "switch", late)
    done = [(step.did, step.name) for step in world.reindex().run(ahead=True)]
    assert done[-2:] == [(Did.SWITCHED, f"{world.alias}-2"), (Did.EMBEDDED, "apple.md")]
    changed = TEXTS | {"apple.md": "avocado pear " * 20}
    right = {key: (key, text.strip()) for key, text in changed.items()}
    assert answered(world.lookup(world.new), changed) == right


def test_a_document_replaced_while_it_is_copied_leaves_nothing_in_the_new_index(
    world: World,
) -> None:
    replaced: list[str] = []
    embed = world.new.embed_passages

    def meanwhile(texts: Any) -> Any:
        if not replaced:
            replaced.append("apple.md")
            world.put("apple.md", "avocado pear " * 20)
        return embed(texts)

    world.new.embed_passages = meanwhile  # type: ignore[method-assign]
    list(world.reindex().run())
    assert {version.revision for _, version, _ in world.index(world.new).versions("apple.md")} == {
        2
    }
    assert_agrees(world)


def test_an_index_begun_for_a_third_model_is_abandoned(world: World) -> None:
    class Third(NewModel):
        model = "third-test-model"

    next(world.reindex(Third()).run())
    assert sorted(world.indexes) == [f"{world.alias}-1", f"{world.alias}-2"]
    list(world.reindex().run())
    assert list(world.indexes.values()) == [[world.alias]]
    assert answered(world.lookup(world.new)) == RIGHT


def test_another_mapping_for_the_same_model_keeps_the_vectors(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm = world.lookup(world.old)
    assert answered(warm) == RIGHT
    before = len(world.old.passages)
    monkeypatch.setattr(opensearch_mapping, "MAPPING_VERSION", 2)
    assert_down(world.lookup(world.old))
    list(world.reindex(world.old).run())
    assert len(world.old.passages) == before
    assert answered(warm) == RIGHT  # whose index is gone
    assert answered(world.lookup(world.old)) == RIGHT
    assert_agrees(world, world.old)


def test_an_embedder_of_another_model_is_said_before_anything_is_made(world: World) -> None:
    world.new.failure = Misconfigured("the embedding function has model old, not new")
    with pytest.raises(KbError, match="has model old"):
        list(world.reindex().run())
    assert list(world.indexes) == [f"{world.alias}-1"]


def test_without_any_index_there_is_nothing_to_do(
    client: OpenSearch, name: str, system: System
) -> None:
    world = World(system, client, name)
    assert list(world.reindex().run()) == []
    assert world.indexes == {f"{name}-1": [name]}


def test_chunks_are_read_page_by_page_with_and_without_vectors(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kb.stores.opensearch_index.CHUNKS_AT_ONCE", 1)
    index = world.index(world.old)
    [(key, version, count)] = index.versions("apple.md")
    assert (key, version.revision, count) == ("apple.md", 1, 2)
    whole = list(index.chunks(key, version, vectors=True))
    assert [(chunk.ordinal, chunk.text) for chunk in whole] == list(
        enumerate(world.old.passages[:2])
    )
    assert [len(chunk.vector) for chunk in whole] == [64, 64]
    bare: Iterator[Any] = index.chunks(key, version, vectors=False)
    assert [(chunk.ordinal, chunk.vector) for chunk in bare] == [(0, ()), (1, ())]
    assert list(index.chunks(key, Version(9, "f"), vectors=True)) == []
