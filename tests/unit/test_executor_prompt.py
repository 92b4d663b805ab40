"""The executor's prompt: four constraints on retrieval, in both languages, and no knowledge map."""

from importlib.resources import files

import pytest

PROMPTS = {
    language: " ".join(
        files("kb").joinpath("prompts", f"executor.{language}.md").read_text("utf-8").split()
    )
    for language in ("zh", "en")
}
LANGUAGES = pytest.mark.parametrize("language", ["zh", "en"])


def constraint(language: str, number: int) -> str:
    """The text of one of the four."""
    heading = {"zh": "## 四条检索约束", "en": "## Four constraints"}[language]
    text = PROMPTS[language].partition(heading)[2]
    start = text.index(f"{number}. **")
    end = text.find(f"{number + 1}. **")
    return text[start : end if end > 0 else None]


def test_first_constraint_is_to_judge_whether_a_call_would_repeat() -> None:
    zh, en = constraint("zh", 1), constraint("en", 1)
    assert "先判断是否重复" in zh
    assert "每次调用前" in zh
    assert "Judge first whether this would repeat" in en
    assert "Before each call" in en
    for text in (zh, en):
        assert "retrievedDomainsThisSession" in text


def test_second_constraint_is_not_to_search_again_with_other_keywords() -> None:
    zh, en = constraint("zh", 2), constraint("en", 2)
    assert "禁止换关键词重新检索" in zh
    assert "使用已有内容" in zh
    assert "do not search again with other keywords" in en
    assert "Go on with what you have" in en
    for text in (zh, en):
        assert "`message`" in text
        assert "`found`" in text


def test_third_constraint_is_the_lawful_exit() -> None:
    zh, en = constraint("zh", 3), constraint("en", 3)
    assert "不查全不会被追责，重复检索才会被追责" in zh
    assert "写明缺少什么" in zh
    assert "Nobody is blamed for an incomplete search; only repeated retrieval is penalised" in en
    assert "state what is missing" in en


@LANGUAGES
def test_fourth_constraint_is_to_follow_level_and_hint(language: str) -> None:
    text = constraint(language, 4)
    assert "`relevanceLevel`" in text
    assert "`completenessHint`" in text
    for level in ("`PRECISE`", "`HIGHLY_RELEVANT`", "`REFERENCE`", "`found: false`"):
        assert level in text


@LANGUAGES
def test_there_is_no_knowledge_map_and_no_call_for_everything(language: str) -> None:
    text = PROMPTS[language]
    assert not any(word in text for word in ("知识地图", "knowledge map", "payment/", ".md"))
    unless = {"zh": "需要外部资料时才调用", "en": "Call it when you need information from outside"}
    assert unless[language] in text
    assert not any(word in text for word in ("所有外部信息", "all outside information"))


@LANGUAGES
def test_every_field_that_is_named_exists(language: str) -> None:
    from kb.api import LookupRequest

    named = {"query", "session_id", "section_title", "part", "request_id", "force"}
    assert named <= LookupRequest.model_fields.keys()
    for field in named:
        assert f"`{field}" in PROMPTS[language]


@LANGUAGES
def test_an_outage_is_to_be_retried_and_not_rephrased(language: str) -> None:
    last = PROMPTS[language].rpartition("503")[2]
    assert {"zh": "不要改写问题", "en": "not with another one"}[language] in last
