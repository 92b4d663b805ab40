"""What S3 and SQS say happened, read down to the keys to look at again."""

import json
import logging
from urllib.parse import unquote_plus

from kb.documents import is_document

logger = logging.getLogger(__name__)


def keys_in_body(body: object) -> list[str]:
    """Keys of the documents that the notification in a queue message's body names."""
    try:
        return keys_in(json.loads(body) if isinstance(body, str) else None)
    except (ValueError, RecursionError):
        return keys_in(None)


def keys_in(notification: object) -> list[str]:
    """Keys of the documents that an S3 notification names, decoded, each once.

    Anything else, s3:TestEvent too, names none and is no failure.
    """
    match notification:
        case {"Records": [*records]}:
            keys = [key for record in records if (key := _key_in(record))]
            return list(dict.fromkeys(filter(is_document, keys)))
        case {"Event": "s3:TestEvent"}:
            return []
        case _:
            logger.warning("message_ignored", extra={"cause": "it is no S3 notification"})
            return []


def _key_in(record: object) -> str:
    match record:
        case {"s3": {"object": {"key": str(encoded)}}}:
            try:
                return unquote_plus(encoded, errors="strict")
            except UnicodeDecodeError:
                cause = "its key is not UTF-8"
        case _:
            cause = "it names no key"
    logger.warning("record_ignored", extra={"cause": cause})
    return ""
