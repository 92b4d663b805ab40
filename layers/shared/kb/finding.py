"""Which documents answer a question and how well: L0, L1 where L0 is not enough, the grade."""

import logging
from dataclasses import dataclass

from kb.catalog import Catalog
from kb.deadline import Deadline
from kb.documents import CatalogRow
from kb.errors import Misconfigured, Unavailable
from kb.grading import Level, Profile, grade
from kb.keywords import Match
from kb.semantic import Nearest, SemanticSearch

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A document to answer with."""

    row: CatalogRow
    keyword: str = ""
    """That it was matched by, folded; "" where L0 did not match it."""
    part: int | None = None
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
    """Documents that L0 matched; 0 where none of them may be delivered."""
    similarity: float | None
    """Of L1's best document; None where L1 was not asked or did not answer."""
    evidence: float | None
    """The same document's."""
    degraded: tuple[str, ...]

    @property
    def candidates(self) -> list[Candidate]:
        """The documents to answer with, the one that answers best first."""
        return [each for each in (self.primary, self.supplement) if each]


NOTHING_FOUND = Finding(None, None, None, 0, None, None, ())


@dataclass(frozen=True, slots=True)
class _Matched:
    """A match that may be delivered: the document itself, or its twin in the domain asked for."""

    row: CatalogRow
    match: Match


class Finder:
    """`min_coverage` is the share of question or keyword from which a single match is strong."""

    def __init__(
        self, catalog: Catalog, semantic: SemanticSearch, profile: Profile, *, min_coverage: float
    ) -> None:
        self._catalog = catalog
        self._semantic = semantic
        self._profile = profile
        self._min_coverage = min_coverage

    def find(
        self, query: str, folded: str, domain: str | None, deadline: Deadline, *, keywords: bool
    ) -> Finding:
        """Look the question up; `keywords` False: L0 cannot be asked.

        Raises Unavailable("semantic") where only L1 could answer and it does not work.
        """
        matches = self._catalog.match(folded) if keywords else ()
        matched = [
            _Matched(row, match) for match in matches if (row := self._in_domain(match.key, domain))
        ]
        count = len(matches) if matched else 0
        strong = count == 1 and matches[0].coverage >= self._min_coverage
        if strong:
            return self._graded(matched, count, None, strong=True)
        try:
            nearest = self._semantic.nearest(query, domain, deadline)
        except (Unavailable, Misconfigured) as error:
            logger.warning("semantic search failed", extra={"cause": str(error)})
            if not matched:
                raise Unavailable("semantic", str(error)) from error
            return self._graded(matched, count, None, degraded=("semantic",))
        return self._graded(matched, count, nearest)

    def _graded(
        self,
        matched: list[_Matched],
        count: int,
        nearest: list[Nearest] | None,
        *,
        strong: bool = False,
        degraded: tuple[str, ...] = (),
    ) -> Finding:
        """`nearest` is None where L1 was not asked or did not answer."""
        near = nearest or []
        enough = [one for one in near if one.evidence >= self._profile.reference]
        # What words rank first may have no evidence, and must not hide what has.
        best = next(iter(enough or near), None)
        nothing = None if nearest is None else 0.0
        similarity = best.signals.similarity if best else nothing
        evidence = best.evidence if best else nothing
        agrees = bool(best and matched and _is_same(best.row, matched[0].row))
        level = grade(count, evidence, self._profile, strong=strong, agrees=agrees)
        is_surpassed = count == 1 and not agrees and level is Level.HIGHLY_RELEVANT
        primary = _best_of(matched, near) if matched and not is_surpassed else None
        supplement = next(
            (
                Candidate(one.row, part=one.part, section=one.section)
                for one in enough
                if not (primary and _is_same(one.row, primary.row))
            ),
            None,
        )
        return Finding(level, primary, supplement, count, similarity, evidence, degraded)

    def _in_domain(self, key: str, domain: str | None) -> CatalogRow | None:
        row = self._catalog.row(key)
        if row is None or domain is None or row.domain == domain:
            return row
        return next((twin for twin in self._catalog.twins(row) if twin.domain == domain), None)


def _best_of(matched: list[_Matched], nearest: list[Nearest]) -> Candidate:
    """Of the matched documents the one that L1 ranks best, else L0's first."""
    for near in nearest:
        for one in matched:
            if _is_same(near.row, one.row):
                return Candidate(one.row, one.match.keyword, near.part, near.section)
    return Candidate(matched[0].row, matched[0].match.keyword)


def _is_same(one: CatalogRow, other: CatalogRow) -> bool:
    """Whether both are one document, or two of equal content."""
    return one.key == other.key or (
        bool(one.content_hash) and one.content_hash == other.content_hash
    )
