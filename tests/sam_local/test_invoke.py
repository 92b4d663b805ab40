"""`sam local invoke` with every file of events/, in an order in which each has something to do."""

import json
import os
from pathlib import Path
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
        "退款流程",
        "[支付网关超时, 退款失败]",
        "退款失败了怎么处理？先查退款单。",
        category="payment",
    ),
    FAILOVER: markdown(
        "Database failover",
        "[database failover runbook]",
        "Promote the replica.\n\n" + "Wait. " * 400 + "\n\n## Rollback\n\nPoint the clients back.",
    ),
    OLD: markdown("Old runbook", "[old runbook]", "Nobody does this any more."),
    COPIED: markdown("C++ 指南", "[C++]", "Prefer values."),
}
INGESTED = ["sqs_created", "s3_created", "sqs_deleted", "sqs_mixed"]
ASKED = [
    "api_health",
    "api_lookup",
    "api_lookup_section",
    "api_session",
    "api_session_delete",
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
    for function, names in {"IngestFunction": INGESTED, "LookupFunction": ASKED}.items():
        for name in names:
            returned[name] = sam.invoke(function, EVENTS / f"{name}.json")
    if "SAM_LOCAL_DUMP" in os.environ:
        Path(os.environ["SAM_LOCAL_DUMP"]).write_text(
            json.dumps(returned, ensure_ascii=False, indent=1)
        )
    return returned


def rows(running: Cloud) -> dict[str, tuple[str, int, int]]:
    """Status, revision and number of parts of each document, as the catalog has them."""
    table = CatalogTable(running.stack.client("dynamodb"), ENVIRONMENT["CATALOG_TABLE"])
    found = {key: table.read(key) for key in DOCUMENTS}
    return {key: (row.status.value, row.revision, row.parts) for key, row in found.items() if row}


def test_x(returned: dict[str, Any], running: Cloud) -> None:
    assert returned["before"] == NO_FAILURES
    print(rows(running))
