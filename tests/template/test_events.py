"""The events for `sam local invoke` are such that the template's triggers could have sent them."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

EVENTS = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parents[2] / "events").glob("*.json"))
}
QUEUED = {name: event for name, event in EVENTS.items() if name.startswith("sqs_")}
ASKED = {name: event for name, event in EVENTS.items() if name.startswith("api_")}


def test_every_event_is_named_for_its_trigger_and_case():
    assert {name.partition("_")[0] for name in EVENTS} == {"sqs", "s3", "api"}
    assert {"sqs_created", "sqs_deleted", "sqs_mixed", "s3_created"} <= EVENTS.keys()
    assert {"api_lookup", "api_lookup_chinese", "api_documents", "api_health"} <= EVENTS.keys()
    assert {"api_session_delete", "api_bad_json"} <= EVENTS.keys()


@pytest.mark.parametrize("name", ASKED)
def test_request_asks_a_declared_route_with_a_key(stack, name):
    event: dict[str, Any] = ASKED[name]
    context = event["requestContext"]
    declared = stack.properties("LookupApi")["Body"]["paths"]
    assert event["httpMethod"].lower() in declared[event["resource"]]
    assert context["resourcePath"] == event["path"] == event["resource"]
    assert context["path"] == f"/v1{event['path']}"
    assert context["identity"]["apiKeyId"]
    assert context["requestId"]


@pytest.mark.parametrize("name", QUEUED)
def test_queued_message_is_whole(name):
    records = QUEUED[name]["Records"]
    for record in records:
        digest = hashlib.md5(record["body"].encode(), usedforsecurity=False).hexdigest()
        assert record["eventSource"] == "aws:sqs"
        assert record["md5OfBody"] == digest
        assert int(record["attributes"]["ApproximateReceiveCount"]) >= 1
    assert len({record["messageId"] for record in records}) == len(records)


def test_mixed_batch_holds_each_kind_of_message():
    bodies = [record["body"] for record in EVENTS["sqs_mixed"]["Records"]]
    assert sum("s3:TestEvent" in body for body in bodies) == 1
    assert sum("ObjectCreated:" in body for body in bodies) == 2
    assert sum("ObjectRemoved:DeleteMarkerCreated" in body for body in bodies) == 1
    assert sum(not body.startswith("{") for body in bodies) == 1


def test_notification_spells_its_key_as_s3_does():
    (record,) = EVENTS["s3_created"]["Records"]
    assert record["s3"]["object"]["key"] == (
        "payment/%E9%80%80%E6%AC%BE+%E6%B5%81%E7%A8%8B%2BFAQ+100%25.md"
    )


def test_base64_body_is_a_question():
    event = EVENTS["api_lookup_base64"]
    assert event["isBase64Encoded"] is True
    assert json.loads(base64.b64decode(event["body"])) == {"query": "支付网关超时"}


def test_bad_json_is_bad():
    with pytest.raises(json.JSONDecodeError):
        json.loads(EVENTS["api_bad_json"]["body"])
    assert json.loads(EVENTS["api_unknown_field"]["body"]).keys() == {"query", "questoin"}
