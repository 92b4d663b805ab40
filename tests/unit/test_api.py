"""Every body becomes a question or a refusal that names the field or the problem."""

import base64
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kb import api
from kb.answers import Question
from kb.errors import (
    Conflict,
    InvalidInput,
    KbError,
    Misconfigured,
    NotFound,
    TooLarge,
    Unavailable,
)

LIMITS = {"body_bytes": 1000, "id_length": 20}
FIELDS = "query, section_title, part, session_id, domain, force, request_id"


def question_of(body: object) -> Question:
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return api.question_of(text, False, **LIMITS)


def test_all_fields_are_taken() -> None:
    whole = {
        "query": " 退款\n",
        "section_title": "步骤",
        "part": 2,
        "session_id": " s#1/会话😀",
        "domain": " payment ",
        "force": True,
        "request_id": "r1",
    }
    assert question_of(whole) == Question(
        query=" 退款\n",
        section_title="步骤",
        part=2,
        session_id=" s#1/会话😀",
        domain="payment",
        force=True,
        request_id="r1",
    )


def test_camel_case_is_taken_too() -> None:
    body = {"query": "q", "sectionTitle": "t", "sessionId": "s", "requestId": "r"}
    assert question_of(body) == Question("q", section_title="t", session_id="s", request_id="r")


@pytest.mark.parametrize("blank", ["", "  ", "\t\n", None], ids=["empty", "spaces", "tab", "null"])
def test_blank_optional_fields_count_as_absent(blank: str | None) -> None:
    names = ("section_title", "part", "session_id", "domain", "force", "request_id")
    assert question_of({"query": "q"} | dict.fromkeys(names, blank)) == Question("q")


def test_byte_order_mark_is_skipped() -> None:
    body = base64.b64encode(b'\xef\xbb\xbf{"query": "q"}').decode()
    assert api.question_of(body, True, **LIMITS) == Question("q")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("", "body: is missing; send a JSON object with a query"),
        ("{}", "query: is missing"),
        ("[]", "body: is not a JSON object"),
        ("null", "body: is not a JSON object"),
        ('"query"', "body: is not a JSON object"),
        ("1", "body: is not a JSON object"),
        ("NaN", "body: is not a JSON object"),
        ("{", "body: is not valid JSON (EOF while parsing an object at line 1 column 1)"),
        ('{"query": "q"} x', "body: is not valid JSON (trailing characters at line 1 column 16)"),
        (
            '{"query": "\\ud800"}',
            "body: is not valid JSON (unexpected end of hex escape at line 1 column 18)",
        ),
        ('{"query": "\ud800"}', "body: is not valid base64 or not valid text"),
        ("[" * 900, "body: is not valid JSON (recursion limit exceeded at line 1 column 202)"),
        ('{"query": NaN}', "query: Input should be a valid string"),
        ('{"query": null}', "query: Input should be a valid string"),
        ('{"query": ["q"]}', "query: Input should be a valid string"),
        ('{"query": "q", "part": 0}', "part: Input should be greater than or equal to 1"),
        ('{"query": "q", "part": -1}', "part: Input should be greater than or equal to 1"),
        ('{"query": "q", "part": 1.0}', "part: Input should be a valid integer"),
        ('{"query": "q", "part": "1"}', "part: Input should be a valid integer"),
        ('{"query": "q", "part": true}', "part: Input should be a valid integer"),
        (
            '{"query": "q", "part": 99999999999999999999999999}',
            "part: Input should be less than or equal to 1000000",
        ),
        ('{"query": "q", "force": 1}', "force: Input should be a valid boolean"),
        ('{"query": "q", "force": "true"}', "force: Input should be a valid boolean"),
        ('{"query": "q", "sessionId": 1}', "session_id: Input should be a valid string"),
        (
            '{"query": "q", "session_id": "123456789012345678901"}',
            "session_id: has 21 characters; at most 20 are taken",
        ),
        (
            '{"query": "q", "requestId": "123456789012345678901"}',
            "request_id: has 21 characters; at most 20 are taken",
        ),
        ('{"query": "q", "questoin": 1}', f"questoin: is no field; the fields are {FIELDS}"),
        (
            f'{{"query": "q", "{"x" * 200}": 1}}',
            f"{'x' * 64}: is no field; the fields are {FIELDS}",
        ),
        ('{"query": "a", "query": "b"}', "query: is given twice"),
        ('{"query": "a", "session_id": "s", "sessionId": "s"}', "session_id: is given twice"),
    ],
)
def test_bad_body_is_refused_with_its_problem(body: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        question_of(body)
    assert str(refusal.value) == problem


@pytest.mark.parametrize("field", ["section_title", "sectionTitle", "domain"])
def test_names_longer_than_any_are_refused(field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        api.question_of(
            json.dumps({"query": "q", field: "x" * 1025}), False, body_bytes=2000, id_length=20
        )
    assert refusal.value.problem == "String should have at most 1024 characters"
    assert refusal.value.field == ("domain" if field == "domain" else "section_title")


@pytest.mark.parametrize(
    "body", ["%%%", "eyJ9", "é", "YQ", "////"], ids=["signs", "not json", "é", "cut", "bytes"]
)
def test_bad_base64_is_refused(body: str) -> None:
    with pytest.raises(InvalidInput, match=r"^body: "):
        api.question_of(body, True, **LIMITS)


@pytest.mark.parametrize("is_base64", [False, True])
def test_body_over_the_limit_is_too_large_by_its_bytes(is_base64: bool) -> None:
    def sent(text: str) -> str:
        return base64.b64encode(text.encode()).decode() if is_base64 else text

    fitting = '{"query": "' + "退" * 329 + '"}'
    assert len(fitting.encode()) == 1000
    assert api.question_of(sent(fitting), is_base64, **LIMITS) == Question("退" * 329)
    with pytest.raises(TooLarge) as refusal:
        api.question_of(sent(fitting + " "), is_base64, **LIMITS)
    assert str(refusal.value) == "the body has 1,001 bytes; at most 1,000 are read"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
fields = st.sampled_from([*FIELDS.split(", "), "sessionId", "sectionTitle", "requestId", "x"])
objects = st.dictionaries(fields, json_values | st.text(max_size=30), max_size=8)


@given(objects | json_values)
def test_any_json_is_a_question_or_names_what_is_wrong(value: Any) -> None:
    known = {*FIELDS.split(", "), "body", "the size"}
    if isinstance(value, dict):
        known |= {name[:64] or '""' for name in value}
    assert fault_of(json.dumps(value)) in known | {None}


def fault_of(body: str) -> str | None:
    """The field that is refused; None where none is."""
    try:
        question = api.question_of(body, False, **LIMITS)
    except InvalidInput as refusal:
        return refusal.field
    except TooLarge:
        return "the size"
    return None if question.query == json.loads(body)["query"] else "another query"


@given(st.binary(max_size=200), st.booleans())
@example(b'{"query": "a\xed\xa0\x80"}', True)
@example(b"\xff\xfe{\x00}\x00", True)
def test_any_bytes_are_a_question_or_a_refusal(data: bytes, is_base64: bool) -> None:
    body = base64.b64encode(data).decode() if is_base64 else data.decode("utf-8", "surrogateescape")
    try:
        reply = api.ok(api.question_of(body, is_base64, **LIMITS).query)
    except InvalidInput as refusal:
        reply = api.error_reply(refusal, "r1")
    assert reply.status in (200, 400)
    assert json.loads(reply.body.encode())


@pytest.mark.parametrize(
    ("error", "status", "code", "message", "retry_after"),
    [
        (InvalidInput("part", "is odd"), 400, "invalid_input", "part: is odd", None),
        (TooLarge("the body is long"), 413, "too_large", "the body is long", None),
        (NotFound("no document"), 404, "not_found", "no document", None),
        (
            Unavailable("semantic", "secret cause"),
            503,
            "semantic_unavailable",
            "semantic does not answer at the moment; the same call may work later",
            "5",
        ),
        (
            Misconfigured("secret cause"),
            503,
            "misconfigured",
            "the service is set up wrongly; its owner finds the cause in its log",
            "5",
        ),
        (
            Conflict("secret cause"),
            503,
            "misconfigured",
            "the service is set up wrongly; its owner finds the cause in its log",
            "5",
        ),
        (None, 500, "internal_error", "something failed that should not have", None),
    ],
)
def test_each_error_has_its_reply_and_keeps_its_cause_to_itself(
    error: KbError | None, status: int, code: str, message: str, retry_after: str | None
) -> None:
    reply = api.error_reply(error, "r1")
    assert reply.status == status
    assert reply.content_type == "application/json; charset=utf-8"
    assert json.loads(reply.body) == {
        "error": {"code": code, "message": message, "requestId": "r1"}
    }
    assert reply.headers == ({"Retry-After": retry_after} if retry_after else None)


def test_good_reply_is_compact_and_readable() -> None:
    assert api.ok({"a": ["退款", None]}) == api.Reply(200, '{"a":["退款",null]}')
