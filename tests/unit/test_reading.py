"""Which part is read: by question, by section, by number, and what is left."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kb.documents import Outline, Section
from kb.reading import (
    NoPart,
    NoSection,
    Place,
    Unread,
    names_of,
    place_of_part,
    place_of_question,
    place_of_section,
    unread,
)

OUTLINE = Outline(
    parts=5,
    sections=(
        Section("支付错误码", 1, 1, 5),
        Section("超时 Timeout", 2, 1, 2),
        Section("退款", 2, 3, 4),
        Section("退款失败的处理", 3, 4, 4),
        Section("E1002", 2, 5, 5),
        Section("退款", 2, 5, 5),
    ),
    names={"refunds": "退款", "gone": "没有的标题"},
    digests=("d1", "d2", "d3", "d4", "d5"),
)
TEXTS = {
    1: "# 支付错误码\n\n总述，含 网关超时。",
    2: "继续说明 E1001 与 ABE1002X。",
    3: "## 退款\n\n退款原因 R1 与 渠道。",
    4: "### 退款失败的处理\n\n联系渠道。",
    5: "## E1002\n\n余额不足",
}


@pytest.mark.parametrize(
    ("query", "keyword", "place"),
    [
        ("退款", "退款", Place(3, "退款")),
        ("退款失败", "退款", Place(4, "退款失败的处理")),
        ("refunds", "支付", Place(3, "退款")),
        ("e1002", "e1002", Place(5, "E1002")),
        ("timeout", "支付", Place(1, "超时 Timeout")),
        ("e1001", "支付", Place(2)),
        ("退款失败的处理 步骤", "支付", Place(4, "退款失败的处理")),
        ("e1002 是什么", "支付", Place(5, "E1002")),
        ("时间", "渠道", Place(3)),
        ("时间", "没有", Place(1)),
        ("时间", "", Place(1)),
        ("支付错误码", "支付错误码", Place(1, "支付错误码")),
    ],
    ids=[
        "title is the question",
        "title contains the question",
        "author's name of a section",
        "title in other case",
        "title contains the question as a word",
        "text contains the question",
        "question contains a title, the longest counts",
        "question contains a title",
        "text contains the keyword only",
        "nothing contains anything",
        "no keyword",
        "document's own title",
    ],
)
def test_question_is_read_where_its_words_stand(query: str, keyword: str, place: Place) -> None:
    assert place_of_question(query, keyword, OUTLINE, TEXTS) == place


def test_words_inside_longer_words_do_not_count() -> None:
    outline = Outline(2, (Section("ABE1002X", 1, 1, 1), Section("Other", 1, 2, 2)), {}, ("a", "b"))
    texts = {1: "xE1002", 2: "code E1002 here"}
    assert place_of_question("e1002", "e1002", outline, texts) == Place(2)


@pytest.mark.parametrize(
    ("name", "read", "place"),
    [
        ("退款", [], Place(3, "退款")),
        ("退款", ["d3"], Place(4, "退款")),
        ("退款", ["d3", "d4"], Place(5, "退款")),
        ("退款", ["d3", "d4", "d5"], Place(3, "退款")),
        ("TIMEOUT", [], Place(1, "超时 Timeout")),
        ("失败", ["d1"], Place(4, "退款失败的处理")),
        ("Refunds", [], Place(3, "退款")),
        ("## e1002", [], Place(5, "E1002")),
        ("退款失败的…", [], Place(4, "退款失败的处理")),
        ("没有的标题", [], NoSection("没有的标题")),
        ("gone", [], NoSection("gone")),
        (" # ", [], NoSection(" # ")),
    ],
)
def test_section_is_read_from_its_first_unread_part(
    name: str, read: list[str], place: Place | NoSection
) -> None:
    assert place_of_section(name, OUTLINE, read) == place


@pytest.mark.parametrize(
    ("number", "place"),
    [(1, Place(1)), (5, Place(5)), (0, NoPart(0)), (6, NoPart(6)), (10**30, NoPart(10**30))],
)
def test_part_is_read_by_its_number(number: int, place: Place | NoPart) -> None:
    assert place_of_part(number, OUTLINE) == place


def test_names_are_the_authors_first_and_each_once() -> None:
    assert names_of(OUTLINE) == (
        "refunds",
        "支付错误码",
        "超时 Timeout",
        "退款",
        "退款失败的处理",
        "E1002",
    )


@pytest.mark.parametrize(
    ("read", "left"),
    [
        (
            [],
            Unread(
                (1, 2, 3, 4, 5), ("支付错误码", "超时 Timeout", "退款", "退款失败的处理", "E1002")
            ),
        ),
        (["d1"], Unread((2, 3, 4, 5), ("退款", "退款失败的处理", "E1002"))),
        (
            ["d3", "other"],
            Unread((1, 2, 4, 5), ("超时 Timeout", "退款失败的处理", "E1002", "退款")),
        ),
        (["d1", "d2", "d3", "d4", "d5"], Unread((), ())),
    ],
)
def test_what_is_left_is_parts_and_untouched_sections(read: list[str], left: Unread) -> None:
    assert unread(OUTLINE, read) == left


@given(
    spans=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)).map(sorted), min_size=1),
)
def test_reading_a_section_again_and_again_reads_all_its_parts_once(
    spans: list[list[int]],
) -> None:
    sections = tuple(Section(f"s{n}", 1, *span) for n, span in enumerate(spans))
    outline = Outline(9, sections, {}, tuple(f"d{n}" for n in range(1, 10)))
    first, last = spans[0]
    read: list[int] = []
    for _ in range(last - first + 1):
        place = place_of_section("s0", outline, [f"d{n}" for n in read])
        assert isinstance(place, Place)
        read.append(place.part)
    assert read == list(range(first, last + 1))
