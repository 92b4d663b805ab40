"""What waits, fails and comes back between the bucket and the index."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import markdown
from tests.deploy.stack import Stack, notification, sqs_record, until

POISON = "queue/poison.md"
HEALTHY = [f"queue/healthy {number}.md" for number in range(6)]


@pytest.fixture
def hasty(stack: Stack) -> Iterator[Stack]:
    """A failed message comes back after a second and is given up after three; not 20 minutes."""
    queue = {"QueueUrl": stack.resources["IngestQueue"]}
    sqs = stack.client("sqs")
    there = sqs.get_queue_attributes(**queue, AttributeNames=["RedrivePolicy"])["Attributes"]
    redrive = json.loads(there["RedrivePolicy"]) | {"maxReceiveCount": 3}
    sqs.set_queue_attributes(**queue, Attributes={"RedrivePolicy": json.dumps(redrive)})
    stack.start_anew("IngestFunction", RETRY_DELAY="1", RETRY_DELAY_MOST="1")
    yield stack
    sqs.set_queue_attributes(**queue, Attributes=there)
    stack.start_anew("IngestFunction", RETRY_DELAY="5", RETRY_DELAY_MOST="300")


def dead_letters(stack: Stack) -> int:
    answer = stack.client("sqs").get_queue_attributes(
        QueueUrl=stack.outputs["IngestDeadLetterQueueUrl"],
        AttributeNames=["ApproximateNumberOfMessages"],
    )
    return int(answer["Attributes"]["ApproximateNumberOfMessages"])


def denying_poison(statement: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield statement
    if statement["Sid"] == "Documents":
        resource = statement["Resource"].removesuffix("*") + POISON
        yield statement | {"Sid": "Poison", "Effect": "Deny", "Resource": resource}


def test_a_poison_message_ends_among_the_dead_blocks_nobody_and_can_be_sent_again(
    hasty: Stack,
) -> None:
    started = time.time()
    with hasty.changed("IngestRole", denying_poison):
        hasty.put(POISON, markdown("Poison", "[QUEUE-POISON]", "Cannot be read for now."))
        for number, key in enumerate(HEALTHY):
            hasty.put(key, markdown(key, f"[QUEUE-{number}]", f"Healthy document {number}."))
        hasty.until_indexed(*HEALTHY)
        until(lambda: dead_letters(hasty), lambda count: count == 1)
        listed = hasty.documents("queue").keys()
    sqs = hasty.client("sqs")
    failed = hasty.log("ingest", started)
    dead = hasty.outputs["IngestDeadLetterQueueUrl"]
    (letter,) = sqs.receive_message(QueueUrl=dead)["Messages"]
    sqs.send_message(QueueUrl=hasty.resources["IngestQueue"], MessageBody=letter["Body"])
    sqs.delete_message(QueueUrl=dead, ReceiptHandle=letter["ReceiptHandle"])
    hasty.until_indexed(POISON)
    assert listed == set(HEALTHY)
    causes = [line["cause"] for line in failed if line["message"] == "ingest_failed"]
    assert causes == ["bucket did not answer (AccessDenied)"] * 3
    assert hasty.ask("QUEUE-POISON").body["primary"]["source"] == POISON


@pytest.mark.parametrize(
    "body",
    [
        "no JSON at all",
        "[" * 100_000,
        '{"Records": [{"s3": {"object": {"key": 5}}}]}',
        '{"Records": [{"s3": "x"}, null, {"s3": {"object": {"key": "queue/%FF%00.md"}}}]}',
        '{"Event": "s3:TestEvent"}',
    ],
    ids=["no JSON", "deep nesting", "key is a number", "keys that are none", "test event"],
)
def test_a_message_that_nobody_understands_fails_no_other(stack: Stack, body: str) -> None:
    stack.put("queue/neighbour.md", markdown("N", "[QUEUE-N]", f"Neighbour at {time.time()}."))
    event = {
        "Records": [
            sqs_record("strange", body),
            sqs_record("good", json.dumps(notification("a.md"))),
        ]
    }
    assert stack.invoke("IngestFunction", event) == {"batchItemFailures": []}
