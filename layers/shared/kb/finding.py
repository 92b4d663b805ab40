"""Which documents answer a question and how well: L0, L1 where L0 is not enough, the grade."""

import logging
from dataclasses import dataclass

from kb.catalog import Catalog
from kb.documents import CatalogRow
from kb.errors import Misconfigured, Unavailable
from kb.grading import Level, Profile, grade
from kb.semantic import Nearest, SemanticSearch

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A document to answer with."""

    row: CatalogRow
    part: int | None
    """That of its best chunk; None where L1 was not asked or did not see it."""
    section: str = ""
    """Where that chunk begins."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What the knowledge base has for a question, whoever asks."""

    level: Level | None
    primary: Candidate | None
    supplement: Candidate | None
    matches: int
    similarity: float | None
    """The best of L1; None where it was not asked or did not answer."""
    degraded: tuple[str, ...]


NOTHING_FOUND = Finding(None, None, None, 0, None, ())


class Finder:
    """`min_coverage` is the share of question or keyword from which a single match is strong."""

    def __init__(
        self, catalog: Catalog, semantic: SemanticSearch, profile: Profile, *, min_coverage: float
    ) -> None:
        self._catalog = catalog
        self._semantic = semantic
        self._profile = profile
        self._min_coverage = min_coverage

    def find(self, query: str, folded: str, domain: str | None, *, keywords: bool) -> Finding:
        """Look the question up; `keywords` False: L0 cannot be asked.

        Raises Unavailable("semantic") where only L1 could answer and it does not work.
        """
        matches = self._catalog.match(folded) if keywords else ()
        matched = [row for match in matches if (row := self._in_domain(match.key, domain))]
        counted = len(matches) if matched else 0
        strong = counted == 1 and matches[0].coverage >= self._min_coverage
        degraded: tuple[str, ...] = () if keywords else ("keywords",)
        nearest: list[Nearest] = []
        asked = False
        if not strong:
            try:
                nearest = self._semantic.nearest(query, domain)
                asked = True
            except (Unavailable, Misconfigured) as error:
                logger.warning("semantic search failed", extra={"cause": str(error)})
                if not matched:
                    raise Unavailable("semantic", str(error)) from error
                degraded += ("semantic",)
        best = nearest[0].similarity if nearest else (0.0 if asked else None)
        agrees = bool(matched and nearest and _is_same(nearest[0].row, matched[0]))
        level = grade(counted, best, self._profile, strong=strong, agrees=agrees)
        primary = None
        if matched and not (counted == 1 and not agrees and level is Level.HIGHLY_RELEVANT):
            primary = _best_of(matched, nearest)
        supplement = next(
            (
                Candidate(near.row, near.part, near.section)
                for near in nearest
                if near.similarity >= self._profile.reference
                and not (primary and _is_same(near.row, primary.row))
            ),
            None,
        )
        return Finding(level, primary, supplement, counted, best if asked else None, degraded)

    def _in_domain(self, key: str, domain: str | None) -> CatalogRow | None:
        """The matched document, or its twin in the domain asked for."""
        row = self._catalog.row(key)
        if row is None or domain is None or row.domain == domain:
            return row
        return next((twin for twin in self._catalog.twins(row) if twin.domain == domain), None)


def _best_of(matched: list[CatalogRow], nearest: list[Nearest]) -> Candidate:
    """Of the matched documents the one that L1 ranks best, else L0's first."""
    for near in nearest:
        for row in matched:
            if _is_same(near.row, row):
                return Candidate(row, near.part, near.section)
    return Candidate(matched[0], None)


def _is_same(one: CatalogRow, other: CatalogRow) -> bool:
    """Whether both are one document, or two of equal content."""
    return one.key == other.key or (
        bool(one.content_hash) and one.content_hash == other.content_hash
    )
