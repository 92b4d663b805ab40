"""The local event source keeps what a handler could not do, whatever stopped it."""

import json
from typing import Any

from kb.local.cloud import LocalCloud
from kb.local.event_source import EventSource


def source_of(cloud: LocalCloud, handler: Any) -> EventSource:
    return EventSource(cloud.client("sqs"), cloud.queue_url, handler, workers=1, batch_size=10)


def send(cloud: LocalCloud, *bodies: str) -> None:
    for body in bodies:
        cloud.client("sqs").send_message(QueueUrl=cloud.queue_url, MessageBody=body)


def drain(cloud: LocalCloud) -> None:
    """Take out what making the bucket's notification sent."""
    source_of(cloud, lambda event, context: {"batchItemFailures": []}).deliver_once()


def left(cloud: LocalCloud) -> tuple[int, int]:
    """Messages that wait, and that are hidden until they come back."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    got = cloud.client("sqs").get_queue_attributes(QueueUrl=cloud.queue_url, AttributeNames=names)
    return tuple(int(got["Attributes"][name]) for name in names)  # type: ignore[return-value]


def test_failed_messages_stay_and_the_others_go(cloud: LocalCloud) -> None:
    drain(cloud)
    send(cloud, json.dumps("good"), json.dumps("bad"))

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        bad = [r["messageId"] for r in event["Records"] if r["body"] == '"bad"']
        return {"batchItemFailures": [{"itemIdentifier": one} for one in bad]}

    taken = source_of(cloud, handler).deliver_once()
    assert (taken, left(cloud)) == (2, (0, 1))


def test_crash_of_the_handler_ends_neither_the_worker_nor_the_messages(cloud: LocalCloud) -> None:
    drain(cloud)
    send(cloud, "one", "two")

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        raise RuntimeError("a fault")

    taken = source_of(cloud, handler).deliver_once()
    assert (taken, left(cloud)) == (2, (0, 2))
