"""Which part of a candidate is delivered, and in how many batches it is read."""

from collections.abc import Collection, Sequence
from typing import Any

import pytest
from kb.answers import Passage, Question
from kb.choosing import FIRST_PARTS, Choice, Contents, Moved, choose
from kb.documents import CatalogRow, Outline, Part, Section, Status, Version, digest_of
from kb.finding import Candidate
from kb.reading import NoPart, NoSection

TITLES = ("甲", "乙", "丙")


def row_of(key: str, parts: int) -> CatalogRow:
    return CatalogRow(key, 1, Status.INDEXED, 1, Version(1, "f"), parts=parts)


class Stored:
    """Documents of numbered parts, and every batch that was read of them."""

    def __init__(self, **sizes: int) -> None:
        self.sizes = sizes
        self.batches: list[dict[str, list[int]]] = []

    def __call__(self, wanted: Sequence[tuple[CatalogRow, Collection[int]]]) -> Contents:
        self.batches.append({row.key: list(numbers) for row, numbers in wanted})
        return {
            row.key: (
                outline_of(self.sizes[row.key]),
                {
                    number: part_of(number)
                    for number in numbers
                    if 1 <= number <= self.sizes[row.key]
                },
            )
            for row, numbers in wanted
            if row.key in self.sizes
        }


def part_of(number: int) -> Part:
    return Part(number, f"text {number}", f"章 {number}")


def outline_of(size: int) -> Outline:
    return Outline(
        size,
        tuple(Section(f"章 {n}", 1, n, n) for n in range(1, size + 1)),
        {"最后": f"章 {size}"},
        tuple(digest_of(part_of(n).text) for n in range(1, size + 1)),
    )


def passage_of(row: CatalogRow, number: int, size: int, section: str = "") -> Passage:
    names = ("最后", *(f"章 {n}" for n in range(1, size + 1)))
    return Passage(row, f"text {number}", section or f"章 {number}", number, size, names)


A, B = row_of("a", 3), row_of("b", 20)


@pytest.mark.parametrize(
    ("row", "candidate", "asked", "number", "batches"),
    [
        (A, {"part": 2}, {}, 2, [[2]]),
        (A, {}, {}, 1, [[1, 2, 3]]),
        (A, {"keyword": "text 3"}, {}, 3, [[1, 2, 3]]),
        (B, {"keyword": "text 8"}, {}, 8, [[1, 2, 3, 4, 5, 6, 7, 8]]),
        (B, {"keyword": "text 9"}, {}, 1, [[1, 2, 3, 4, 5, 6, 7, 8]]),
        (B, {}, {"query": "章 12"}, 12, [[1, 2, 3, 4, 5, 6, 7, 8], [12]]),
        (B, {"part": 2}, {"part": 15}, 15, [[15]]),
        (B, {"part": 2}, {"section_title": "章 3"}, 3, [[1, 2, 3, 4, 5, 6, 7, 8]]),
        (B, {"part": 2}, {"section_title": "最后"}, 20, [[1, 2, 3, 4, 5, 6, 7, 8], [20]]),
        (row_of("b", 0), {}, {"section_title": "章 3"}, 3, [[1, 2, 3, 4, 5, 6, 7, 8]]),
        (A, {"part": 9}, {}, 1, [[9], [1]]),
    ],
    ids=[
        "best chunk's",
        "first",
        "text holds the keyword",
        "in the last of those read",
        "behind those read",
        "title names one behind those read",
        "asked by number",
        "asked by title",
        "asked by title behind those read",
        "number of parts unknown",
        "a twin's part that this one has not",
    ],
)
def test_part_is_chosen_in_as_few_batches_as_can_be(
    row: CatalogRow,
    candidate: dict[str, Any],
    asked: dict[str, Any],
    number: int,
    batches: list[list[int]],
) -> None:
    stored = Stored(a=3, b=20)
    query = asked.pop("query", "问题")
    one = Candidate(row, **candidate)
    choices = choose(stored, [one], Question(query, **asked), query, ())
    size = stored.sizes[row.key]
    assert choices == [Choice(one, outline_of(size), passage_of(row, number, size))]
    assert choices[0].digest == digest_of(f"text {number}")
    assert stored.batches == [{row.key: numbers} for numbers in batches]
    assert max(map(len, batches)) <= FIRST_PARTS


def test_section_of_the_best_chunk_is_named() -> None:
    one = Candidate(A, part=2, section="甲")
    (choice,) = choose(Stored(a=3), [one], Question("q"), "q", ())
    assert choice.passage == passage_of(A, 2, 3, "甲")


def test_primary_and_supplement_are_read_in_one_batch() -> None:
    stored = Stored(a=3, b=20)
    candidates = [Candidate(A, "text 2"), Candidate(B, part=11)]
    choices = choose(stored, candidates, Question("q"), "q", ())
    assert [choice.passage for choice in choices] == [
        passage_of(A, 2, 3),
        passage_of(B, 11, 20),
    ]
    assert stored.batches == [{"a": [1, 2, 3], "b": [11]}]


@pytest.mark.parametrize("asked", [{"part": 2}, {"section_title": "章 2"}])
def test_section_and_part_are_the_first_candidates_alone(asked: dict[str, Any]) -> None:
    stored = Stored(a=3, b=20)
    candidates = [Candidate(A, "x"), Candidate(B, part=11)]
    (choice,) = choose(stored, candidates, Question("q", **asked), "q", ())
    assert (choice.candidate, choice.passage) == (candidates[0], passage_of(A, 2, 3))


def test_section_goes_on_where_reading_stopped() -> None:
    read = {digest_of("text 1")}
    one = Candidate(A)
    outline = outline_of(3)

    def contents(wanted: object) -> Contents:
        whole = Outline(3, (Section("全", 1, 1, 3),), {}, outline.digests)
        return {"a": (whole, {n: part_of(n) for n in (1, 2, 3)})}

    (choice,) = choose(contents, [one], Question("q", section_title="全"), "q", read)
    assert choice.passage == Passage(A, "text 2", "全", 2, 3, ("全",))


@pytest.mark.parametrize(
    ("asked", "missing"),
    [({"part": 4}, NoPart(4)), ({"section_title": "无"}, NoSection("无"))],
)
def test_what_there_is_not_is_said_and_has_no_text(asked: dict[str, Any], missing: object) -> None:
    one = Candidate(A)
    choices = choose(Stored(a=3), [one], Question("q", **asked), "q", ())
    assert choices == [Choice(one, outline_of(3), missing)]  # type: ignore[arg-type]
    assert choices[0].digest == ""


def test_no_candidates_read_nothing() -> None:
    stored = Stored()
    assert choose(stored, [], Question("q"), "q", ()) == []
    assert stored.batches == []


def test_version_that_is_gone_has_moved() -> None:
    with pytest.raises(Moved) as moved:
        choose(Stored(a=3), [Candidate(A), Candidate(B, part=1)], Question("q"), "q", ())
    assert moved.value.keys == {"b"}


def test_part_that_is_gone_has_moved() -> None:
    def torn(wanted: object) -> Contents:
        return {"a": (outline_of(3), {})}

    with pytest.raises(Moved) as moved:
        choose(torn, [Candidate(A, part=2)], Question("q"), "q", ())
    assert list(moved.value.keys) == ["a"]
