"""The sentences agents read: true, short, and in both languages alike."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kb import wording
from kb.grading import Level

LANGUAGES: list[wording.Language] = ["zh", "en"]


def test_both_languages_have_the_same_hints_and_sentences() -> None:
    assert wording._HINTS["zh"].keys() == wording._HINTS["en"].keys() == set(Level)
    assert wording._SENTENCES["zh"].keys() == wording._SENTENCES["en"].keys()


@pytest.mark.parametrize(
    ("domain", "language", "message"),
    [
        (None, "zh", "知识库中没有与此问题相关的内容。换关键词重试不会有结果，请勿重复检索。"),
        (
            "支付{0}",
            "zh",
            "领域“支付{0}”中没有与此问题相关的内容（其他领域未检索）。"
            "换关键词重试不会有结果，请勿重复检索。",
        ),
        (
            None,
            "en",
            "Nothing in the knowledge base answers this question. Other keywords will not change"
            " that: do not search again.",
        ),
        (
            "payment",
            "en",
            'Nothing in the domain "payment" answers this question (other domains were not'
            " searched). Other keywords will not change that: do not search again.",
        ),
    ],
)
def test_not_found_states_what_was_searched_and_says_not_to_rephrase(
    domain: str | None, language: wording.Language, message: str
) -> None:
    assert wording.not_found(domain, language) == message


@pytest.mark.parametrize(
    ("sections", "parts", "message"),
    [
        ([], [], "本会话已返回过该内容，不再重复。该文档已全部读完。"),
        ([], [2], "本会话已返回过该内容，不再重复。未读：第 2 部分。"),
        (["甲"], [2, 3, 5], "本会话已返回过该内容，不再重复。未读：第 2-3, 5 部分（甲）。"),
        (
            ["甲" * 30, "乙"],
            [1, 3, 5, 7, 9],
            "本会话已返回过该内容，不再重复。未读：第 1, 3, 5, 7, … 部分（"
            + "甲" * 23
            + "…、乙）。",
        ),
    ],
    ids=["nothing left", "a part", "parts and a section", "shortened"],
)
def test_repeat_names_what_is_left(sections: list[str], parts: list[int], message: str) -> None:
    assert wording.already_read(sections, parts, "zh") == message


def test_repeat_in_english() -> None:
    assert wording.already_read(["Refunds"], [2, 3], "en") == (
        "Already given in this session; not repeated. Not read yet: part 2-3 (Refunds)."
    )
    assert wording.already_read([], [], "en") == (
        "Already given in this session; not repeated. The document is read whole."
    )


@given(
    sections=st.lists(st.text(min_size=1, max_size=300), max_size=40),
    parts=st.lists(st.integers(1, 5000), min_size=1, unique=True).map(sorted),
    language=st.sampled_from(LANGUAGES),
)
def test_repeat_stays_short_whatever_is_left(
    sections: list[str], parts: list[int], language: wording.Language
) -> None:
    assert len(wording.already_read(sections, parts, language)) <= 140


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("level", list(Level))
def test_whole_answer_without_text_costs_under_400_characters(
    language: wording.Language, level: Level
) -> None:
    answer = {
        "found": True,
        "primary": None,
        "supplement": None,
        "relevanceLevel": level,
        "completenessHint": wording.hint(level, language),
        "retrievedDomainsThisSession": ["infrastructure"],
        "message": wording.already_read(["A section of some length"] * 9, [2, 3], language),
        "degraded": [],
        "invocationId": "00000000-0000-0000-0000-000000000000",
    }
    assert len(json.dumps(answer, ensure_ascii=False, separators=(",", ":"))) < 400


def test_missing_section_lists_those_there_are_as_they_are_spelled() -> None:
    assert wording.no_section("退{款}", ["甲" * 30, "乙{x}"], "zh") == (
        "该文档没有名为“退{款}”的章节。现有章节：" + "甲" * 30 + "、乙{x}。"
    )
    assert wording.no_section("x", [], "zh") == "该文档没有名为“x”的章节，也没有其他章节。"
    assert wording.no_section("x", ["A", "B"], "en") == (
        'The document has no section named "x". It has: A, B.'
    )
    assert wording.no_section("x", [], "en") == (
        'The document has no section named "x", nor any other.'
    )


def test_missing_section_lists_fifty_at_most() -> None:
    message = wording.no_section("x", [f"s{n}" for n in range(60)], "zh")
    assert message.endswith("、s49等。")


def test_missing_part_and_repeated_supplement() -> None:
    assert wording.no_part(9, 3, "zh") == "该文档没有第 9 部分，共 3 部分。"
    assert wording.no_part(9, 3, "en") == "The document has no part 9; it has 3."
    assert wording.supplement_read("zh") == "补充内容本会话已返回过，不再重复。"
    assert wording.supplement_read("en") == (
        "The supplement was given in this session before; it is not repeated."
    )
