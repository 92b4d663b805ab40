"""What the code asks of AWS is what the policies allow: nothing is missing, nothing is spare."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any, ClassVar

import pytest
from botocore.client import BaseClient
from kb import routes
from kb.answers import Question
from kb.documents import Version
from kb.ports import IndexedChunk
from kb.routes import Request
from kb.stores.opensearch_index import OpenSearchIndex
from kb.stores.opensearch_mapping import mapping_for
from opensearchpy import Connection, OpenSearch

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


class Domain(Connection):
    """Answers as an OpenSearch domain without an index does, and notes what it is asked."""

    asked: ClassVar[list[tuple[str, str]]] = []

    def perform_request(
        self, method: str, url: str, *_: object, **__: object
    ) -> tuple[int, dict[str, str], str]:
        self.asked.append((method, url))
        answers: dict[str, object] = {
            "_mapping": {"kb-chunks-1": {"mappings": mapping_for("m", 2)}},
            "_bulk": {"items": [{"index": {"status": 201}}]},
            "_refresh": {"_shards": {"failed": 0}},
            "_delete_by_query": {"failures": [], "timed_out": False, "version_conflicts": 0},
            "_search": {"hits": {"hits": []}},
            "_termvectors": {"term_vectors": {}},
        }
        if self.asked == [("GET", "/kb-chunks/_mapping")]:
            missing = {"type": "index_not_found_exception"}
            told = json.dumps({"error": missing, "status": 404})
            self._raise_error(404, told, "application/json")
        answer = answers.get(url.rpartition("/")[2], {})
        return 200, {"content-type": "application/json"}, json.dumps(answer)


@pytest.fixture
def index() -> OpenSearchIndex:
    Domain.asked.clear()
    client = OpenSearch(hosts=["localhost"], connection_class=Domain, max_retries=0)
    return OpenSearchIndex(client, index="kb-chunks", model="m", dimension=2)


def refused(stack, role: str) -> list[tuple[str, str]]:
    """What the domain was asked and the role's policy does not allow."""
    (policy,) = (
        each for each in stack.of_type("AWS::IAM::Policy").values() if each["Roles"] == [role]
    )
    rules = [
        (action, resource.partition("domain/OpenSearchDomain")[2])
        for statement in policy["PolicyDocument"]["Statement"]
        for resource in (
            [statement["Resource"]]
            if isinstance(statement["Resource"], str)
            else statement["Resource"]
        )
        for action in (
            [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
        )
    ]
    return [
        (method, path)
        for method, path in Domain.asked
        if not any(
            action == f"es:ESHttp{method.title()}" and fnmatchcase(path, resource)
            for action, resource in rules
        )
    ]


def test_ingest_may_ask_the_domain_all_that_it_asks(stack, index):
    version = Version(1, "f")
    index.prepare()
    index.write([IndexedChunk("a.md", version, 0, 1, "", "default", "text", (1.0, 0.0))])
    index.refresh()
    index.remove_others("a.md", version, 1)
    index.search((1.0, 0.0), 3)
    assert {path for _, path in Domain.asked} == {
        "/kb-chunks/_mapping",
        "/kb-chunks-1",
        "/kb-chunks/_bulk",
        "/kb-chunks-1/_refresh",
        "/kb-chunks-1/_delete_by_query",
        "/kb-chunks-1/_search",
    }
    assert refused(stack, "IngestRole") == []


def test_lookup_may_check_make_and_search_the_index_but_write_nothing(stack, index):
    index.prepare()
    index.search((1.0, 0.0), 3)
    index.rarity("refund days")
    index.search_words({"refund": 1.0}, 3)
    assert {path for _, path in Domain.asked} == {
        "/kb-chunks/_mapping",
        "/kb-chunks-1",
        "/kb-chunks-1/_search",
        "/kb-chunks-1/_termvectors",
    }
    assert refused(stack, "LookupRole") == []
    index.write([IndexedChunk("a.md", Version(1, "f"), 0, 1, "", "", "text", (1.0, 0.0))])
    assert refused(stack, "LookupRole") == [("POST", "/kb-chunks/_bulk")]
