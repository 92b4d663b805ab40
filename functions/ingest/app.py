"""Queue messages and S3 notifications in, keys to look at again out."""

import logging
from typing import Any

from kb.errors import KbError
from kb.notifications import keys_in, keys_in_body
from kb.wiring import IngestParts, ingest_parts

logger = logging.getLogger(__name__)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Handle SQS messages, failures reported one by one, or one S3 notification.

    A document that fails keeps no other from its turn. Of a notification that is no message, the
    first failure is raised at the end.
    """
    parts = ingest_parts()
    messages = _messages_in(event)
    if messages is None:
        if failures := _failures(parts, keys_in(event)):
            raise failures[0]
        return {"batchItemFailures": []}
    failed = []
    for message in messages:
        if _failures(parts, keys_in_body(message.get("body"))):
            parts.queue.delay_retry(message)
            failed.append({"itemIdentifier": message["messageId"]})
    return {"batchItemFailures": failed}


def _messages_in(event: object) -> list[dict[str, Any]] | None:
    match event:
        case {"Records": [{"eventSource": "aws:sqs"}, *_] as messages}:
            return messages
        case _:
            return None


def _failures(parts: IngestParts, keys: list[str]) -> list[Exception]:
    """Look at each key; what went wrong, if anything did."""
    failures: list[Exception] = []
    for key in keys:
        try:
            outcome = parts.ingest.reconcile(key)
        except KbError as error:
            logger.warning("ingest_failed", extra={"key": key, "cause": str(error)})
            failures.append(error)
        except Exception as error:  # a fault of ours: this document's, not its neighbours'
            logger.exception("ingest_crashed", extra={"key": key, "cause": repr(error)})
            failures.append(error)
        else:
            logger.info(
                "document_ingested" if outcome.changed else "document_unchanged",
                extra={"key": key, "status": outcome.status, "reason": outcome.reason},
            )
    return failures
