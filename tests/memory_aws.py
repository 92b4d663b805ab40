"""DynamoDB and S3 as far as ingest uses them, in memory: thousands of runs a minute, a hook a call.

tests/integration/test_memory_aws.py holds them to what moto does.
"""

import hashlib
import io
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

Item = dict[str, Any]
NO_HOOK: Callable[[str], None] = lambda call: None  # noqa: E731 - a value, replaced by tests


class MemoryDynamoDB:
    """Two tables of the template by name; conditions are those that our stores write.

    Items are replaced, never changed, so that none is copied.
    """

    def __init__(self, catalog: str, content: str, page: int = 3) -> None:
        self.before: Callable[[str], None] = NO_HOOK
        """Called before every call has any effect, with its name."""
        self.changes = 0
        """How many calls changed something."""
        self._tables: dict[str, dict[tuple[str, ...], Item]] = {catalog: {}, content: {}}
        self._keys = {catalog: ("key",), content: ("key", "item")}
        self._page = page

    def items(self, table: str) -> list[Item]:
        """All items, as they are now; no call of the service."""
        return [self._tables[table][key] for key in sorted(self._tables[table])]

    def get_item(self, *, TableName: str, Key: Item, ConsistentRead: bool) -> Item:
        self.before("get_item")
        found = self._tables[TableName].get(self._id(TableName, Key))
        return {"Item": found} if found else {}

    def batch_get_item(self, *, RequestItems: Item) -> Item:
        self.before("batch_get_item")
        [(table, request)] = RequestItems.items()
        found = (self._tables[table].get(self._id(table, key)) for key in request["Keys"])
        return {"Responses": {table: [item for item in found if item]}}

    def put_item(self, *, TableName: str, Item: Item, **condition: Any) -> None:
        self.before("put_item")
        identity = self._id(TableName, Item)
        self._check(self._tables[TableName].get(identity), condition)
        self._tables[TableName][identity] = Item
        self.changes += 1

    def update_item(
        self, *, TableName: str, Key: Item, UpdateExpression: str, **condition: Any
    ) -> None:
        self.before("update_item")
        identity = self._id(TableName, Key)
        item = self._tables[TableName].get(identity, {})
        self._check(item or None, condition)
        verb, removed = UpdateExpression.split()
        assert verb == "REMOVE"
        self._tables[TableName][identity] = {n: v for n, v in item.items() if n != removed}
        self.changes += 1

    def batch_write_item(self, *, RequestItems: dict[str, list[Item]]) -> Item:
        self.before("batch_write_item")
        [(table, requests)] = RequestItems.items()
        for request in requests:
            match request:
                case {"PutRequest": {"Item": item}}:
                    self._tables[table][self._id(table, item)] = item
                case {"DeleteRequest": {"Key": key}}:
                    self._tables[table].pop(self._id(table, key), None)
        self.changes += 1
        return {"UnprocessedItems": {}}

    def get_paginator(self, operation: str) -> "_Paginator":
        return _Paginator(self, operation)

    def pages(self, operation: str, request: Item) -> Iterator[Item]:
        """Each page is a call and sees what is there when it is read."""
        table, last = request["TableName"], None
        while True:
            self.before(operation)
            rest = [
                (self._order(item, request), item)
                for item in self._tables[table].values()
                if _is_wanted(item, request)
            ]
            rest = sorted((pair for pair in rest if last is None or pair[0] > last), key=_first)
            size = request.get("Limit", self._page)
            yield {"Items": [item for _, item in rest[:size]]}
            if len(rest) <= size:
                return
            last = rest[size - 1][0]

    def _id(self, table: str, item: Item) -> tuple[str, ...]:
        return tuple(item[name]["S"] for name in self._keys[table])

    def _order(self, item: Item, request: Item) -> tuple[Any, ...]:
        time = int(item["changed_at"]["N"]) if "IndexName" in request else 0
        return time, self._id(request["TableName"], item)

    @staticmethod
    def _check(item: Item | None, condition: Item) -> None:
        match condition.get("ConditionExpression"):
            case None:
                return
            case "attribute_not_exists(#key)":
                holds = item is None
            case "revision = :n":
                wanted = condition["ExpressionAttributeValues"][":n"]
                holds = item is not None and item["revision"] == wanted
            case other:
                raise AssertionError(f"no expression of ours: {other}")
        if not holds:
            raise ClientError({"Error": {"Code": "ConditionalCheckFailedException"}}, "write")


class _Paginator:
    def __init__(self, client: MemoryDynamoDB, operation: str) -> None:
        self._client = client
        self._operation = operation

    def paginate(self, **request: Any) -> Iterator[Item]:
        return self._client.pages(self._operation, request)


def _first(pair: tuple[Any, Item]) -> Any:
    return pair[0]


def _is_wanted(item: Item, request: Item) -> bool:
    values = request.get("ExpressionAttributeValues")
    match request.get("KeyConditionExpression"):
        case None:
            return True
        case "#key = :key AND #item BETWEEN :first AND :end":
            first, end = values[":first"]["S"], values[":end"]["S"]
            return item["key"] == values[":key"] and first <= item["item"]["S"] <= end
        case "feed = :feed AND changed_at >= :since":
            return int(item["changed_at"]["N"]) >= int(values[":since"]["N"])
        case other:
            raise AssertionError(f"no expression of ours: {other}")


class MemoryS3:
    """One versioned bucket."""

    def __init__(self) -> None:
        self.before: Callable[[str], None] = NO_HOOK
        self._versions: dict[str, list[bytes | None]] = {}

    def put(self, key: str, data: bytes) -> None:
        self._versions.setdefault(key, []).append(data)

    def delete(self, key: str) -> None:
        """Put a delete marker on top."""
        self._versions.setdefault(key, []).append(None)

    def undelete(self, key: str) -> bool:
        """Take the delete marker off; whether there was one on top."""
        versions = self._versions.get(key, [])
        if not versions or versions[-1] is not None:
            return False
        versions.pop()
        return True

    def newest(self, key: str) -> bytes | None:
        return (self._versions.get(key) or [None])[-1]

    def get_object(self, *, Bucket: str, Key: str) -> Item:
        self.before("get_object")
        data = self._found(Key, "NoSuchKey")
        return {
            "Body": io.BytesIO(data),
            "ContentLength": len(data),
            "ETag": _etag(data),
            "LastModified": datetime(2027, 1, 15, 8, tzinfo=UTC),
        }

    def head_object(self, *, Bucket: str, Key: str) -> Item:
        self.before("head_object")
        return {"ETag": _etag(self._found(Key, "404"))}

    def _found(self, key: str, code: str) -> bytes:
        data = self.newest(key)
        if data is None:
            raise ClientError({"Error": {"Code": code}}, "read")
        return data


def _etag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'  # noqa: S324 - S3's own choice
