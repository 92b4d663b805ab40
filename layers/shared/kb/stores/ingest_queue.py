"""When a failed message of the ingest queue comes back."""

import logging
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from kb.settings import IngestSettings

logger = logging.getLogger(__name__)


def delay_retry(client: Any, settings: IngestSettings, message: Mapping[str, Any]) -> None:
    """Let the message come back after a growing delay instead of the queue's whole timeout.

    Doubles from `retry_delay` with every receipt up to `retry_delay_most`. Where SQS refuses, the
    queue's own timeout holds.
    """
    if not settings.ingest_queue_url:
        return
    receipts = int(message.get("attributes", {}).get("ApproximateReceiveCount", "1"))
    delay = min(settings.retry_delay * 2 ** min(receipts - 1, 20), settings.retry_delay_most)
    try:
        client.change_message_visibility(
            QueueUrl=settings.ingest_queue_url,
            ReceiptHandle=message["receiptHandle"],
            VisibilityTimeout=int(delay),
        )
    except (BotoCoreError, ClientError) as error:
        logger.warning("retry_not_delayed", extra={"cause": type(error).__name__})
