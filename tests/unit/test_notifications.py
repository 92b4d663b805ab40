"""From what S3 and SQS send to keys, each decoded once."""

import json
from typing import Any
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kb.notifications import keys_in, keys_in_body


def notification(*encoded: object) -> dict[str, Any]:
    return {"Records": [{"s3": {"object": {"key": key}}} for key in encoded]}


@pytest.mark.parametrize(
    ("encoded", "key"),
    [
        ("a+b%2Bc%25+100%2525.md", "a b+c% 100%25.md"),
        ("%E9%80%80%E6%AC%BE/%F0%9F%90%A4TL%3BDR.md", "退款/🐤TL;DR.md"),
        ("cafe%CC%81.md", "cafe\u0301.md"),
        ("caf%C3%A9.md", "caf\u00e9.md"),
        ("a%26b%3Dc%3Bd%2Ce%40f%3Ag%24h.md", "a&b=c;d,e@f:g$h.md"),
        ("docs/50%-off.md", "docs/50%-off.md"),
        ("C%23/README.MarkDown", "C#/README.MarkDown"),
    ],
)
def test_key_is_decoded_exactly_once(encoded: str, key: str) -> None:
    assert keys_in(notification(encoded)) == [key]


@given(st.text(st.characters(codec="utf-8"), min_size=1).map(lambda name: f"{name}.md"))
def test_whatever_s3_encoded_comes_back_byte_for_byte(key: str) -> None:
    assert keys_in(notification(quote_plus(key, safe="/"))) == [key]


def test_only_documents_are_named_and_each_once() -> None:
    keys = ("b.md", "a.MD", "image.png", "b.md", "notes.md.txt", "folder.md/", "c.markdown")
    assert keys_in(notification(*keys)) == ["b.md", "a.MD", "c.markdown"]


def test_record_that_names_no_key_keeps_no_other_from_being_read() -> None:
    odd = [None, 5, "x", [], {}, {"s3": None}, {"s3": {"object": []}}, {"s3": {"object": {}}}]
    records = [*odd, *notification(5, None, ["a.md"], "%ff.md", "a.md")["Records"]]
    assert keys_in({"Records": records}) == ["a.md"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.sampled_from(["Records", "s3", "object", "key", "Event"]), inner)
    ),
)


@given(json_values)
def test_no_message_whatever_is_a_failure(value: object) -> None:
    assert all(key.lower().endswith((".md", ".markdown")) for key in keys_in(value))
    assert keys_in_body(json.dumps(value)) == keys_in(value)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("hello", id="text"),
        pytest.param("", id="empty"),
        pytest.param(None, id="none"),
        pytest.param(b"{}", id="bytes"),
        pytest.param("[" * 100_000, id="deep nesting"),
        pytest.param("1" * 5000, id="a number too long for Python"),
        pytest.param('"\\ud800"', id="lone surrogate"),
        pytest.param('{"Service": "Amazon S3", "Event": "s3:TestEvent"}', id="test event"),
        pytest.param('{"Type": "Notification", "Message": "{}"}', id="another service's"),
    ],
)
def test_unknown_body_names_no_key(body: object) -> None:
    assert keys_in_body(body) == []


def test_unknown_message_is_logged_but_a_test_event_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    keys_in_body('{"Service": "Amazon S3", "Event": "s3:TestEvent"}')
    quiet = [record.message for record in caplog.records]
    keys_in_body("hello")
    keys_in(notification("%ff.md", 5))
    loud = [(record.message, record.__dict__["cause"]) for record in caplog.records]
    assert quiet == []
    assert loud == [
        ("message_ignored", "it is no S3 notification"),
        ("record_ignored", "its key is not UTF-8"),
        ("record_ignored", "it names no key"),
    ]
