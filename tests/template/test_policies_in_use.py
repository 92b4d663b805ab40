"""What the code asks of AWS is what the policies allow: nothing is missing, nothing is spare."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.client import BaseClient
from kb import routes
from kb.answers import Question
from kb.routes import Request

from tests.conftest import System, markdown

Calls = set[tuple[str, str]]
"""Action and resource, as `dynamodb:PutItem` and `CatalogTable`."""

ALLOWED_BY = {"s3:HeadObject": "s3:GetObject"}
"""Operations that need the permission of another."""

NOT_CALLED_BY_CODE = {
    "sqs:ReceiveMessage",  # by the event source, in the function's name
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "s3:ListBucket",  # asked of S3 itself, before it says that a key is missing
    "lambda:InvokeFunction",  # the local embedder is no function
    "logs:CreateLogStream",  # by Lambda
    "logs:PutLogEvents",
    "xray:PutTraceSegments",
    "xray:PutTelemetryRecords",
}


@pytest.fixture
def watched(monkeypatch, system: System) -> Callable[[], Any]:
    """watched(): a context that yields the calls made in it."""
    send = BaseClient._make_api_call
    logs: list[Calls] = []

    def noting(client: BaseClient, operation: str, arguments: dict[str, Any]) -> Any:
        service = client.meta.service_model.service_name
        action = ALLOWED_BY.get(f"{service}:{operation}", f"{service}:{operation}")
        tables = arguments.get("RequestItems") or [arguments.get("TableName", "")]
        for table in tables:
            resource = table.rpartition("-")[2]
            if index := arguments.get("IndexName"):
                resource += f"/index/{index}"
            for calls in logs:
                calls.add((action, resource))
        return send(client, operation, arguments)

    @contextmanager
    def context() -> Iterator[Calls]:
        logs.append(calls := set())
        yield calls
        logs.remove(calls)

    monkeypatch.setattr(BaseClient, "_make_api_call", noting)
    return context


def allowed(stack, role: str) -> Calls:
    """What the role allows of that which code calls itself."""
    (policy,) = stack.properties(role)["Policies"]
    calls: Calls = set()
    for statement in policy["PolicyDocument"]["Statement"]:
        actions = statement["Action"]
        for action in [actions] if isinstance(actions, str) else actions:
            table = statement["Resource"].replace(".Arn", "")
            resource = table if action.startswith("dynamodb:") else ""
            if action not in NOT_CALLED_BY_CODE:
                calls.add((action, resource))
    return calls


def test_ingest_calls_all_that_its_role_allows_and_nothing_else(system, watched, stack):
    key = "payment/refund.md"
    first = markdown("Refund", "[refund]", "Refunds take three days.")
    message = {"receiptHandle": "gone", "messageId": "1", "attributes": {}}
    system.put(key, first)
    with watched() as calls:
        system.new_ingest().ingest.reconcile(key)
    system.put(key, first.replace("three", "four"))
    with watched() as update:
        system.new_ingest().ingest.reconcile(key)
    system.delete(key)
    with watched() as removal:
        system.new_ingest().ingest.reconcile(key)
        system.new_ingest().queue.delay_retry(message)
    assert calls | update | removal == allowed(stack, "IngestRole")


def test_lookup_calls_all_that_its_role_allows_and_nothing_else(system, watched, stack):
    key = "payment/refund.md"
    text = markdown("Refund", "[refund]", "Refunds take three days.")
    system.ingest(key, text)
    body = '{"query": "refund", "session_id": "s", "request_id": "r"}'
    parts = system.new_lookup()
    with watched() as calls:
        for (method, path), answer in routes.ROUTES.items():
            parameters = {"id": "s", "key": key}
            sent = Request("caller", parameters, body if method == "POST" else None, False)
            assert answer(parts, sent).status == 200, (method, path)
        system.clock.advance(5)  # the next question looks for what changed in the catalog
        parts.lookup.answer(Question("refund", session_id="s"), "caller")
        system.clock.advance(parts.settings.session_ttl + 1)  # an expired item is in the way
        parts.lookup.answer(Question("refund", session_id="s"), "caller")
    system.ingest(key, text.replace("three", "four"))  # behind the back of this lookup function
    with watched() as stale:
        parts.lookup.answer(Question("how many days do refunds take"), "caller")
    assert calls | stale == allowed(stack, "LookupRole")
