"""The catalog: one row a document, the commit point of every ingest."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from kb.documents import CatalogRow, Status, Version
from kb.errors import Conflict
from kb.stores.dynamodb import (
    BATCH_READ_MOST,
    Item,
    answering,
    batches,
    from_item,
    read_all,
    to_item,
    write_if,
)

FEED = "catalog"
"""The one partition of the index by change time: all rows, read from a time on."""
_DEFAULTS = {field.name: field.default for field in fields(CatalogRow)}


class CatalogTable:
    """Every method raises Unavailable("catalog") when DynamoDB does not answer."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def read(self, key: str) -> CatalogRow | None:
        """The row as it is now (consistent)."""
        with answering("catalog"):
            found = self._client.get_item(
                TableName=self._table, Key=to_item({"key": key}), ConsistentRead=True
            )
        return _from_item(found["Item"]) if "Item" in found else None

    def read_many(self, keys: Sequence[str]) -> dict[str, CatalogRow]:
        """The rows as they are now (consistent), by key; unknown keys are absent."""
        rows: dict[str, CatalogRow] = {}
        with answering("catalog"):
            for batch in batches(dict.fromkeys(keys), BATCH_READ_MOST):
                found = read_all(self._client, self._table, [to_item({"key": k}) for k in batch])
                rows |= {row.key: row for row in map(_from_item, found)}
        return rows

    def commit(self, row: CatalogRow, expected_revision: int) -> None:
        """Write the whole row if the stored one still has `expected_revision` (0: there is none).

        Raises Conflict where it has not.
        """
        guard: dict[str, Any] = (
            {
                "ConditionExpression": "revision = :n",
                "ExpressionAttributeValues": to_item({":n": expected_revision}),
            }
            if expected_revision
            else {
                "ConditionExpression": "attribute_not_exists(#key)",
                "ExpressionAttributeNames": {"#key": "key"},
            }
        )
        put = self._client.put_item
        if not write_if("catalog", put, TableName=self._table, Item=_to_item(row), **guard):
            raise Conflict(row.key)

    def finish_cleanup(self, key: str, revision: int) -> None:
        """Note that nothing older is left; a row that moved on keeps its own note."""
        write_if(
            "catalog",
            self._client.update_item,
            TableName=self._table,
            Key=to_item({"key": key}),
            UpdateExpression="REMOVE cleanup_pending",
            ConditionExpression="revision = :n",
            ExpressionAttributeValues=to_item({":n": revision}),
        )

    def remove(self, row: CatalogRow) -> None:
        """Remove the row, unless it moved on."""
        write_if(
            "catalog",
            self._client.delete_item,
            TableName=self._table,
            Key=to_item({"key": row.key}),
            ConditionExpression="revision = :n",
            ExpressionAttributeValues=to_item({":n": row.revision}),
        )

    def load(self) -> Iterator[CatalogRow]:
        """Every row, tombstones too, page by page (consistent)."""
        with answering("catalog"):
            pages = self._client.get_paginator("scan").paginate(
                TableName=self._table, ConsistentRead=True
            )
            for page in pages:
                yield from map(_from_item, page["Items"])

    def changed_since(self, milliseconds: int) -> Iterator[CatalogRow]:
        """Rows stamped at or after that time, oldest first (eventually consistent)."""
        with answering("catalog"):
            pages = self._client.get_paginator("query").paginate(
                TableName=self._table,
                IndexName="changes",
                KeyConditionExpression="feed = :feed AND changed_at >= :since",
                ExpressionAttributeValues=to_item({":feed": FEED, ":since": milliseconds}),
            )
            for page in pages:
                yield from map(_from_item, page["Items"])


def _to_item(row: CatalogRow) -> Item:
    """The row without what equals its default, plus the feed it is listed in."""
    values: dict[str, Any] = {"feed": FEED}
    for name, default in _DEFAULTS.items():
        value = getattr(row, name)
        if value != default:
            values[name] = list(value) if isinstance(value, tuple) else value
    if row.served:
        values["served"] = {
            "revision": row.served.revision,
            "fingerprint": row.served.fingerprint,
        }
    return to_item(values)


def _from_item(item: Item) -> CatalogRow:
    values = from_item(item)
    values["status"] = Status(values["status"])
    values["keywords"] = tuple(values.get("keywords", ()))
    if served := values.get("served"):
        values["served"] = Version(served["revision"], served["fingerprint"])
    return CatalogRow(**{name: value for name, value in values.items() if name in _DEFAULTS})
