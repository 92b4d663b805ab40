"""`sam local invoke` with every file of events/, in an order in which each has something to do."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from kb.stores.catalog_table import CatalogTable

from tests.conftest import markdown
from tests.sam_local.cloud import ENVIRONMENT, ROOT, Cloud
from tests.sam_local.conftest import Sam, notification

EVENTS = ROOT / "events"
REFUND = "payment/退款 流程+FAQ 100%.md"
FAILOVER = "infrastructure/Database Failover.MD"
OLD = "infrastructure/old-runbook.md"
COPIED = "C++ 指南.markdown"
DOCUMENTS = {
    REFUND: markdown(
        "退款流程", "[支付网关超时]", "退款失败了怎么处理？先查退款单。", lastUpdated="2025-01-02"
    ),
    FAILOVER: markdown(
        "Database failover",
        "[database failover runbook]",
        "Promote the replica.\n\n" + "Wait. " * 400 + "\n\n## Rollback\n\nPoint the clients back.",
        lastUpdated="2025-01-02",
    ),
    OLD: markdown("Old runbook", "[old runbook]", "Nobody does this any more."),
    COPIED: markdown("C++ 指南", "[C++]", "Prefer values."),
}
INGESTED = ["sqs_created", "s3_created", "sqs_deleted", "sqs_mixed"]
SESSION = ["api_lookup", "api_lookup_section", "api_session", "api_session_delete"]
ASKED = [
    "api_health",
    "api_lookup_base64",
    "api_lookup_chinese",
    "api_documents",
    "api_document",
    "api_domains",
    "api_prompt",
    "api_bad_json",
    "api_unknown_field",
]
NO_FAILURES = {"batchItemFailures": []}


@pytest.fixture(scope="module")
def returned(running: Cloud, sam: Sam, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the functions return for each event, and under "before" for what came before."""
    s3, bucket = running.stack.client("s3"), running.stack.bucket
    for key, text in DOCUMENTS.items():
        s3.put_object(Bucket=bucket, Key=key, Body=text.encode())
    before = tmp_path_factory.mktemp("events") / "before.json"
    before.write_text(json.dumps(notification(OLD)), encoding="utf-8")
    returned = {"before": sam.invoke("IngestFunction", before)}
    s3.delete_object(Bucket=bucket, Key=OLD)

    def invoke_all(function: str, names: list[str]) -> None:
        for name in names:
            returned[name] = sam.invoke(function, EVENTS / f"{name}.json")

    invoke_all("IngestFunction", INGESTED)
    with ThreadPoolExecutor() as threads:  # most of an invocation is the CLI's own start
        for done in [
            threads.submit(invoke_all, "LookupFunction", each) for each in (SESSION, ASKED)
        ]:
            done.result()
    return returned


def reply(returned: dict[str, Any], name: str) -> tuple[int, Any]:
    """Status and JSON of what the lookup function returned."""
    return returned[name]["statusCode"], json.loads(returned[name]["body"])


def refusal(name: str, message: str) -> dict[str, Any]:
    event = json.loads((EVENTS / f"{name}.json").read_text(encoding="utf-8"))
    identity = event["requestContext"]["requestId"]
    return {"error": {"code": "invalid_input", "message": message, "requestId": identity}}


def test_every_event_is_invoked(returned: dict[str, Any]) -> None:
    files = {path.stem for path in EVENTS.glob("*.json")}
    assert files == returned.keys() - {"before"} == {*INGESTED, *SESSION, *ASKED}


@pytest.mark.parametrize("name", ["before", *INGESTED])
def test_an_ingest_event_leaves_no_message_to_retry(returned: dict[str, Any], name: str) -> None:
    assert returned[name] == NO_FAILURES


def test_the_catalog_has_what_the_events_say(returned: dict[str, Any], running: Cloud) -> None:
    table = CatalogTable(running.stack.client("dynamodb"), ENVIRONMENT["CATALOG_TABLE"])
    found = {key: table.read(key) for key in DOCUMENTS}
    # Status, revision and parts: each was written once but the one that was removed.
    assert {key: row and (row.status, row.revision, row.parts) for key, row in found.items()} == {
        REFUND: ("indexed", 1, 1),
        FAILOVER: ("indexed", 1, 2),
        OLD: ("deleted", 2, 0),
        COPIED: ("indexed", 1, 1),
    }


def test_all_parts_answer(returned: dict[str, Any]) -> None:
    parts = ["keywords", "embedding", "vectors", "content", "session"]
    assert reply(returned, "api_health") == (
        200,
        {"status": "ok", "parts": dict.fromkeys(parts, "ok"), "documents": 3},
    )


def test_a_keyword_is_answered_precisely(returned: dict[str, Any]) -> None:
    status, answer = reply(returned, "api_lookup")
    identity = answer.pop("invocationId")
    content = answer["primary"].pop("content")
    assert (status, answer) == (
        200,
        {
            "found": True,
            "primary": {
                "source": FAILOVER,
                "title": "Database failover",
                "section": None,
                "part": 1,
                "parts": 2,
                "matchType": "exact_L0",
                "updatedAt": "2025-01-02",
                "version": None,
                "author": None,
                "confidence": "high",
                "truncated": True,
                "availableSections": ["Rollback"],
            },
            "supplement": None,
            "relevanceLevel": "PRECISE",
            "completenessHint": "知识库中不存在比上述结果更精准的文档",
            "retrievedDomainsThisSession": ["infrastructure"],
            "message": None,
            "degraded": [],
        },
    )
    assert content.startswith("Promote the replica.")
    assert len(identity) == 36


def test_a_section_is_read_on_in_the_same_session(returned: dict[str, Any]) -> None:
    status, answer = reply(returned, "api_lookup_section")
    primary = answer["primary"]
    assert (status, answer["relevanceLevel"]) == (200, "PRECISE")
    assert (primary["source"], primary["part"]) == (FAILOVER, 2)
    assert primary["content"].endswith("Point the clients back.")


def test_the_session_is_shown_and_cleared(returned: dict[str, Any]) -> None:
    status, session = reply(returned, "api_session")
    (document,) = session.pop("documents")
    document.pop("firstSeen")
    assert status == 200
    assert session == {"sessionId": "incident-42", "retrievedDomains": ["infrastructure"]}
    assert document == {"source": FAILOVER, "domain": "infrastructure", "partsRead": 2}
    assert reply(returned, "api_session_delete") == (
        200,
        {"sessionId": "incident-42", "cleared": True},
    )


def test_a_body_in_base64_is_a_question_too(returned: dict[str, Any]) -> None:
    status, answer = reply(returned, "api_lookup_base64")
    assert (status, answer["found"], answer["relevanceLevel"]) == (200, True, "PRECISE")
    assert answer["primary"]["source"] == REFUND


def test_a_question_is_answered_by_vectors_from_the_node(returned: dict[str, Any]) -> None:
    status, answer = reply(returned, "api_lookup_chinese")
    assert (status, answer["found"], answer["degraded"]) == (200, True, [])
    assert answer["supplement"]["source"] == REFUND
    assert answer["supplement"]["matchType"] == "semantic_L1"


def test_documents_are_listed_and_shown(returned: dict[str, Any]) -> None:
    listed = {
        "key": REFUND,
        "title": "退款流程",
        "keywords": ["支付网关超时"],
        "summary": "一句话",
        "domain": "payment",
        "status": "indexed",
        "reason": None,
        "updatedAt": "2025-01-02",
        "twin": None,
    }
    status, shown = reply(returned, "api_document")
    assert reply(returned, "api_documents") == (200, {"documents": [listed], "next": None})
    assert (status, listed.items() <= shown.items(), shown["parts"]) == (200, True, 1)


def test_domains_are_counted(returned: dict[str, Any]) -> None:
    assert reply(returned, "api_domains") == (
        200,
        {
            "domains": [
                {"domain": "default", "documents": 1, "titles": ["C++ 指南"]},
                {"domain": "infrastructure", "documents": 1, "titles": ["Database failover"]},
                {"domain": "payment", "documents": 1, "titles": ["退款流程"]},
            ]
        },
    )


def test_the_prompt_comes_as_markdown(returned: dict[str, Any]) -> None:
    text = (ROOT / "layers/shared/kb/prompts/executor.zh.md").read_text(encoding="utf-8")
    answer = returned["api_prompt"]
    headers = {"Content-Type": ["text/markdown; charset=utf-8"]}
    assert (answer["statusCode"], answer["body"]) == (200, text)
    assert headers.items() <= answer["multiValueHeaders"].items()


def test_what_is_wrong_with_a_body_is_named(returned: dict[str, Any]) -> None:
    reason = "EOF while parsing a value at line 1 column 31"
    fields = "query, section_title, part, session_id, domain, force, request_id"
    assert reply(returned, "api_bad_json") == (
        400,
        refusal("api_bad_json", f"body: is not valid JSON ({reason})"),
    )
    assert reply(returned, "api_unknown_field") == (
        400,
        refusal("api_unknown_field", f"questoin: is no field; the fields are {fields}"),
    )
