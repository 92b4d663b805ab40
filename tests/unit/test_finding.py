"""What L0 and L1 make of a question together, without either."""

from typing import Any, cast

import pytest
from kb.catalog import Catalog
from kb.deadline import Deadline
from kb.documents import CatalogRow, Status, Version
from kb.errors import Unavailable
from kb.evidence import Signals
from kb.finding import Candidate, Finder, Finding
from kb.grading import SPECIFIED, Level
from kb.keywords import Match
from kb.semantic import Nearest, SemanticSearch

ROWS = {
    key: CatalogRow(key, 1, Status.INDEXED, 1, Version(1, key), content_hash=key, domain=key[0])
    for key in ("a.md", "b.md", "c.md")
}


class Matching:
    """A catalog that matches what it is told to."""

    def __init__(self, *matches: tuple[str, float]) -> None:
        self._matches = tuple(Match(key, f"of {key}", False, share) for key, share in matches)

    def match(self, folded: str) -> tuple[Match, ...]:
        return self._matches

    def row(self, key: str) -> CatalogRow | None:
        return ROWS.get(key)

    def twins(self, row: CatalogRow) -> list[CatalogRow]:
        return [row]


class Ranking:
    """Semantic search that ranks what it is told to, as key and evidence."""

    def __init__(self, *ranked: tuple[str, float]) -> None:
        self._ranked = ranked
        self.asked = 0

    def nearest(self, *_: Any) -> list[Nearest]:
        self.asked += 1
        return [
            Nearest(ROWS[key], 2, "s", Signals(evidence / 2, 0, 0, 0, 0, False), evidence)
            for key, evidence in self._ranked
        ]


class Down:
    def nearest(self, *_: Any) -> list[Nearest]:
        raise Unavailable("vectors")


def find(
    matching: Matching, semantic: Ranking | Down, domain: str | None = None, keywords: bool = True
) -> Finding:
    finder = Finder(
        cast(Catalog, matching), cast(SemanticSearch, semantic), SPECIFIED, min_coverage=0.8
    )
    return finder.find("q", "q", domain, cast(Deadline, None), keywords=keywords)


def by_meaning(key: str) -> Candidate:
    return Candidate(ROWS[key], part=2, section="s")


def by_both(key: str) -> Candidate:
    return Candidate(ROWS[key], f"of {key}", 2, "s")


def by_keyword(key: str) -> Candidate:
    return Candidate(ROWS[key], f"of {key}")


def test_strong_single_match_does_not_ask_l1() -> None:
    semantic = Ranking(("b.md", 0.9))
    assert find(Matching(("a.md", 0.8)), semantic) == Finding(
        Level.PRECISE, by_keyword("a.md"), None, 1, None, None, ()
    )
    assert semantic.asked == 0


@pytest.mark.parametrize(
    ("ranked", "expected"),
    [
        (
            [("a.md", 0.5), ("b.md", 0.9)],
            (Level.PRECISE, by_both("a.md"), by_meaning("b.md"), 0.5),
        ),
        ([("b.md", 0.75), ("a.md", 0.7)], (Level.HIGHLY_RELEVANT, None, by_meaning("b.md"), 0.75)),
        (
            [("b.md", 0.7), ("a.md", 0.6)],
            (Level.REFERENCE, by_both("a.md"), by_meaning("b.md"), 0.7),
        ),
        ([("b.md", 0.7)], (Level.REFERENCE, by_keyword("a.md"), by_meaning("b.md"), 0.7)),
        ([("a.md", 0.4)], (Level.REFERENCE, by_both("a.md"), None, 0.4)),
        (
            [("b.md", 0.1), ("a.md", 0.6)],
            (Level.PRECISE, by_both("a.md"), None, 0.6),
        ),
        ([], (Level.REFERENCE, by_keyword("a.md"), None, 0.0)),
    ],
    ids=[
        "agrees",
        "surpassed",
        "another is better but not sure",
        "not seen by L1",
        "no evidence",
        "the first has no evidence",
        "nothing near",
    ],
)
def test_weak_single_match(
    ranked: list[tuple[str, float]],
    expected: tuple[Level, Candidate | None, Candidate | None, float],
) -> None:
    level, primary, supplement, evidence = expected
    assert find(Matching(("a.md", 0.79)), Ranking(*ranked)) == Finding(
        level, primary, supplement, 1, evidence / 2, evidence, ()
    )


@pytest.mark.parametrize(
    ("ranked", "expected"),
    [
        (
            [("c.md", 0.9), ("b.md", 0.3), ("a.md", 0.2)],
            (Level.HIGHLY_RELEVANT, by_both("b.md"), by_meaning("c.md"), 0.9),
        ),
        (
            [("b.md", 0.6), ("a.md", 0.55)],
            (Level.REFERENCE, by_both("b.md"), by_meaning("a.md"), 0.6),
        ),
        ([("c.md", 0.2)], (Level.REFERENCE, by_keyword("a.md"), None, 0.2)),
    ],
    ids=["another is surest", "L1 chooses", "L1 sees none"],
)
def test_several_matches(
    ranked: list[tuple[str, float]],
    expected: tuple[Level, Candidate | None, Candidate | None, float],
) -> None:
    level, primary, supplement, evidence = expected
    found = find(Matching(("a.md", 1), ("b.md", 0.5)), Ranking(*ranked))
    assert found == Finding(level, primary, supplement, 2, evidence / 2, evidence, ())


@pytest.mark.parametrize(
    ("ranked", "level", "supplement", "evidence"),
    [
        ([("a.md", 0.75)], Level.HIGHLY_RELEVANT, by_meaning("a.md"), 0.75),
        ([("a.md", 0.5)], Level.REFERENCE, by_meaning("a.md"), 0.5),
        ([("a.md", 0.49)], None, None, 0.49),
        ([("a.md", 0.1), ("b.md", 0.8)], Level.HIGHLY_RELEVANT, by_meaning("b.md"), 0.8),
        ([], None, None, 0.0),
    ],
    ids=["sure", "related", "no evidence", "the first has no evidence", "nothing near"],
)
def test_meaning_alone(
    ranked: list[tuple[str, float]],
    level: Level | None,
    supplement: Candidate | None,
    evidence: float,
) -> None:
    expected = Finding(level, None, supplement, 0, evidence / 2, evidence, ())
    assert find(Matching(), Ranking(*ranked)) == expected
    assert find(Matching(("c.md", 1)), Ranking(*ranked), keywords=False) == expected
    assert find(Matching(("c.md", 1)), Ranking(*ranked), domain="a") == expected


def test_match_outside_the_domain_still_makes_the_one_inside_not_the_only_one() -> None:
    found = find(Matching(("a.md", 1), ("b.md", 1)), Ranking(), domain="b")
    assert found == Finding(Level.REFERENCE, by_keyword("b.md"), None, 2, 0.0, 0.0, ())


def test_l1_down_leaves_what_l0_matched() -> None:
    assert find(Matching(("a.md", 0.5)), Down()) == Finding(
        Level.REFERENCE, by_keyword("a.md"), None, 1, None, None, ("semantic",)
    )
    assert find(Matching(("a.md", 0.9)), Down()) == Finding(
        Level.PRECISE, by_keyword("a.md"), None, 1, None, None, ()
    )


@pytest.mark.parametrize(
    ("matching", "domain", "keywords"),
    [
        (Matching(), None, True),
        (Matching(("a.md", 1)), "b", True),
        (Matching(("a.md", 1)), None, False),
    ],
    ids=["no match", "match outside the domain", "keywords down too"],
)
def test_l1_down_and_no_match_is_unavailable(
    matching: Matching, domain: str | None, keywords: bool
) -> None:
    with pytest.raises(Unavailable) as error:
        find(matching, Down(), domain, keywords)
    assert error.value.what == "semantic"
