"""The log: one row an invocation of lookup, with what it was graded on."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from kb.stores.dynamodb import answering, from_item, to_item

TOOL_NAME = "lookup_knowledge"


@dataclass(frozen=True, slots=True)
class Invocation:
    """One row. The two nullable columns came later: rows from before read as None."""

    invocation_id: str
    session_id: str | None
    query: str
    created_at: str
    """ISO 8601, UTC."""
    duration_ms: int
    found: bool
    retrieval_details: str
    """JSON object; kb.invocation says of what."""
    relevance_level: str | None = None
    dedup_reason: str | None = None
    tool_name: str = TOOL_NAME


class InvocationTable:
    """Methods raise Unavailable("log") when DynamoDB does not answer. `ttl` is in seconds."""

    def __init__(self, client: Any, table: str, *, ttl: float) -> None:
        self._client = client
        self._table = table
        self._ttl = ttl

    def record(self, invocation: Invocation, now: int) -> None:
        """Write the row, to be deleted `ttl` seconds after `now` (seconds since 1970)."""
        values = {field.name: getattr(invocation, field.name) for field in fields(Invocation)}
        item = {name: value for name, value in values.items() if value is not None}
        with answering("log"):
            self._client.put_item(
                TableName=self._table, Item=to_item(item | {"expires_at": now + int(self._ttl)})
            )

    def read_all(self) -> Iterator[Invocation]:
        """Every row, in no order."""
        with answering("log"):
            for page in self._client.get_paginator("scan").paginate(TableName=self._table):
                for item in map(from_item, page["Items"]):
                    yield _invocation(item)


def _invocation(item: dict[str, Any]) -> Invocation:
    values: dict[str, Any] = {field.name: item.get(field.name) for field in fields(Invocation)}
    values["retrieval_details"] = values["retrieval_details"] or "{}"
    return Invocation(**values)
