"""The ingest function's handler: what it is sent, what it reports back, when messages return."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest
from kb.documents import Status
from kb.errors import Misconfigured, Unavailable
from kb.local.functions import Context, handler_of
from kb.wiring import IngestParts

from tests.conftest import System, markdown

EVENTS = Path(__file__).parents[2] / "events"
TEXT = markdown("标题", "[磁盘告警]", "正文")
Handle = Callable[[object], dict[str, Any]]


@pytest.fixture
def parts(system: System) -> IngestParts:
    return system.new_ingest()


@pytest.fixture
def handle(parts: IngestParts, monkeypatch: pytest.MonkeyPatch) -> Handle:
    """The handler over this test's system."""
    handler = handler_of("ingest")
    monkeypatch.setitem(handler.__globals__, "ingest_parts", lambda: parts)
    return lambda event: handler(event, Context("ingest"))  # type: ignore[arg-type]


def notification(*keys: str) -> dict[str, Any]:
    return {
        "Records": [
            {
                "eventSource": "aws:s3",
                "eventName": "ObjectCreated:Put",
                "s3": {"object": {"key": quote_plus(key, safe="/")}},
            }
            for key in keys
        ]
    }


def sqs(*bodies: object, receipts: int = 1) -> dict[str, Any]:
    """Messages "0", "1", ... of an SQS event; a body that is no text is sent as JSON."""
    return {
        "Records": [
            {
                "messageId": str(number),
                "receiptHandle": f"receipt {number}",
                "body": body if isinstance(body, str) else json.dumps(body),
                "attributes": {"ApproximateReceiveCount": str(receipts)},
                "eventSource": "aws:sqs",
            }
            for number, body in enumerate(bodies)
        ]
    }


def failed(*numbers: int) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": str(number)} for number in numbers]}


def statuses(system: System) -> dict[str, Status]:
    return {row.key: row.status for row in system.new_lookup().documents.load()}


def test_direct_notification_is_ingested(system: System, handle: Handle) -> None:
    system.put("a/退款 流程+FAQ 100%.md", TEXT)
    system.put("b.md", TEXT)
    answer = handle(notification("a/退款 流程+FAQ 100%.md", "b.md"))
    assert (answer, statuses(system)) == (
        failed(),
        {"a/退款 流程+FAQ 100%.md": Status.INDEXED, "b.md": Status.INDEXED},
    )


def test_direct_notification_raises_after_every_document_had_its_turn(
    system: System, handle: Handle, parts: IngestParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_for(monkeypatch, parts, {"bad.md": Unavailable("embedding", "slow")})
    system.put("good.md", TEXT)
    with pytest.raises(Unavailable, match=r"embedding did not answer \(slow\)"):
        handle(notification("bad.md", "good.md"))
    assert statuses(system) == {"good.md": Status.INDEXED}


def event(name: str) -> Any:
    return json.loads((EVENTS / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("s3_created", {"payment/退款 流程+FAQ 100%.md": Status.INDEXED}),
        ("sqs_created", {"payment/退款 流程+FAQ 100%.md": Status.INDEXED}),
        ("sqs_deleted", {"infrastructure/old-runbook.md": Status.DELETED}),
        (
            "sqs_mixed",
            {
                "infrastructure/Database Failover.MD": Status.INDEXED,
                "C++ 指南.markdown": Status.INDEXED,
                "infrastructure/old-runbook.md": Status.DELETED,
            },
        ),
    ],
)
def test_events_of_the_shelf_are_handled(
    system: System, handle: Handle, name: str, expected: dict[str, Status]
) -> None:
    for key, status in expected.items():
        if status is Status.INDEXED:
            system.put(key, TEXT)
    assert (handle(event(name)), statuses(system)) == (failed(), expected)


def fail_for(
    monkeypatch: pytest.MonkeyPatch, parts: IngestParts, errors: dict[str, Exception]
) -> None:
    """Make ingest raise for these keys."""
    reconcile = parts.ingest.reconcile

    def maybe(key: str) -> Any:
        if key in errors:
            raise errors[key]
        return reconcile(key)

    monkeypatch.setattr(parts.ingest, "reconcile", maybe)


def test_only_messages_that_failed_are_reported_and_the_others_are_done(
    system: System,
    handle: Handle,
    parts: IngestParts,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    errors = {
        "down.md": Unavailable("vectors", "timeout"),
        "model.md": Misconfigured("another model"),
        "bug.md": ZeroDivisionError("a bug"),
    }
    fail_for(monkeypatch, parts, errors)
    for key in ("one.md", "two.md", "three.md"):
        system.put(key, TEXT)
    answer = handle(
        sqs(
            notification("down.md"),
            notification("one.md"),
            {"Service": "Amazon S3", "Event": "s3:TestEvent"},
            notification("bug.md", "two.md"),
            "no JSON",
            notification("image.png"),
            notification("model.md"),
            {"Records": "none"},
            notification("three.md"),
        )
    )
    assert answer == failed(0, 3, 6)
    assert statuses(system) == dict.fromkeys(("one.md", "two.md", "three.md"), Status.INDEXED)
    logged = [
        (record.message, record.__dict__.get("key"), record.__dict__.get("cause"))
        for record in caplog.records
        if record.levelno >= logging.WARNING and record.message.startswith("ingest_")
    ]
    assert logged == [
        ("ingest_failed", "down.md", "vectors did not answer (timeout)"),
        ("ingest_crashed", "bug.md", "ZeroDivisionError('a bug')"),
        ("ingest_failed", "model.md", "another model"),
    ]


def test_bug_is_logged_with_where_it_happened(
    handle: Handle,
    parts: IngestParts,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fail_for(monkeypatch, parts, {"bug.md": ZeroDivisionError("a bug")})
    handle(sqs(notification("bug.md")))
    [record] = [record for record in caplog.records if record.message == "ingest_crashed"]
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


def test_document_that_cannot_be_indexed_is_no_failure(system: System, handle: Handle) -> None:
    system.put("binary.md", bytes(range(256)) * 9)
    assert handle(sqs(notification("binary.md"))) == failed()
    assert statuses(system) == {"binary.md": Status.FAILED}


@pytest.mark.parametrize("odd", [{}, {"Records": []}, {"Records": None}, [], None], ids=str)
def test_event_without_messages_is_no_failure(handle: Handle, odd: object) -> None:
    assert handle(odd) == failed()


def test_settings_that_are_wrong_fail_the_whole_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    def misconfigured() -> IngestParts:
        raise Misconfigured("CATALOG_TABLE is missing")

    handler = handler_of("ingest")
    monkeypatch.setitem(handler.__globals__, "ingest_parts", misconfigured)
    with pytest.raises(Misconfigured, match="CATALOG_TABLE is missing"):
        handler(sqs(notification("a.md")), Context("ingest"))


@pytest.mark.parametrize(
    ("receipts", "delay"), [(1, 5), (2, 10), (3, 20), (6, 160), (7, 300), (5000, 300)]
)
def test_failed_message_comes_back_after_a_growing_delay(
    handle: Handle,
    parts: IngestParts,
    system: System,
    monkeypatch: pytest.MonkeyPatch,
    receipts: int,
    delay: int,
) -> None:
    fail_for(monkeypatch, parts, {"down.md": Unavailable("vectors")})
    system.put("good.md", TEXT)
    asked: list[dict[str, Any]] = []
    client = parts.queue._client
    monkeypatch.setattr(client, "change_message_visibility", lambda **given: asked.append(given))
    handle(sqs(notification("good.md"), notification("down.md"), receipts=receipts))
    assert asked == [
        {
            "QueueUrl": system.cloud.queue_url,
            "ReceiptHandle": "receipt 1",
            "VisibilityTimeout": delay,
        }
    ]


def test_message_is_reported_also_where_its_return_cannot_be_delayed(
    handle: Handle, parts: IngestParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_for(monkeypatch, parts, {"down.md": Unavailable("vectors")})
    # The queue knows no such receipt, so that SQS refuses the delay.
    assert handle(sqs(notification("down.md"))) == failed(0)
