"""Long documents are read whole, each text once a session, unless it is asked for again."""

import json
from typing import Any

import pytest

from tests.api_client import ApiClient
from tests.conftest import System, markdown

PARAGRAPHS = [f"第 {n} 段。" + f"内容{n}" * 320 for n in range(1, 13)]
ONE_HEADING = "# 全文\n\n" + "\n\n".join(PARAGRAPHS)
"""Over 10,000 characters under one heading."""
SECTIONS = "\n\n".join(
    f"## {title}\n\n{words}\n\n{'正文' * 700}"
    for title, words in [
        ("概述", "总的说明"),
        ("退款步骤", "先查订单"),
        ("常见错误", "E1002 表示余额不足"),
        ("联系人", "值班表"),
    ]
)


def log_reasons(api: ApiClient) -> dict[str, str | None]:
    return {row.invocation_id: row.dedup_reason for row in api.parts.log.read_all()}


def reason_of(api: ApiClient, answer: Any) -> str | None:
    return log_reasons(api)[answer["invocationId"]]


def test_document_under_one_heading_is_read_whole_each_part_once(
    system: System, api: ApiClient
) -> None:
    system.ingest("a/long.md", markdown("全文", "[长文]", ONE_HEADING))
    answers = [api.ask("长文", session_id="s1", section_title="全文") for _ in range(10)]
    texts = [answer["primary"]["content"] for answer in answers if answer["primary"]]
    parts = answers[0]["primary"]["parts"]
    assert len(ONE_HEADING) > 10_000
    assert parts == 8
    assert [answer["primary"]["part"] for answer in answers[:parts]] == list(range(1, parts + 1))
    assert "".join("".join(texts).split()) == "".join(ONE_HEADING.split())
    assert [answer["primary"] for answer in answers[parts:]] == [None, None]
    assert answers[-1]["message"] == "本会话已返回过该内容，不再重复。该文档已全部读完。"
    assert [reason_of(api, answers[n]) for n in (0, 7, 8)] == [None, None, "DOC_ALREADY_RETRIEVED"]


def test_answer_tells_of_what_there_is_to_read(system: System, api: ApiClient) -> None:
    system.ingest(
        "pay/refund.md",
        markdown(
            "退款",
            "[退款]",
            SECTIONS,
            sections="{steps: 退款步骤, lost: 没有的标题}",
            version="1.10",
            author="'007'",
            lastUpdated="2026-01-02",
            category="支付",
        ),
    )
    answer = api.ask("退款", section_title="steps")
    assert answer | {"invocationId": None} == {
        "found": True,
        "primary": {
            "content": f"## 退款步骤\n\n先查订单\n\n{'正文' * 700}",
            "source": "pay/refund.md",
            "title": "退款",
            "section": "退款步骤",
            "part": 2,
            "parts": 4,
            "matchType": "exact_L0",
            "confidence": "high",
            "truncated": True,
            "availableSections": ["steps", "概述", "退款步骤", "常见错误", "联系人"],
            "updatedAt": "2026-01-02",
            "version": "1.10",
            "author": "007",
        },
        "supplement": None,
        "relevanceLevel": "PRECISE",
        "completenessHint": "知识库中不存在比上述结果更精准的文档",
        "retrievedDomainsThisSession": [],
        "message": None,
        "degraded": [],
        "invocationId": None,
    }


@pytest.mark.parametrize(
    ("asked", "part", "section"),
    [
        ({"part": 3}, 3, "常见错误"),
        ({"section_title": "退款步骤"}, 2, "退款步骤"),
        ({"section_title": "错误"}, 3, "常见错误"),
        ({"section_title": "## 联系人 "}, 4, "联系人"),
        ({"section_title": "概述", "part": 4}, 4, "联系人"),
    ],
    ids=["part", "title", "part of a title", "with marks", "part before title"],
)
def test_section_and_part_choose_what_is_read(
    system: System, api: ApiClient, asked: dict[str, Any], part: int, section: str
) -> None:
    system.ingest("pay/refund.md", markdown("退款", "[退款]", SECTIONS))
    primary = api.ask("退款", **asked)["primary"]
    assert (primary["part"], primary["section"]) == (part, section)
    assert primary["content"].startswith(f"## {section}\n")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"section_title": "没有"},
            "该文档没有名为“没有”的章节。现有章节：概述、退款步骤、常见错误、联系人。",
        ),
        ({"part": 5}, "该文档没有第 5 部分，共 4 部分。"),
        ({"part": 1_000_000}, "该文档没有第 1000000 部分，共 4 部分。"),
    ],
)
def test_missing_section_or_part_is_a_message_and_marks_nothing(
    system: System, api: ApiClient, asked: dict[str, Any], message: str
) -> None:
    system.ingest("pay/refund.md", markdown("退款", "[退款]", SECTIONS))
    answer = api.ask("退款", session_id="s1", **asked)
    assert (answer["found"], answer["primary"], answer["message"]) == (True, None, message)
    assert answer["relevanceLevel"] == "PRECISE"
    assert answer["retrievedDomainsThisSession"] == []
    assert reason_of(api, answer) is None
    assert api.get("/session", id="s1").json["documents"] == []


@pytest.mark.parametrize(
    ("query", "keywords", "part"),
    [
        ("e1002", "[E1002]", 3),
        ("先查订单", "[先查订单]", 2),
        ("常见错误", "[常见错误]", 3),
        ("值班表", "[值班表]", 4),
        ("退款", "[退款]", 2),
        ("xyz", "[xyz]", 1),
    ],
    ids=["word of the text", "phrase", "title", "in the last", "part of a title", "nowhere"],
)
def test_single_strong_match_gives_the_part_that_holds_what_was_asked(
    system: System, api: ApiClient, query: str, keywords: str, part: int
) -> None:
    system.ingest("pay/refund.md", markdown("手册", keywords, SECTIONS))
    system.embedder.failure = AssertionError("L1 is not to be asked")
    assert api.ask(query)["primary"]["part"] == part


def test_section_far_behind_the_first_parts_is_found_too(system: System, api: ApiClient) -> None:
    far = [f"## 章 {n}\n\n{'正文' * 700}" for n in range(1, 13)]
    system.ingest("pay/book.md", markdown("手册", "[章 11, 手册]", "\n\n".join(far)))
    by_question = api.ask("章 11")["primary"]
    by_title = api.ask("手册", section_title="章 12")["primary"]
    assert (by_question["part"], by_question["section"]) == (11, "章 11")
    assert (by_title["part"], by_title["section"]) == (12, "章 12")


def test_repeat_names_what_is_left_and_another_part_is_new(system: System, api: ApiClient) -> None:
    system.ingest("pay/refund.md", markdown("退款", "[退款]", SECTIONS))
    api.ask("退款", session_id="s1", part=1)
    repeat = api.ask("退款", session_id="s1", part=1)
    other = api.ask("退款", session_id="s1", section_title="常见错误")
    assert (repeat["primary"], repeat["message"]) == (
        None,
        "本会话已返回过该内容，不再重复。未读：第 2-4 部分（退款步骤、常见错误、联系人）。",
    )
    assert reason_of(api, repeat) == "SECTION_ALREADY_RETRIEVED"
    assert (other["primary"]["part"], reason_of(api, other)) == (3, None)
    again = api.ask("退款", session_id="s1", part=3)
    assert again["message"] == (
        "本会话已返回过该内容，不再重复。未读：第 2, 4 部分（退款步骤、联系人）。"
    )


def test_forced_text_is_given_again_and_logged_so(system: System, api: ApiClient) -> None:
    system.ingest("pay/refund.md", markdown("退款", "[退款]", SECTIONS))
    first = api.ask("退款", session_id="s1", section_title="退款步骤", force=True)
    forced = api.ask("退款", session_id="s1", section_title="退款步骤", force=True)
    repeat = api.ask("退款", session_id="s1", section_title="退款步骤")
    assert reason_of(api, first) is None
    assert forced == first | {"invocationId": forced["invocationId"]}
    assert reason_of(api, forced) == "FORCED"
    assert (repeat["primary"], reason_of(api, repeat)) == (None, "SECTION_ALREADY_RETRIEVED")


def test_forced_section_begins_at_its_beginning(system: System, api: ApiClient) -> None:
    system.ingest("a/long.md", markdown("全文", "[长文]", ONE_HEADING))
    parts = [
        api.ask("长文", session_id="s1", section_title="全文", force=force)["primary"]["part"]
        for force in (False, False, True, False)
    ]
    assert parts == [1, 2, 1, 3]


def test_retry_of_a_request_gets_the_same_text(system: System, api: ApiClient) -> None:
    system.ingest("a/long.md", markdown("全文", "[长文]", ONE_HEADING))
    asked = {"session_id": "s1", "section_title": "全文"}
    api.ask("长文", **asked)
    first = api.ask("长文", **asked, request_id="r1")
    retry = api.ask("长文", **asked, request_id="r1")
    other = api.ask("长文", **asked, request_id="r2")
    late_retry = api.ask("长文", **asked, request_id="r1")
    assert first["primary"]["part"] == 2
    for again in (retry, late_retry):
        assert again == first | {"invocationId": again["invocationId"]}
        assert reason_of(api, again) is None
    assert other["primary"]["part"] == 3


def test_request_id_of_another_session_or_caller_gives_nothing(
    system: System, api: ApiClient
) -> None:
    system.ingest("ops/disk.md", markdown("磁盘", "[磁盘告警]", "清理旧日志。"))
    for caller, session in (("a", "s1"), ("a", "s2"), ("b", "s1")):
        api.ask("磁盘告警", caller, session_id=session, request_id=f"{caller} {session}")
    stolen = api.ask("磁盘告警", "a", session_id="s1", request_id="a s2")
    assert stolen["primary"] is None


def test_text_that_a_request_did_not_get_its_retry_does_not_get(
    system: System, api: ApiClient
) -> None:
    system.ingest("ops/disk.md", markdown("磁盘", "[磁盘告警]", "清理旧日志。"))
    api.ask("磁盘告警", session_id="s1")
    withheld = api.ask("磁盘告警", session_id="s1", request_id="r1")
    retry = api.ask("磁盘告警", session_id="s1", request_id="r1")
    assert (withheld["primary"], retry["primary"]) == (None, None)


def test_changed_document_is_given_again_and_logged_so(system: System, api: ApiClient) -> None:
    system.ingest("ops/disk.md", markdown("磁盘", "[磁盘告警]", "清理旧日志。"))
    api.ask("磁盘告警", session_id="s1")
    system.ingest("ops/disk.md", markdown("磁盘", "[磁盘告警]", "先扩容。"))
    system.clock.advance(2)
    changed = api.ask("磁盘告警", session_id="s1")
    repeat = api.ask("磁盘告警", session_id="s1")
    assert changed["primary"]["content"] == "先扩容。"
    assert reason_of(api, changed) == "CONTENT_CHANGED"
    assert (repeat["primary"], reason_of(api, repeat)) == (None, "DOC_ALREADY_RETRIEVED")


def test_part_that_stayed_the_same_in_a_changed_document_is_not_given_again(
    system: System, api: ApiClient
) -> None:
    system.ingest("pay/refund.md", markdown("退款", "[退款]", SECTIONS))
    for part in (1, 2):
        api.ask("退款", session_id="s1", part=part)
    changed = SECTIONS.replace("先查订单", "先查流水")
    system.ingest("pay/refund.md", markdown("退款", "[退款]", changed))
    system.clock.advance(2)
    same = api.ask("退款", session_id="s1", part=1)
    other = api.ask("退款", session_id="s1", part=2)
    assert (same["primary"], same["message"]) == (
        None,
        "本会话已返回过该内容，不再重复。未读：第 2-4 部分（退款步骤、常见错误、联系人）。",
    )
    assert other["primary"]["content"].startswith("## 退款步骤\n\n先查流水")
    assert reason_of(api, other) == "CONTENT_CHANGED"


def test_expired_session_gets_the_text_again(system: System, api: ApiClient) -> None:
    system.ingest("ops/disk.md", markdown("磁盘", "[磁盘告警]", "清理旧日志。"))
    first = api.ask("磁盘告警", session_id="s1")
    system.clock.advance(api.parts.settings.session_ttl - 1)
    assert api.ask("磁盘告警", session_id="s1")["primary"] is None
    system.clock.advance(2)
    again = api.ask("磁盘告警", session_id="s1")
    assert again == first | {"invocationId": again["invocationId"]}
    assert api.ask("磁盘告警", session_id="s1")["primary"] is None


@pytest.fixture
def two_documents(system: System) -> System:
    """`alpha beta gamma delta` matches one document's keyword and both by meaning."""
    body = "alpha beta gamma delta"
    system.ingest("a/one.md", markdown("alpha", "[alpha beta]", f"{body} one"))
    system.ingest("b/two.md", markdown("alpha", "[zeta]", f"{body} two"))
    return system


QUESTION = "alpha beta gamma delta"


def test_primary_and_supplement_are_given_once(two_documents: System, api: ApiClient) -> None:
    first = api.ask(QUESTION, session_id="s1")
    second = api.ask(QUESTION, session_id="s1")
    assert (first["primary"]["source"], first["supplement"]["source"]) == ("a/one.md", "b/two.md")
    assert first["supplement"] == {
        "content": "alpha beta gamma delta two",
        "source": "b/two.md",
        "title": "alpha",
        "section": None,
        "part": 1,
        "parts": 1,
        "matchType": "semantic_L1",
        "updatedAt": first["supplement"]["updatedAt"],
        "version": None,
        "author": None,
    }
    assert first["retrievedDomainsThisSession"] == ["a", "b"]
    assert (second["primary"], second["supplement"]) == (None, None)
    assert second["found"] is True
    assert second["relevanceLevel"] == first["relevanceLevel"]
    assert reason_of(api, second) == "ALL_CANDIDATES_SEEN"


def test_supplement_read_before_is_left_out(two_documents: System, api: ApiClient) -> None:
    api.ask("zeta", session_id="s1")
    answer = api.ask(QUESTION, session_id="s1")
    assert answer["primary"]["source"] == "a/one.md"
    assert (answer["supplement"], answer["message"]) == (
        None,
        "补充内容本会话已返回过，不再重复。",
    )
    assert answer["retrievedDomainsThisSession"] == ["b", "a"]
    assert reason_of(api, answer) == "SUPPLEMENT_ALREADY_RETRIEVED"


def test_primary_read_before_leaves_the_supplement(two_documents: System, api: ApiClient) -> None:
    api.ask("alpha beta", session_id="s1")
    answer = api.ask(QUESTION, session_id="s1")
    assert (answer["primary"], answer["supplement"]["source"]) == (None, "b/two.md")
    assert answer["message"] == "本会话已返回过该内容，不再重复。该文档已全部读完。"
    assert reason_of(api, answer) == "DOC_ALREADY_RETRIEVED"


def test_equal_text_of_two_documents_is_given_once(system: System, api: ApiClient) -> None:
    body = "alpha beta gamma delta"
    system.ingest("a/one.md", markdown("alpha", "[alpha beta]", body))
    system.ingest("b/two.md", markdown("two", "[zeta]", body))
    first = api.ask(QUESTION, session_id="s1")
    other = api.ask("zeta", session_id="s1")
    assert (first["primary"]["content"], first["supplement"]) == (body, None)
    assert reason_of(api, first) == "SUPPLEMENT_ALREADY_RETRIEVED"
    assert (other["primary"], reason_of(api, other)) == (None, "DOC_ALREADY_RETRIEVED")


def test_without_session_everything_is_given_every_time(
    two_documents: System, api: ApiClient
) -> None:
    answers = [api.ask(QUESTION, request_id="r1", force=force) for force in (False, True, False)]
    for answer in answers:
        assert answer == answers[0] | {"invocationId": answer["invocationId"]}
    assert answers[0]["primary"] is not None
    assert answers[0]["retrievedDomainsThisSession"] == []
    assert set(log_reasons(api).values()) == {None}


def test_empty_document_answers_with_its_summary(system: System, api: ApiClient) -> None:
    system.ingest("ops/todo.md", markdown("待写", "[磁盘扩容]", "", summary="还没有写"))
    answer = api.ask("磁盘扩容", session_id="s1")
    assert answer["relevanceLevel"] == "PRECISE"
    assert (answer["primary"]["content"], answer["primary"]["parts"]) == ("还没有写", 1)
    assert answer["primary"]["availableSections"] == []


def test_english_wording_by_setting(system: System) -> None:
    system.overrides["LANGUAGE"] = "en"
    system.ingest("ops/disk.md", markdown("磁盘", "[磁盘告警]", "清理旧日志。"))
    api = ApiClient(system.new_lookup())
    answers = [api.ask(q, session_id="s1") for q in ("磁盘告警", "磁盘告警", "qqqq wwww")]
    assert [(answer["completenessHint"], answer["message"]) for answer in answers] == [
        ("Nothing in the knowledge base is more precise", None),
        (
            "Nothing in the knowledge base is more precise",
            "Already given in this session; not repeated. The document is read whole.",
        ),
        (
            None,
            "Nothing in the knowledge base answers this question. Other keywords will not change"
            " that: do not search again.",
        ),
    ]


def test_log_keeps_a_question_in_any_letters(system: System, api: ApiClient) -> None:
    question = "退款 \x00\ufeff😀 \u202e?"
    answer = api.ask(question)
    (row,) = api.parts.log.read_all()
    assert (answer["found"], row.query, row.found) == (False, question, False)
    assert json.loads(row.retrieval_details)["l1_top_similarity"] == 0.0
