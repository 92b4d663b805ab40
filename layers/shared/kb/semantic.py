"""L1: the documents whose chunks lie nearest to the question, as the catalog has them now."""

from collections.abc import Iterable
from dataclasses import dataclass

from kb.catalog import Catalog
from kb.documents import CatalogRow, Status, domain_of
from kb.grading import similarity, squared_distance
from kb.ports import Embedder, Hit, VectorIndex
from kb.vectors import check_vectors

DOCUMENTS_WANTED = 3
"""Where one long document leaves fewer among the hits, a second search leaves it out."""


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

    @property
    def model(self) -> str:
        return self._embedder.model

    def nearest(self, query: str, domain: str | None) -> list[Nearest]:
        """Documents of the domain (None: all) best first, equal content once.

        Raises Unavailable or Misconfigured where the embedder or the index does not work.
        """
        if not self._is_prepared:
            self._index.prepare()
            self._is_prepared = True
        vector = self._embedder.embed_question(query)
        check_vectors([vector], 1, self._embedder.dimension)
        hits = self._index.search(vector, self._k, domain)
        current = self._current(hits)
        if len(current) < len(hits):
            current = self._current(self._index.search(vector, self._k, domain), settle=False)
        found = {hit.key for hit in current}
        if len(current) >= self._k and len(found) < DOCUMENTS_WANTED:
            current += self._current(self._index.search(vector, self._k, domain, without=found))
        return self._one_a_document(current)

    def _current(self, hits: list[Hit], *, settle: bool = True) -> list[Hit]:
        """Drop hits of other versions than the catalog's; rows that differ are read first."""
        if not self._catalog.is_loaded:
            return hits
        if settle and (differing := {hit.key for hit in hits if not self._is_served(hit)}):
            self._catalog.read_again(differing)
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
