"""Queue messages and S3 notifications in, keys to look at again out."""

import json
import logging
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote_plus

from kb.documents import is_document
from kb.errors import KbError
from kb.wiring import ingest_parts

logger = logging.getLogger(__name__)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Handle SQS messages (failures reported one by one) or one S3 notification (raises)."""
    records = event.get("Records", [])
    messages = [record for record in records if record.get("eventSource") == "aws:sqs"]
    if not messages:
        for key in keys_of(event):
            _reconcile(key)
        return {"batchItemFailures": []}
    failures = []
    for message in messages:
        try:
            for key in keys_of(_parsed(message.get("body"))):
                _reconcile(key)
        except KbError as error:
            logger.warning("ingest_failed", extra={"cause": str(error)})
            ingest_parts().queue.delay_retry(message)
            failures.append({"itemIdentifier": message["messageId"]})
    return {"batchItemFailures": failures}


def keys_of(event: object) -> Iterator[str]:
    """Keys of documents in an S3 notification; anything else, s3:TestEvent too, has none."""
    records = event.get("Records") if isinstance(event, dict) else None
    for record in records if isinstance(records, list) else ():
        try:
            key = unquote_plus(record["s3"]["object"]["key"])
        except (KeyError, TypeError):
            continue
        if is_document(key):
            yield key


def _parsed(body: object) -> object:
    try:
        return json.loads(body) if isinstance(body, str) else None
    except ValueError:
        return None


def _reconcile(key: str) -> None:
    outcome = ingest_parts().ingest.reconcile(key)
    logger.info(
        "document_ingested" if outcome.changed else "document_unchanged",
        extra={"key": key, "status": outcome.status, "reason": outcome.reason},
    )
