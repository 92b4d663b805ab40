"""The queue's messages, taken to the ingest handler as Lambda's event source mapping does."""

import logging
import threading
from typing import Any

from kb.local.functions import Context, Handler

logger = logging.getLogger(__name__)

RETURN_SECONDS = 10
"""Until messages come back whose handler crashed."""
POLL_SECONDS = 0.5
"""Between looks at an empty queue. moto would hold a long poll while everybody waits."""


class EventSource:
    """`workers` batches of up to `batch_size` messages run at once, until `stop`."""

    def __init__(
        self, sqs: Any, queue_url: str, handler: Handler, *, workers: int, batch_size: int
    ) -> None:
        self._sqs = sqs
        self._queue_url = queue_url
        self._handler = handler
        self._batch_size = batch_size
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name=f"ingest-{number}", daemon=True)
            for number in range(workers)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Return when the batches under way are done."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def deliver_once(self) -> int:
        """Take one batch to the handler; how many messages it had."""
        messages = self._sqs.receive_message(
            QueueUrl=self._queue_url,
            MaxNumberOfMessages=self._batch_size,
            AttributeNames=["All"],
        ).get("Messages", [])
        if not messages:
            return 0
        try:
            answer = self._handler({"Records": [_record(m) for m in messages]}, Context("ingest"))
        except Exception:  # a fault of the function: Lambda would keep the messages too
            logger.exception("ingest_crashed")
            self._return(messages)
            return len(messages)
        failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        for message in messages:
            if message["MessageId"] not in failed:
                self._sqs.delete_message(
                    QueueUrl=self._queue_url, ReceiptHandle=message["ReceiptHandle"]
                )
        return len(messages)

    def _return(self, messages: list[dict[str, Any]]) -> None:
        """Let the messages come back soon, not after the queue's own timeout."""
        for message in messages:
            self._sqs.change_message_visibility(
                QueueUrl=self._queue_url,
                ReceiptHandle=message["ReceiptHandle"],
                VisibilityTimeout=RETURN_SECONDS,
            )

    def _work(self) -> None:
        while not self._stopping.is_set():
            if not self.deliver_once():
                self._stopping.wait(POLL_SECONDS)


def _record(message: dict[str, Any]) -> dict[str, Any]:
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": {},
        "eventSource": "aws:sqs",
    }
