"""The deployed API: who may call it, what each caller's session knows, what is logged."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import markdown
from tests.deploy.stack import Stack

DOCUMENT = "api/overview.md"
EVENTS = Path(__file__).parents[2] / "events"


@pytest.fixture(scope="module")
def stack_with_document(stack: Stack) -> Stack:
    stack.put(DOCUMENT, markdown("Overview", "[API-OVERVIEW]", "All there is to know."))
    stack.until_indexed(DOCUMENT)
    return stack


@pytest.fixture(scope="module")
def second_key(stack: Stack) -> str:
    """An API key for another caller, made as the owner of a stack makes one."""
    gateway = stack.client("apigateway")
    made = gateway.create_api_key(name="second", enabled=True)
    gateway.create_usage_plan_key(
        usagePlanId=stack.resources["LookupApiUsagePlan"], keyId=made["id"], keyType="API_KEY"
    )
    return str(gateway.get_api_key(apiKey=made["id"], includeValue=True)["value"])


@pytest.mark.parametrize("api_key", [None, "no-such-key"], ids=["no key", "unknown key"])
@pytest.mark.parametrize(("method", "path"), [("POST", "/lookup"), ("GET", "/health")])
def test_without_a_key_that_is_known_nobody_is_answered(
    stack: Stack, method: str, path: str, api_key: str | None
) -> None:
    body = {"query": "anything"} if method == "POST" else None
    assert stack.call(method, path, body, api_key).status == 403


def test_every_route_answers_its_caller(stack_with_document: Stack) -> None:
    stack = stack_with_document
    health = stack.call("GET", "/health").body
    prompt = stack.call("GET", "/prompts/executor")
    domains = stack.call("GET", "/domains").body["domains"]
    answer = stack.ask("API-OVERVIEW", session_id="routes")
    session = stack.call("GET", "/session", id="routes").body
    cleared = stack.call("DELETE", "/session", id="routes").body
    after = stack.call("GET", "/session", id="routes").body
    assert (health["status"], set(health["parts"].values())) == ("ok", {"ok"})
    assert (prompt.status, "completenessHint" in prompt.body) == (200, True)
    assert {"domain": "api", "documents": 1, "titles": ["Overview"]} in domains
    assert (answer.status, answer.body["primary"]["source"]) == (200, DOCUMENT)
    assert [each["source"] for each in session["documents"]] == [DOCUMENT]
    assert cleared == {"sessionId": "routes", "cleared": True}
    assert after["documents"] == []
    assert DOCUMENT in stack.documents()
    assert stack.document(DOCUMENT).body["parts"] == 1


def test_a_bad_request_is_refused_in_words(stack: Stack) -> None:
    blank = stack.ask("  ")
    unknown = stack.ask("x", questoin="y")
    missing = stack.document("no/such.md")
    assert (blank.status, blank.body["error"]["message"]) == (400, "query: is blank")
    assert (unknown.status, unknown.code) == (400, "invalid_input")
    assert (missing.status, missing.code) == (404, "not_found")


def test_two_keys_with_the_same_session_id_do_not_see_each_other(
    stack_with_document: Stack, second_key: str
) -> None:
    stack = stack_with_document
    mine, other = stack.key, second_key
    first = as_api_gateway(stack, mine, "API-OVERVIEW", "shared")
    again = as_api_gateway(stack, mine, "API-OVERVIEW", "shared")
    others = as_api_gateway(stack, other, "API-OVERVIEW", "shared")
    others_again = as_api_gateway(stack, other, "API-OVERVIEW", "shared")
    sources = [each["primary"] and each["primary"]["source"] for each in (first, again)]
    assert sources == [DOCUMENT, None]
    assert others["primary"] == first["primary"]
    assert others_again["primary"] is None
    assert stack.ask("API-OVERVIEW", other).status == 200


def as_api_gateway(stack: Stack, api_key: str, query: str, session: str) -> Any:
    """The function's answer to what API Gateway sends it for this key.

    MiniStack's own gateway leaves out the key's id, by which callers are told apart.
    """
    keys = stack.client("apigateway").get_api_keys(includeValues=True)["items"]
    (identifier,) = [each["id"] for each in keys if each["value"] == api_key]
    event = json.loads((EVENTS / "api_lookup.json").read_text(encoding="utf-8"))
    event["requestContext"]["identity"] |= {"apiKey": api_key, "apiKeyId": identifier}
    event["body"] = json.dumps({"query": query, "session_id": session})
    answer = stack.invoke("LookupFunction", event)
    assert answer["statusCode"] == 200, answer
    return json.loads(answer["body"])


def test_every_question_is_logged_also_one_that_found_nothing(stack_with_document: Stack) -> None:
    stack = stack_with_document
    asked = {
        "PRECISE": stack.ask("API-OVERVIEW", session_id="logged").body,
        None: stack.ask("qzx wvj kkpf", domain="api").body,
    }
    table = stack.client("dynamodb")
    for level, answer in asked.items():
        row = table.get_item(
            TableName=stack.resources["InvocationTable"],
            Key={"invocation_id": {"S": answer["invocationId"]}},
        )["Item"]
        assert row["tool_name"] == {"S": "lookup_knowledge"}
        assert row.get("relevance_level", {}).get("S") == level
        assert int(row["expires_at"]["N"]) > time.time()
        assert json.loads(row["retrieval_details"]["S"])["embedding_model"] == "BAAI/bge-m3"
