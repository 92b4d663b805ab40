"""Moves a running system to another embedding model, mapping, chunker or sizes.

What a version of a document is - its fingerprint - says how it was cut; with which model its
chunks were embedded, the index says. So the two kinds of change are two steps:

1. Another model or mapping: the index's chunks, text and all, are embedded into an index beside
   it under the very versions that the catalog serves. When every served version is there whole,
   the alias moves, in one step, and what was committed meanwhile is brought after. Nothing of the
   catalog changes, so at every moment it names versions that are whole in both indexes. Who asks
   which is not a matter of time but of the model: a function asks the index of its own
   (opensearch_place). Deployed ones go on asking the old one, as it was at the switch, until they
   are deployed with the new model; ingest with the old model fails from the switch on, and its
   messages wait in the queue, so that the old index lacks nothing that the catalog serves.
2. Another chunker or other sizes: each document whose row is of another recipe is looked at by
   ingest, which serves its old version until the new one is committed. Old and new lie in the
   same vectors, so that one search may meet both, each whole.

Then the indexes before this one go. Where the functions still have the old model (`ahead`), the
first step is done alone; the second and the removal come with the next run, after they are
deployed. A run that was ended anywhere goes on: the new index tells which versions it holds
whole, the catalog which rows are of which recipe.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from kb.documents import Status, Version
from kb.errors import Unavailable
from kb.ingest import Ingest
from kb.ports import Embedder, IndexedChunk
from kb.stores.catalog_table import CatalogTable
from kb.stores.dynamodb import batches
from kb.stores.opensearch_generations import Generation, Generations
from kb.stores.opensearch_index import OpenSearchIndex
from kb.vectors import check_vectors

PARALLEL = 4
"""Documents at once; lookups need the embedder too."""
PASSES = 20
"""Looks at what is missing still; each leaves what changed during the one before."""
PROBE = "reindex"
"""Embedded first: another model than the index is made for is to be known before anything is."""

T = TypeVar("T")
R = TypeVar("R")


class Did(StrEnum):
    """What a step did."""

    EMBEDDED = "embedded"
    """A document, into the new index."""
    SWITCHED = "switched"
    """To the index named."""
    RENEWED = "renewed"
    """A document, by the chunker and sizes of now."""
    FAILED = "failed"
    """A document of another recipe, whose newest content cannot be indexed; its old one stays."""
    REMOVED = "removed"
    """The index named."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing done, the `number`th of `total` of its kind in this pass."""

    did: Did
    name: str
    number: int = 1
    total: int = 1


_Missing = tuple[str, Version, int]
"""Key, version served, chunks."""


class Reindex:
    """`embed_batch` is how many texts one call of the embedder gets."""

    def __init__(
        self,
        *,
        ingest: Ingest,
        catalog: CatalogTable,
        embedder: Embedder,
        index: OpenSearchIndex,
        generations: Generations,
        embed_batch: int,
    ) -> None:
        self._ingest = ingest
        self._catalog = catalog
        self._embedder = embedder
        self._index = index
        self._generations = generations
        self._embed_batch = embed_batch

    def run(self, ahead: bool = False) -> Iterator[Step]:
        """Do what is left to do, step by step; `ahead` of the functions' deployment only part 1.

        Raises Unavailable, or Misconfigured where the embedder's model is not the one meant.
        """
        probe = self._embedder.embed_question(PROBE)
        check_vectors([probe], 1, self._embedder.dimension)
        current = self._generations.current()
        if current is None:
            self._index.prepare()
        elif not current.is_fit:
            yield from self._replace(current)
        if ahead:
            return
        if current and current.is_fit and (earlier := self._generations.earlier(current)):
            # What was committed between the last look and the functions' deployment.
            yield from self._fill(earlier[0], self._generations.in_use())
        yield from self._renew()
        for one in self._generations.earlier():
            self._generations.remove(one)
            yield Step(Did.REMOVED, one.name)

    def _replace(self, current: Generation) -> Iterator[Step]:
        yield from self._fill(current, self._generations.next())
        yield Step(Did.SWITCHED, self._generations.switch(current))
        yield from self._fill(current, self._generations.in_use())

    def _fill(self, source: Generation, new: OpenSearchIndex) -> Iterator[Step]:
        """Bring every served version that the source holds into the new index."""
        old = self._generations.at(source.name)
        keeps_vectors = source.model == self._embedder.model

        def copy(one: _Missing) -> str:
            self._copy(one, old, new, keeps_vectors)
            return one[0]

        for _ in range(PASSES):
            new.refresh()  # what an ended run wrote, or the pass before
            missing = self._missing(old, new)
            if not missing:
                return
            for number, key in enumerate(_at_once(copy, missing), 1):
                yield Step(Did.EMBEDDED, key, number, len(missing))
        raise Unavailable("catalog", "documents kept changing")

    def _missing(self, old: OpenSearchIndex, new: OpenSearchIndex) -> list[_Missing]:
        """Served versions not whole in the new index; what it holds beside them goes."""
        rows = {row.key: row for row in self._catalog.load()}
        held = {(key, version): count for key, version, count in new.versions()}
        for key in {key for key, version in held if key in rows and rows[key].served != version}:
            new.remove_others(key, rows[key].served, rows[key].revision)
        return sorted(
            (
                (key, version, count)
                for key, version, count in old.versions()
                if key in rows and rows[key].served == version and held.get((key, version)) != count
            ),
            key=lambda one: one[0],
        )

    def _copy(
        self, one: _Missing, old: OpenSearchIndex, new: OpenSearchIndex, keeps_vectors: bool
    ) -> None:
        key, version, count = one
        chunks = list(old.chunks(key, version, vectors=keeps_vectors))
        if len(chunks) != count:
            return  # it is just being replaced; the next pass sees by what
        new.write(chunks if keeps_vectors else self._embedded(chunks))

    def _embedded(self, chunks: Sequence[IndexedChunk]) -> list[IndexedChunk]:
        embedded = []
        for batch in batches(chunks, self._embed_batch):
            vectors = self._embedder.embed_passages([chunk.text for chunk in batch])
            check_vectors(vectors, len(batch), self._embedder.dimension)
            embedded += [
                replace(chunk, vector=vector) for chunk, vector in zip(batch, vectors, strict=True)
            ]
        return embedded

    def _renew(self) -> Iterator[Step]:
        keys = sorted(row.key for row in self._catalog.load() if not self._ingest.is_of_recipe(row))

        def renew(key: str) -> tuple[str, Did]:
            outcome = self._ingest.reconcile(key)
            return key, Did.FAILED if outcome.status is Status.FAILED else Did.RENEWED

        for number, (key, did) in enumerate(_at_once(renew, keys), 1):
            yield Step(did, key, number, len(keys))


def _at_once(work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """Several at the same time, in order; what has not begun when it ends is not done."""
    pool = ThreadPoolExecutor(PARALLEL)
    try:
        yield from pool.map(work, items)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
