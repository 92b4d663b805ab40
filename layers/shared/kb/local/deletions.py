"""The event of a removed object, which moto does not send for a versioned bucket as S3 does."""

import json
from typing import Any
from urllib.parse import quote_plus


def announce_removal(sqs: Any, queue_url: str, bucket: str, key: str) -> None:
    """Put S3's notification on the queue. `sqs` is a client of the local cloud."""
    record = {
        "eventSource": "aws:s3",
        "eventName": "ObjectRemoved:DeleteMarkerCreated",
        "s3": {"bucket": {"name": bucket}, "object": {"key": quote_plus(key, safe="/")}},
    }
    sqs.send_message(QueueUrl=queue_url, MessageBody=json.dumps({"Records": [record]}))
