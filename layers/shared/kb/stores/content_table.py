"""Parts, outlines and metadata of documents, under the version that wrote them."""

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from kb.documents import CatalogRow, Outline, Part, Section, Version
from kb.errors import Refused
from kb.stores.dynamodb import Item, answering, from_item, read_all, to_item, write_all

OUTLINE = "outline"
METADATA = "metadata"
ITEM_BYTES_MOST = 380_000
"""Compressed bytes of one item; DynamoDB takes 400 KB with names and keys."""


class ContentTable:
    """Every method raises Unavailable("content") when DynamoDB does not answer."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def write(
        self,
        key: str,
        version: Version,
        parts: Iterable[Part],
        outline: Outline,
        metadata: Mapping[str, object],
    ) -> None:
        """Write everything a lookup reads of one version; twice leaves it once.

        Raises Refused where the outline or metadata is larger than an item can be.
        """
        items = [
            _packed(key, version, OUTLINE, asdict(outline)),
            _packed(key, version, METADATA, metadata),
        ]
        items += (
            {
                "key": key,
                "item": _item_id(version, _part_name(part.number)),
                "text": part.text,
                "section": part.section,
            }
            for part in parts
        )
        with answering("content"):
            write_all(
                self._client,
                self._table,
                ({"PutRequest": {"Item": to_item(item)}} for item in items),
            )

    def read(
        self, wanted: Sequence[tuple[CatalogRow, int]]
    ) -> dict[str, tuple[Outline, Part | None]]:
        """Outline and the part of that number of each row's served version by key, in one batch.

        A document whose version is gone (a newer one came) is absent; a part that the document
        does not have is None.
        """
        served = [(row.key, row.served, number) for row, number in wanted if row.served]
        ids = {
            (key, _item_id(version, name))
            for key, version, number in served
            for name in (OUTLINE, _part_name(number))
        }
        with answering("content"):
            found = read_all(
                self._client,
                self._table,
                [to_item({"key": key, "item": item}) for key, item in sorted(ids)],
            )
        items = {(item["key"], item["item"]): item for item in map(from_item, found)}
        answer: dict[str, tuple[Outline, Part | None]] = {}
        for key, version, number in served:
            if outline := items.get((key, _item_id(version, OUTLINE))):
                part = items.get((key, _item_id(version, _part_name(number))))
                answer[key] = (
                    _outline(outline),
                    Part(number, part["text"], part["section"]) if part else None,
                )
        return answer

    def read_outline(self, key: str, version: Version) -> tuple[Outline, dict[str, object]] | None:
        """Outline and metadata, or None where that version is gone."""
        names = (OUTLINE, METADATA)
        with answering("content"):
            found = read_all(
                self._client,
                self._table,
                [to_item({"key": key, "item": _item_id(version, name)}) for name in names],
            )
        items = {item["item"]: item for item in map(from_item, found)}
        outline, metadata = (items.get(_item_id(version, name)) for name in names)
        if outline is None or metadata is None:
            return None
        return _outline(outline), _unpacked(metadata)

    def remove_version(self, key: str, version: Version) -> None:
        """Remove exactly this version's items."""
        prefix = _item_id(version, "")
        self._remove(key, (item for item in self._ids(key) if item.startswith(prefix)))

    def remove_older(self, key: str, version: Version) -> None:
        """Remove lower revisions, and this one under another fingerprint; never a newer one."""
        ours = _item_id(version, "")
        newer = _revision(version.revision + 1)
        self._remove(
            key, (item for item in self._ids(key) if item < newer and not item.startswith(ours))
        )

    def _ids(self, key: str) -> Iterator[str]:
        with answering("content"):
            pages = self._client.get_paginator("query").paginate(
                TableName=self._table,
                ConsistentRead=True,
                KeyConditionExpression="#key = :key",
                ProjectionExpression="#item",
                ExpressionAttributeNames={"#key": "key", "#item": "item"},
                ExpressionAttributeValues=to_item({":key": key}),
            )
            for page in pages:
                yield from (from_item(item)["item"] for item in page["Items"])

    def _remove(self, key: str, ids: Iterable[str]) -> None:
        with answering("content"):
            write_all(
                self._client,
                self._table,
                ({"DeleteRequest": {"Key": to_item({"key": key, "item": i})}} for i in ids),
            )


def _revision(number: int) -> str:
    """Twelve digits, so that ids sort as revisions do."""
    return f"{number:012d}"


def _item_id(version: Version, name: str) -> str:
    return f"{_revision(version.revision)}#{version.fingerprint}#{name}"


def _part_name(number: int) -> str:
    return f"part#{number:06d}"


def _packed(key: str, version: Version, name: str, value: object) -> Item:
    packed = zlib.compress(json.dumps(value, ensure_ascii=False, default=str).encode())
    if len(packed) > ITEM_BYTES_MOST:
        raise Refused(f"the document's {name} is larger than {ITEM_BYTES_MOST:,} bytes")
    return {"key": key, "item": _item_id(version, name), "packed": packed}


def _unpacked(item: Item) -> Any:
    return json.loads(zlib.decompress(bytes(item["packed"])))


def _outline(item: Item) -> Outline:
    value = _unpacked(item)
    return Outline(
        value["parts"],
        tuple(Section(**section) for section in value["sections"]),
        value["names"],
        tuple(value["digests"]),
    )
