"""When a failed message of the ingest queue comes back."""

import logging
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

logger = logging.getLogger(__name__)


class IngestQueue:
    """`delay` and `delay_most` are in seconds; without a `url` the queue's own timeout holds."""

    def __init__(self, client: Any, url: str, *, delay: float, delay_most: float) -> None:
        self._client = client
        self._url = url
        self._delay = delay
        self._delay_most = delay_most

    def delay_retry(self, message: Mapping[str, Any]) -> None:
        """Let a failed message come back sooner than the queue's whole timeout.

        The delay doubles with every receipt. Where SQS refuses, the queue's timeout holds.
        """
        if not self._url:
            return
        receipts = int(message.get("attributes", {}).get("ApproximateReceiveCount", "1"))
        delay = min(self._delay * 2 ** min(receipts - 1, 20), self._delay_most)
        try:
            self._client.change_message_visibility(
                QueueUrl=self._url,
                ReceiptHandle=message["receiptHandle"],
                VisibilityTimeout=int(delay),
            )
        except (BotoCoreError, ClientError) as error:
            logger.warning("retry_not_delayed", extra={"cause": type(error).__name__})
