"""L1: the documents whose chunks lie nearest to the question, as the catalog has them now."""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from kb.catalog import Catalog
from kb.deadline import Deadline, Step
from kb.documents import CatalogRow, Status, domain_of
from kb.errors import Unavailable
from kb.evidence import Signals, evidence_of
from kb.grading import Profile, similarity
from kb.ports import Embedder, Hit, VectorIndex, WordHit
from kb.ranking import Ranked, cosine_of, mean_and_spread, rank
from kb.vectors import check_vectors

logger = logging.getLogger(__name__)

DOCUMENTS_WANTED = 3
"""Where one long document leaves fewer among the hits, a second search leaves it out."""

WORDS_MOST = 64
"""Of a question's words the rarest are searched for; a common one tells no chunk from another."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """One document by its best chunk."""

    row: CatalogRow
    part: int
    section: str
    signals: Signals
    evidence: float
    """In [0, 1], what thresholds are compared with."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What both searches found."""

    near: list[Hit]
    said: list[WordHit]

    def __add__(self, other: "_Found") -> "_Found":
        return _Found(self.near + other.near, self.said + other.said)

    @property
    def searches(self) -> tuple[list[Hit], list[Hit]]:
        return self.near, [word.hit for word in self.said]

    @property
    def hits(self) -> list[Hit]:
        return self.searches[0] + self.searches[1]

    def where(self, keep: Callable[[Hit], bool]) -> "_Found":
        return _Found(
            [hit for hit in self.near if keep(hit)],
            [word for word in self.said if keep(word.hit)],
        )


Search = Callable[[Collection[str]], _Found]
"""Finds the chunks of one question, but for those of the documents named."""


class SemanticSearch:
    """`k` chunks are asked of each search; `words` False searches by vectors alone."""

    def __init__(
        self,
        embedder: Embedder,
        index: VectorIndex,
        catalog: Catalog,
        profile: Profile,
        *,
        k: int,
        words: bool,
    ) -> None:
        self._embedder = embedder
        self._index = index
        self._catalog = catalog
        self._profile = profile
        self._k = k
        self._words = words
        self._is_prepared = False

    def nearest(self, query: str, domain: str | None, deadline: Deadline) -> list[Nearest]:
        """Documents of the domain (None: all) best first, equal content once.

        Raises Unavailable or Misconfigured where the embedder or the index does not work.
        """
        weighed = deadline.start(self._prepare, query)
        vector = deadline.call(Step.SEARCH, "embedding", self._embedder.embed_question, query)
        check_vectors([vector], 1, self._embedder.dimension)
        rarity = deadline.wait(Step.SEARCH, "vectors", weighed)
        rarest = dict(sorted(rarity.items(), key=lambda item: -item[1])[:WORDS_MOST])

        def search(without: Collection[str]) -> _Found:
            said = deadline.start(self._index.search_words, rarest, self._k, domain, without)
            near = deadline.call(
                Step.SEARCH, "vectors", self._index.search, vector, self._k, domain, without
            )
            return _Found(near, deadline.wait(Step.SEARCH, "vectors", said))

        if self._catalog.is_loaded:
            found = self._served(search, deadline)
        else:
            found = search(())
            found = found.where(_is_newest(found.hits))
        calibration = self._profile.calibration
        background = calibration.background if calibration else None
        ranked = rank(found.near, found.said, rarity, background)
        mean, _ = mean_and_spread([cosine_of(hit.score) for hit in found.near], background)
        return self._documents(ranked, mean, _firsts(found))

    def _prepare(self, query: str) -> dict[str, float]:
        """The question's words and their rarity, in an index that was checked."""
        if not self._is_prepared:
            self._index.prepare()
            self._is_prepared = True
        return self._index.rarity(query) if self._words else {}

    def _served(self, search: Search, deadline: Deadline) -> _Found:
        """The hits of versions that the catalog names; searched again where others fell out."""
        found = search(())
        served = self._judged(found, deadline)
        if len(served.hits) < len(found.hits):
            found = search(())
            served = self._judged(found, deadline)
        # Not those found by words alone, since how near they are is still to be told.
        keys = {hit.key for hit in served.near}
        if len(found.near) >= self._k and len(keys) < DOCUMENTS_WANTED:
            served += self._judged(search(keys), deadline)
        return served

    def _judged(self, found: _Found, deadline: Deadline) -> _Found:
        """Drop hits of other versions than the catalog's; rows that differ are read first."""
        hits = found.hits
        if differing := {hit.key for hit in hits if not self._is_served(hit)}:
            try:
                deadline.call(Step.SEARCH, "catalog", self._catalog.read_again, differing)
            except Unavailable as error:
                logger.warning("catalog_unavailable", extra={"cause": str(error)})
                if not self._is_served(hits[0]):
                    raise  # what is left might be graded as if nothing better were there
        return found.where(self._is_served)

    def _is_served(self, hit: Hit) -> bool:
        row = self._catalog.row(hit.key)
        return row is not None and row.served == hit.version

    def _documents(self, ranked: Sequence[Ranked], mean: float, firsts: set[str]) -> list[Nearest]:
        """Each document by its best chunk, with the evidence that it is the right one.

        `mean` is the average cosine found; `firsts` are the keys that each search has first.
        """
        chunks: dict[str, list[Ranked]] = {}
        for chunk in ranked:
            row = self._catalog.row(chunk.hit.key)
            # Twins rank alike and sort by key, so the smallest key stands for the content.
            chunks.setdefault(row.content_hash if row else chunk.hit.key, []).append(chunk)
        bests = [of_document[0] for of_document in chunks.values()]
        documents = []
        for place, (best, of_document) in enumerate(zip(bests, chunks.values(), strict=True)):
            next_best = max(bests[1].rank, 0.0) if place == 0 and len(bests) > 1 else 0.0
            cosine = max(chunk.cosine for chunk in of_document)
            is_near = any(chunk.is_near for chunk in of_document)
            signals = Signals(
                similarity=similarity(2 - 2 * cosine, self._profile.max_l2) if is_near else 0.0,
                cosine=cosine,
                height=cosine - mean,
                lead=best.rank - next_best if place == 0 else 0.0,
                coverage=best.coverage,
                agrees=place == 0 and firsts <= {chunk.hit.key for chunk in of_document},
            )
            documents.append(
                Nearest(
                    self._catalog.row(best.hit.key) or _row_of(best.hit),
                    best.hit.part,
                    best.hit.section,
                    signals,
                    evidence_of(signals, self._profile.calibration),
                )
            )
        return documents


def _firsts(found: _Found) -> set[str]:
    """Keys of each search's best chunk; a search that found nothing agrees with none."""
    best = [max(hits, key=lambda hit: hit.score).key if hits else "" for hits in found.searches]
    return set(best)


def _is_newest(hits: list[Hit]) -> Callable[[Hit], bool]:
    """Whether a hit is of its document's highest revision: that of the catalog, nearly always."""
    revisions: dict[str, int] = {}
    for hit in hits:
        revisions[hit.key] = max(hit.version.revision, revisions.get(hit.key, 0))
    return lambda hit: hit.version.revision == revisions[hit.key]


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
