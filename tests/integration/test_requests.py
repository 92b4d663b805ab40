"""Whatever is sent, the API answers in JSON that says what is wrong, and never with 500."""

import base64
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kb.errors import Misconfigured
from kb.local.functions import Context, handler_of

from tests.api_client import EVENT, ApiClient
from tests.conftest import System, markdown

DISK = markdown("磁盘", "[磁盘告警]", "清理旧日志。")


def invalid(message: str) -> tuple[int, str, str]:
    return 400, "invalid_input", message


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        (None, invalid("body: is missing; send a JSON object with a query")),
        ("", invalid("body: is missing; send a JSON object with a query")),
        ("[]", invalid("body: is not a JSON object")),
        ('{"query": ""}', invalid("query: is blank")),
        ('{"query": " \\n\\u3000"}', invalid("query: is blank")),
        ('{"query": "\\u200b\\ufeff\\u0000"}', invalid("query: is blank")),
        (json.dumps({"query": "退" * 2001}), invalid("query: has more than 2000 characters")),
        (b"\xff\xfe", invalid("body: is not valid JSON (expected value at line 1 column 1)")),
        (
            json.dumps({"query": "q", "session_id": "s" * 3072}),
            invalid("session_id: has 3,072 characters; at most 256 are taken"),
        ),
        (
            json.dumps({"query": "q" * 70_000}),
            (413, "too_large", "the body has 70,013 bytes; at most 65,536 are read"),
        ),
        (
            '{"query": "q", "session": "s"}',
            invalid(
                "session: is no field; the fields are query, section_title, part, session_id,"
                " domain, force, request_id"
            ),
        ),
    ],
)
def test_bad_body_is_refused(
    api: ApiClient, body: str | bytes | None, refusal: tuple[int, str, str]
) -> None:
    reply = api.post(body)
    assert reply.error == refusal
    assert reply.headers["Content-Type"] == "application/json; charset=utf-8"
    assert reply.headers["Access-Control-Allow-Origin"] == "*"
    assert reply.json["error"]["requestId"] == EVENT["requestContext"]["requestId"]
    assert list(api.parts.log.read_all()) == []


def test_question_of_2000_characters_is_answered(api: ApiClient) -> None:
    assert api.ask("退款" * 1000)["found"] is False


@pytest.mark.parametrize(
    "session_id", ["#1", "会话一", "a/b?c=d&e", "😀", " s ", '"}{', "x" * 256, "\u202e\x07"]
)
def test_session_id_is_any_text(system: System, api: ApiClient, session_id: str) -> None:
    system.ingest("ops/disk.md", DISK)
    first = api.ask("磁盘告警", session_id=session_id)
    second = api.ask("磁盘告警", sessionId=session_id)
    read = api.get("/session", id=session_id).json
    assert (first["primary"]["content"], second["primary"]) == ("清理旧日志。", None)
    assert (read["sessionId"], read["retrievedDomains"]) == (session_id, ["ops"])
    assert api.delete("/session", id=session_id).json == {"sessionId": session_id, "cleared": True}
    assert api.get("/session", id=session_id).json["documents"] == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b#c"), ("a#b", "c")),
        (("ab", "c"), ("a", "bc")),
        (("a", 'b", "c'), ('a", "b', "c")),
        (("key-1", "s1"), ("key-2", "s1")),
        (("a", "s1"), ("a", "s1 ")),
        (("a", "é"), ("a", "e\u0301")),
    ],
)
def test_no_id_reaches_the_memory_of_another(
    system: System, api: ApiClient, one: tuple[str, str], other: tuple[str, str]
) -> None:
    system.ingest("ops/disk.md", DISK)
    api.ask("磁盘告警", one[0], session_id=one[1])
    assert api.get("/session", caller=other[0], id=other[1]).json["documents"] == []
    assert api.ask("磁盘告警", other[0], session_id=other[1])["primary"] is not None
    api.delete("/session", caller=other[0], id=other[1])
    assert api.ask("磁盘告警", one[0], session_id=one[1])["primary"] is None


def test_caller_without_a_key_is_local(system: System, api: ApiClient) -> None:
    system.ingest("ops/disk.md", DISK)
    body = '{"query": "磁盘告警", "session_id": "s1"}'
    assert api.call("POST", "/lookup", caller=None, body=body).json["primary"] is not None
    assert api.call("POST", "/lookup", caller="local", body=body).json["primary"] is None


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/lookup"),
        ("PUT", "/lookup"),
        ("POST", "/documents"),
        ("HEAD", "/documents"),
        ("DELETE", "/documents"),
        ("GET", "/documents/x"),
        ("GET", "/prompts"),
        ("GET", "/%00"),
        ("GET", "/\ud800"),
        ("POST", "//lookup"),
    ],
)
def test_undeclared_route_or_method_is_404(api: ApiClient, method: str, path: str) -> None:
    reply = api.call(method, path, body="{}")
    assert reply.error == (404, "not_found", "there is no such route or method")
    assert reply.headers["Access-Control-Allow-Origin"] == "*"


def test_preflight_is_allowed_for_every_route(api: ApiClient) -> None:
    for path in ("/lookup", "/documents", "/session"):
        reply = api.call("OPTIONS", path)
        assert reply.status == 204
        assert reply.headers["Access-Control-Allow-Origin"] == "*"
        assert {"Content-Type", "X-Api-Key"} <= set(
            reply.headers["Access-Control-Allow-Headers"].split(",")
        )
        assert {"DELETE", "GET", "POST"} <= set(
            reply.headers["Access-Control-Allow-Methods"].split(",")
        )


@pytest.mark.parametrize(
    ("path", "parameters", "message"),
    [
        ("/session", None, "id: is missing or blank"),
        ("/session", {"id": "  "}, "id: is missing or blank"),
        ("/session", {"id": "x" * 3072}, "id: has 3,072 characters; at most 256 are taken"),
        ("/session", {"id": "\ud800"}, "id: is not valid text"),
        ("/document", None, "key: is missing or blank"),
        ("/document", {"key": "\ud800"}, "key: is not valid text"),
        ("/document", {"key": "退" * 342}, "key: has more than 1,024 bytes, which no key has"),
        (
            "/documents",
            {"status": "Indexed"},
            "status: is none of indexed, semantic_only, empty, failed, deleted",
        ),
        ("/documents", {"next": "%%%"}, "next: is no token of a page"),
        ("/documents", {"next": "é"}, "next: is no token of a page"),
        ("/documents", {"next": "_w=="}, "next: is no token of a page"),
        ("/documents", {"domain": "\udfff"}, "domain: is not valid text"),
        ("/prompts/executor", {"language": "fr"}, "language: is none of zh, en"),
    ],
)
def test_bad_parameter_is_named(
    api: ApiClient, path: str, parameters: dict[str, str] | None, message: str
) -> None:
    assert api.call("GET", path, parameters=parameters).error == invalid(message)


def test_odd_events_of_the_gateway_are_no_failure(api: ApiClient) -> None:
    handler = handler_of("lookup")
    handler.__globals__["lookup_parts"] = lambda: api.parts  # type: ignore[attr-defined]
    for odd in (
        {"queryStringParameters": None, "multiValueQueryStringParameters": None},
        {"headers": None, "multiValueHeaders": None},
        {"headers": {"content-type": "\u00ff", "x-long": "x" * 10_000, "": ""}},
        {"headers": {"content-type": "application/xml", "accept-encoding": "gzip, br"}},
        {"stageVariables": {"a": "b"}, "pathParameters": {"proxy": "x"}},
        {"body": base64.b64encode(b'{"query": "q"}').decode(), "isBase64Encoded": True},
    ):
        event = json.loads(json.dumps(EVENT)) | odd
        assert handler(event, Context("lookup"))["statusCode"] == 200


def test_wrong_settings_are_503_and_keep_their_cause_to_the_log(
    api: ApiClient, caplog: pytest.LogCaptureFixture
) -> None:
    handler = handler_of("lookup")

    def misconfigured() -> None:
        raise Misconfigured("CATALOG_TABLE: is missing")

    handler.__globals__["lookup_parts"] = misconfigured  # type: ignore[attr-defined]
    answer = handler(json.loads(json.dumps(EVENT)), Context("lookup"))
    assert answer["statusCode"] == 503
    assert "CATALOG_TABLE" not in answer["body"]
    (record,) = caplog.records
    assert (record.levelname, record.__dict__["cause"]) == ("ERROR", "CATALOG_TABLE: is missing")


def test_what_nobody_foresaw_is_500_in_json_and_logged(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def bug(*_: Any) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(type(api.parts.lookup), "answer", bug)
    reply = api.post('{"query": "q"}')
    assert reply.error == (500, "internal_error", "something failed that should not have")
    assert [record.getMessage() for record in caplog.records] == ["request_failed"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)
values = {
    "query": st.text(max_size=30) | json_values,
    "section_title": st.text(max_size=10) | json_values,
    "part": st.integers(-2, 10) | json_values,
    "session_id": st.text(max_size=300) | json_values,
    "domain": st.text(max_size=10) | json_values,
    "force": st.booleans() | json_values,
    "request_id": st.text(max_size=10) | json_values,
}
objects = st.fixed_dictionaries({}, optional=values)
good_objects = st.fixed_dictionaries(
    {"query": st.sampled_from(["磁盘告警", "告警 日志", "清理旧日志。"]) | st.text(max_size=20)},
    optional={
        "section_title": st.text(max_size=10),
        "part": st.integers(1, 3),
        "session_id": st.text(max_size=300),
        "domain": st.sampled_from(["ops", "pay"]) | st.text(max_size=10),
        "force": st.booleans(),
        "request_id": st.text(max_size=10),
    },
)


@pytest.mark.parametrize(
    "bodies",
    [objects, good_objects, st.binary(max_size=60), json_values],
    ids=["fields of any type", "fields of their type", "bytes", "any JSON"],
)
def test_no_body_is_answered_with_500(system: System, api: ApiClient, bodies: Any) -> None:
    system.ingest("ops/disk.md", DISK)
    statuses: set[int] = set()

    @settings(
        max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(bodies)
    def send(body: Any) -> None:
        sent = body if isinstance(body, bytes) else json.dumps(body)
        reply = api.post(sent)
        statuses.add(reply.status)
        assert reply.status in (200, 400)
        assert reply.json

    send()
    assert statuses
