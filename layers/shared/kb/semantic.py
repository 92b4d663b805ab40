"""L1: the documents whose chunks lie nearest to the question, as the catalog has them now."""

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from kb.catalog import Catalog
from kb.deadline import Deadline, Step
from kb.documents import CatalogRow, Status, domain_of
from kb.errors import Unavailable
from kb.grading import similarity, squared_distance
from kb.ports import Embedder, Hit, VectorIndex
from kb.vectors import check_vectors

logger = logging.getLogger(__name__)

DOCUMENTS_WANTED = 3
"""Where one long document leaves fewer among the hits, a second search leaves it out."""

Search = Callable[[Collection[str]], list[Hit]]
"""Finds the chunks nearest to one question, but for those of the documents named."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """One document by its best chunk."""

    row: CatalogRow
    part: int
    section: str
    similarity: float


class SemanticSearch:
    """`k` chunks are asked of the index; `max_l2` is the squared distance of similarity 0."""

    def __init__(
        self,
        embedder: Embedder,
        index: VectorIndex,
        catalog: Catalog,
        *,
        k: int,
        max_l2: float,
    ) -> None:
        self._embedder = embedder
        self._index = index
        self._catalog = catalog
        self._k = k
        self._max_l2 = max_l2
        self._is_prepared = False

    def nearest(self, query: str, domain: str | None, deadline: Deadline) -> list[Nearest]:
        """Documents of the domain (None: all) best first, equal content once.

        Raises Unavailable or Misconfigured where the embedder or the index does not work.
        """
        prepared = deadline.start(self._prepare)
        vector = deadline.call(Step.SEARCH, "embedding", self._embedder.embed_question, query)
        check_vectors([vector], 1, self._embedder.dimension)
        deadline.wait(Step.SEARCH, "vectors", prepared)

        def search(without: Collection[str]) -> list[Hit]:
            return deadline.call(
                Step.SEARCH, "vectors", self._index.search, vector, self._k, domain, without
            )

        if not self._catalog.is_loaded:
            return self._one_a_document(_newest(search(())))
        return self._one_a_document(self._served(search, deadline))

    def _prepare(self) -> None:
        if not self._is_prepared:
            self._index.prepare()
            self._is_prepared = True

    def _served(self, search: Search, deadline: Deadline) -> list[Hit]:
        """The hits of versions that the catalog names; searched again where others fell out."""
        hits = search(())
        served = self._judged(hits, deadline)
        if len(served) < len(hits):
            hits = search(())
            served = self._judged(hits, deadline)
        found = {hit.key for hit in served}
        if len(hits) >= self._k and len(found) < DOCUMENTS_WANTED:
            served += self._judged(search(found), deadline)
        return served

    def _judged(self, hits: list[Hit], deadline: Deadline) -> list[Hit]:
        """Drop hits of other versions than the catalog's; rows that differ are read first."""
        if differing := {hit.key for hit in hits if not self._is_served(hit)}:
            try:
                deadline.call(Step.SEARCH, "catalog", self._catalog.read_again, differing)
            except Unavailable as error:
                logger.warning("catalog_unavailable", extra={"cause": str(error)})
                if not self._is_served(hits[0]):
                    raise  # what is left might be graded as if nothing better were there
        return [hit for hit in hits if self._is_served(hit)]

    def _is_served(self, hit: Hit) -> bool:
        row = self._catalog.row(hit.key)
        return row is not None and row.served == hit.version

    def _one_a_document(self, hits: Iterable[Hit]) -> list[Nearest]:
        best: dict[str, Nearest] = {}
        for hit in sorted(hits, key=lambda hit: (-hit.score, hit.key, hit.ordinal)):
            row = self._catalog.row(hit.key) or _row_of(hit)
            # Twins score alike and sort by key, so the smallest key stands for the content.
            identity = row.content_hash or row.key
            if identity not in best:
                likeness = similarity(squared_distance(hit.score), self._max_l2)
                best[identity] = Nearest(row, hit.part, hit.section, likeness)
        return list(best.values())


def _newest(hits: list[Hit]) -> list[Hit]:
    """Of each document the hits of the highest revision: that of the catalog, nearly always."""
    revisions: dict[str, int] = {}
    for hit in hits:
        revisions[hit.key] = max(hit.version.revision, revisions.get(hit.key, 0))
    return [hit for hit in hits if hit.version.revision == revisions[hit.key]]


def _row_of(hit: Hit) -> CatalogRow:
    """What the hit itself tells of its document, while the catalog cannot be read."""
    return CatalogRow(
        key=hit.key,
        revision=hit.version.revision,
        status=Status.INDEXED,
        changed_at=0,
        served=hit.version,
        domain=domain_of(hit.key),
    )
