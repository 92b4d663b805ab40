"""The acceptance lines of the functional specification, a test each."""

import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from kb.grading import SPECIFIED, Level, Profile, grade, similarity
from kb.settings import LookupSettings, read_settings
from kb.stores.invocation_table import Invocation
from kb.stores.session_table import SessionMemory
from kb.wording import hint

from tests.api_client import ApiClient
from tests.conftest import System, markdown
from tests.wire import Wire, connect_timeout

DISK = markdown("磁盘告警处理", "[磁盘告警, disk full]", "# 处理\n\n清理旧日志，再扩容。")
REFUND = markdown("退款流程", "[退款流程]", "# 步骤\n\n先查订单，再发起退款。")
HINTS = {
    Level.PRECISE: "知识库中不存在比上述结果更精准的文档",
    Level.HIGHLY_RELEVANT: "当前结果已高度相关，继续检索不太可能找到更精准的文档",
    Level.REFERENCE: "当前结果为相关参考，如需更精准信息请明确缺少的具体维度",
}


@pytest.fixture
def memory(system: System) -> SessionMemory:
    return system.new_lookup().sessions("caller")


@pytest.mark.parametrize(
    ("distance", "expected"),
    [(0, 1.0), (1.0, 0.5), (2.0, 0.0), (3.0, 0.0)],
    ids=["0", "1.0", "2.0", "3.0"],
)
def test_l2_score_becomes_similarity(distance: float, expected: float) -> None:
    assert similarity(distance, SPECIFIED.max_l2) == expected


def test_settings_override_the_default(system: System) -> None:
    overridden = system.environment | {
        "RETRIEVAL_NORMALIZATION_MAX_L2_DISTANCE": "4.0",
        "RETRIEVAL_HIGHLY_RELEVANT_THRESHOLD": "0.8",
        "RETRIEVAL_REFERENCE_THRESHOLD": "0.6",
    }
    settings = read_settings(LookupSettings, overridden)
    assert settings.profile == Profile(max_l2=4.0, highly_relevant=0.8, reference=0.6)
    assert similarity(1.0, settings.max_l2) == 0.75
    assert grade(0, 0.75, settings.profile) is Level.REFERENCE
    assert grade(0, 0.55, settings.profile) is None


@pytest.mark.parametrize(
    ("matches", "evidence", "level"),
    [
        (1, None, Level.PRECISE),
        (2, 0.8, Level.HIGHLY_RELEVANT),
        (0, 0.8, Level.HIGHLY_RELEVANT),
        (3, 0.6, Level.REFERENCE),
        (0, 0.4, None),
    ],
    ids=["1", "2 with 0.8", "0 with 0.8", "3 with 0.6", "0 with 0.4"],
)
def test_match_count_and_similarity_give_the_level(
    matches: int, evidence: float | None, level: Level | None
) -> None:
    assert grade(matches, evidence, SPECIFIED) is level


def test_each_level_has_its_hint() -> None:
    assert {level: hint(level, "zh") for level in Level} == HINTS


def test_marked_document_domain_and_list_are_read(memory: SessionMemory) -> None:
    assert memory.mark_retrieved("s1", "infrastructure", "a.md") is True
    assert memory.is_doc_retrieved("s1", "a.md") is True
    assert memory.is_already_retrieved("s1", "a.md") is True
    assert memory.is_domain_retrieved("s1", "infrastructure") is True
    assert memory.retrieved_domains("s1") == ["infrastructure"]
    assert memory.is_doc_retrieved("s1", "b.md") is False
    assert memory.is_domain_retrieved("s1", "api") is False
    assert memory.retrieved_domains("s2") == []


def test_second_domain_is_appended_in_order(memory: SessionMemory) -> None:
    memory.mark_retrieved("s1", "infrastructure", "a.md")
    memory.mark_retrieved("s1", "api", "b.md")
    memory.mark_retrieved("s1", "infrastructure", "0.md")
    assert memory.retrieved_domains("s1") == ["infrastructure", "api"]


def test_clear_session_empties_all(memory: SessionMemory) -> None:
    for number in range(30):  # more than one batch of DynamoDB's
        memory.mark_retrieved("s1", f"domain {number}", f"{number}.md")
    memory.mark_retrieved("s2", "api", "b.md")
    memory.clear_session("s1")
    assert memory.retrieved_domains("s1") == []
    assert memory.is_doc_retrieved("s1", "0.md") is False
    assert memory.is_domain_retrieved("s1", "domain 0") is False
    assert memory.retrieved_domains("s2") == ["api"]


def test_marks_from_32_threads_lose_nothing(memory: SessionMemory) -> None:
    def mark(number: int) -> list[bool]:
        return [
            memory.mark_retrieved("s1", f"domain {number}", f"{number}.md"),
            memory.mark_retrieved("s1", "shared", "shared.md", part=f"part {number}"),
        ]

    with ThreadPoolExecutor(32) as threads:
        marked = list(threads.map(mark, range(32)))
    contents = memory.read("s1")
    assert marked == [[True, True]] * 32
    assert contents.documents.keys() == {"shared.md", *(f"{n}.md" for n in range(32))}
    assert contents.documents["shared.md"].parts == {f"part {n}" for n in range(32)}
    assert set(contents.domains) == {"shared", *(f"domain {n}" for n in range(32))}


def test_every_answer_has_the_three_fields(system: System, api: ApiClient) -> None:
    system.ingest("ops/disk.md", DISK)
    answers = {
        "found": api.ask("磁盘告警", session_id="s1"),
        "intercepted": api.ask("磁盘告警", session_id="s1"),
        "not found": api.ask("qqqq wwww", session_id="s1"),
        "without session": api.ask("磁盘告警"),
    }
    fields = ("relevanceLevel", "completenessHint", "retrievedDomainsThisSession")
    assert {name: [answer[f] for f in fields] for name, answer in answers.items()} == {
        "found": ["PRECISE", HINTS[Level.PRECISE], ["ops"]],
        "intercepted": ["PRECISE", HINTS[Level.PRECISE], ["ops"]],
        "not found": [None, None, ["ops"]],
        "without session": ["PRECISE", HINTS[Level.PRECISE], []],
    }


def test_intercepted_answer_carries_message_and_list(system: System, api: ApiClient) -> None:
    system.ingest("ops/disk.md", DISK)
    first = api.ask("磁盘告警", session_id="s1")
    second = api.ask("磁盘告警", session_id="s1")
    assert first["primary"]["content"] == "# 处理\n\n清理旧日志，再扩容。"
    assert first["message"] is None
    assert second == first | {
        "primary": None,
        "message": "本会话已返回过该内容，不再重复。该文档已全部读完。",
        "retrievedDomainsThisSession": ["ops"],
        "invocationId": second["invocationId"],
    }


def test_second_answer_of_a_session_costs_under_400_characters(
    system: System, api: ApiClient
) -> None:
    sections = [f"## 第 {n} 个很长的章节标题，说明第 {n} 步\n\n{'内容' * 700}" for n in range(12)]
    system.ingest("ops/disk.md", markdown("磁盘告警", "[磁盘告警]", "\n\n".join(sections)))
    first = api.post('{"query": "磁盘告警", "session_id": "s1"}')
    second = api.post('{"query": "磁盘告警", "session_id": "s1"}')
    assert len(first.text) > 1000
    assert second.json["primary"] is None
    assert second.json["supplement"] is None
    assert second.json["message"] == (
        "本会话已返回过该内容，不再重复。未读：第 2-12 部分（第 1 个很长的章节标题，说明第 1 步、"
        "第 2 个很长的章节标题，说明第 2 步、第 3 个很长的章节标题，说明第 3 步等）。"
    )
    assert len(second.text) < 400


def test_another_session_and_another_caller_are_not_affected(
    system: System, api: ApiClient
) -> None:
    system.ingest("ops/disk.md", DISK)
    first = api.ask("磁盘告警", session_id="s1")
    api.ask("磁盘告警", session_id="s1")
    other_session = api.ask("磁盘告警", session_id="s2")
    other_caller = api.ask("磁盘告警", caller="another", session_id="s1")
    for answer in (other_session, other_caller):
        assert answer == first | {"invocationId": answer["invocationId"]}


def test_log_row_has_both_columns_and_all_details(system: System, api: ApiClient) -> None:
    system.ingest("ops/disk.md", DISK)
    first = api.ask("磁盘告警", session_id="s1")
    second = api.ask("磁盘告警", session_id="s1")
    rows = {row.invocation_id: row for row in api.parts.log.read_all()}
    row = rows[second["invocationId"]]
    assert (row.tool_name, row.session_id, row.query) == ("lookup_knowledge", "s1", "磁盘告警")
    assert (row.relevance_level, row.dedup_reason) == ("PRECISE", "DOC_ALREADY_RETRIEVED")
    assert (row.found, row.created_at[:19]) == (True, "2027-01-15T08:00:00")
    assert row.duration_ms == 0  # the tests' clock moves by nanoseconds
    details = json.loads(row.retrieval_details)
    assert details == {
        "l1_top_similarity": None,
        "l1_evidence": None,
        "relevance_level": "PRECISE",
        "completeness_hint": HINTS[Level.PRECISE],
        "retrieved_domains": ["ops"],
        "dedup_reason": "DOC_ALREADY_RETRIEVED",
        "l0_match_count": 1,
        "sources": [],
        "degraded": [],
        "thresholds": {
            "max_l2": 2.0,
            "highly_relevant": 0.75,
            "reference": 0.5,
            "calibration": None,
        },
        "embedding_model": "hashing-test-model",
        "error": None,
    }
    before = rows[first["invocationId"]]
    assert before.dedup_reason is None
    assert json.loads(before.retrieval_details) == details | {
        "sources": ["ops/disk.md"],
        "dedup_reason": None,
    }


def test_log_row_without_the_columns_still_reads(system: System) -> None:
    parts = system.new_lookup()
    system.cloud.client("dynamodb").put_item(
        TableName=system.environment["INVOCATION_TABLE"],
        Item={
            "invocation_id": {"S": "old"},
            "tool_name": {"S": "lookup_knowledge"},
            "query": {"S": "磁盘告警"},
            "created_at": {"S": "2020-01-01T00:00:00+00:00"},
            "duration_ms": {"N": "12"},
            "found": {"BOOL": True},
            "retrieval_details": {"S": "{}"},
        },
    )
    assert list(parts.log.read_all()) == [
        Invocation(
            invocation_id="old",
            session_id=None,
            query="磁盘告警",
            created_at="2020-01-01T00:00:00+00:00",
            duration_ms=12,
            found=True,
            retrieval_details="{}",
            relevance_level=None,
            dedup_reason=None,
        )
    ]


def test_levels_are_counted_by_the_question_as_it_stands(system: System, api: ApiClient) -> None:
    system.ingest("ops/disk.md", DISK)
    for question in ("磁盘告警", "磁盘告警", "qqqq wwww"):
        api.ask(question)
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE tool_invocation (tool_name TEXT, relevance_level TEXT)")
    database.executemany(
        "INSERT INTO tool_invocation VALUES (?, ?)",
        [(row.tool_name, row.relevance_level) for row in api.parts.log.read_all()],
    )
    counted = database.execute(
        "SELECT relevance_level, COUNT(*) FROM tool_invocation"
        " WHERE tool_name='lookup_knowledge' GROUP BY relevance_level"
    ).fetchall()
    database.close()
    assert sorted(counted, key=str) == [("PRECISE", 2), (None, 1)]


def test_no_answer_of_any_route_names_a_score(system: System, api: ApiClient) -> None:
    system.ingest("ops/disk.md", DISK)
    system.ingest("pay/refund.md", REFUND)
    system.ingest("pay/copy.md", REFUND)
    replies = [
        *(
            api.ask(q, session_id="s1")
            for q in ("磁盘告警", "磁盘告警", "退款流程 订单 退款", "qq")
        ),
        api.ask("磁盘告警", section_title="没有"),
        api.ask("磁盘告警", part=9),
        api.get("/documents").json,
        api.get("/document", key="pay/copy.md").json,
        api.get("/domains").json,
        api.get("/session", id="s1").json,
        api.get("/health").json,
        api.delete("/session", id="s1").json,
        api.get("/document", key="none.md").json,
        api.post("{}").json,
    ]
    names = {name.lower() for reply in replies for name in keys_of(reply)}
    assert {"found", "documents", "metadata", "parts", "error"} <= names
    forbidden = ("score", "similarity", "evidence", "distance")
    assert [name for name in names for word in forbidden if word in name] == []


def test_document_whose_frontmatter_fails_is_found_by_l1_and_says_where(
    system: System, api: ApiClient
) -> None:
    text = "---\ntitle: [磁盘\nkeywords: 磁盘\n---\n\n# 扩容\n\n磁盘 扩容 步骤 清理 日志\n"
    system.ingest("ops/disk.md", text)
    answer = api.ask("磁盘 扩容 步骤 清理 日志")
    (listed,) = api.get("/documents").json["documents"]
    assert answer["found"] is True
    assert answer["supplement"]["source"] == "ops/disk.md"
    assert listed["status"] == "semantic_only"
    assert "line 3" in listed["reason"]
    assert "column" in listed["reason"]


def test_catalog_that_cannot_be_loaded_leaves_l1_working(
    wire: Wire, system: System, api: ApiClient
) -> None:
    system.ingest("ops/disk.md", DISK)
    wire.fail("CatalogTable", connect_timeout)
    answer = api.ask("清理旧日志，再扩容。 处理 磁盘告警处理", session_id="s1")
    assert answer["degraded"] == ["keywords"]
    assert answer["primary"] is None
    assert answer["supplement"]["content"] == "# 处理\n\n清理旧日志，再扩容。"
    assert answer["supplement"]["source"] == "ops/disk.md"


def keys_of(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for name, inner in value.items():
                yield name
                yield from keys_of(inner)
        case list():
            for inner in value:
                yield from keys_of(inner)
