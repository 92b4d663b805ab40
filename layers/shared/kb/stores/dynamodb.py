"""DynamoDB's wire format and failures, for the four tables' files."""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from boto3.dynamodb.types import TypeSerializer
from botocore.exceptions import BotoCoreError, ClientError

from kb.errors import Unavailable

Item = dict[str, Any]
T = TypeVar("T")

BATCH_WRITE_MOST = 25
"""Requests in one BatchWriteItem; the service's limit."""
BATCH_READ_MOST = 100
"""Keys in one BatchGetItem; the service's limit."""
BATCH_ATTEMPTS = 6
"""Tries of what a batch left unprocessed: about 3 s in all, then the caller's retry takes over."""

_serialize = TypeSerializer().serialize


def to_item(values: Mapping[str, Any]) -> Item:
    """Plain values as DynamoDB's typed ones."""
    return {name: _serialize(value) for name, value in values.items()}


def from_item(item: Mapping[str, Mapping[str, Any]]) -> Item:
    """DynamoDB's typed values as plain ones; numbers as int, for ours are whole."""
    return {name: _plain(typed) for name, typed in item.items()}


def _plain(typed: Mapping[str, Any]) -> Any:
    [(kind, value)] = typed.items()
    match kind:
        case "N":
            return int(value)
        case "L":
            return [_plain(inner) for inner in value]
        case "M":
            return from_item(value)
        case "SS":
            return set(value)
        case "NULL":
            return None
        case _:
            return value


class Throttled(Exception):
    """The service left items of a batch unprocessed, time and again."""


@contextmanager
def answering(what: str) -> Iterator[None]:
    """Turn botocore's failures into Unavailable(what)."""
    try:
        yield
    except ClientError as error:
        raise Unavailable(what, error.response["Error"]["Code"]) from error
    except (BotoCoreError, Throttled) as error:
        raise Unavailable(what, type(error).__name__) from error


def write_if(what: str, operation: Callable[..., Any], **arguments: Any) -> bool:
    """Do a conditional write; False where its condition did not hold. Raises Unavailable(what)."""
    with answering(what):
        try:
            operation(**arguments)
        except ClientError as error:
            if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                return False
            raise
    return True


def batches(values: Iterable[T], size: int) -> Iterator[Sequence[T]]:
    """`values` in lists of at most `size`."""
    iterator = iter(values)
    while batch := list(islice(iterator, size)):
        yield batch


def write_all(
    client: Any, table: str, requests: Iterable[Item], sleep: Callable[[float], None] = time.sleep
) -> None:
    """BatchWriteItem for any number of put and delete requests, unprocessed ones retried.

    Raises Throttled where some stay unprocessed; all botocore's errors are the caller's.
    """
    for batch in batches(requests, BATCH_WRITE_MOST):
        left: Sequence[Item] = batch
        for attempt in range(BATCH_ATTEMPTS):
            answer = client.batch_write_item(RequestItems={table: left})
            left = answer.get("UnprocessedItems", {}).get(table, [])
            if not left:
                break
            _back_off(attempt, sleep)
        else:
            raise Throttled


def read_all(
    client: Any, table: str, keys: Sequence[Item], sleep: Callable[[float], None] = time.sleep
) -> list[Item]:
    """Consistent BatchGetItem of one batch, unprocessed keys retried; missing ones are absent.

    Raises Throttled where some stay unprocessed; all botocore's errors are the caller's.
    """
    found: list[Item] = []
    left: Sequence[Item] = keys
    for attempt in range(BATCH_ATTEMPTS):
        answer = client.batch_get_item(RequestItems={table: {"Keys": left, "ConsistentRead": True}})
        found += answer["Responses"].get(table, [])
        left = answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", [])
        if not left:
            return found
        _back_off(attempt, sleep)
    raise Throttled


def _back_off(attempt: int, sleep: Callable[[float], None]) -> None:
    sleep(random.uniform(0.5, 1) * 0.05 * 2**attempt)  # noqa: S311 - jitter, not a secret
