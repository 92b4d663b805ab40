"""Parts, outlines and metadata of documents, under the version that wrote them."""

import json
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from kb.documents import CatalogRow, Outline, Part, Section, Version
from kb.errors import Refused
from kb.stores.dynamodb import Item, answering, from_item, read_all, to_item, write_all

OUTLINE = "outline"
METADATA = "metadata"
FIRST, LAST = "0", "~"
"""What every id lies between."""
NAMES = {
    OUTLINE: "the list of the document's sections",
    METADATA: "the document's frontmatter",
}
"""As its writer calls them."""
ITEM_BYTES_MOST = 380_000
"""Compressed bytes of one item; DynamoDB takes 400 KB with names and keys."""


class ContentTable:
    """Every method raises Unavailable("content") when DynamoDB does not answer."""

    def __init__(self, client: Any, table: str) -> None:
        self._client = client
        self._table = table

    def write(self, items: Iterable[Item]) -> None:
        """Write what `content_items` made; twice leaves it once."""
        self._write_all({"PutRequest": {"Item": to_item(item)}} for item in items)

    def read(
        self, wanted: Sequence[tuple[CatalogRow, Collection[int]]]
    ) -> dict[str, tuple[Outline, dict[int, Part]]]:
        """Outline, and those of the parts that there are, of each row's served version by key.

        One batch, so at most 100 outlines and parts in all. A document whose version is gone (a
        newer one came) is absent.
        """
        served = [(row.key, row.served, numbers) for row, numbers in wanted if row.served]
        ids = {
            (key, _item_id(version, name))
            for key, version, numbers in served
            for name in (OUTLINE, *map(_part_name, numbers))
        }
        with answering("content"):
            found = read_all(
                self._client,
                self._table,
                [to_item({"key": key, "item": item}) for key, item in sorted(ids)],
            )
        items = {(item["key"], item["item"]): item for item in map(from_item, found)}
        answer: dict[str, tuple[Outline, dict[int, Part]]] = {}
        for key, version, numbers in served:
            if outline := items.get((key, _item_id(version, OUTLINE))):
                parts = {
                    number: Part(number, part["text"], part["section"])
                    for number in numbers
                    if (part := items.get((key, _item_id(version, _part_name(number)))))
                }
                answer[key] = (_outline(outline), parts)
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

    def remove_others(self, key: str, kept: Version | None, through: int) -> None:
        """Remove the document's items of revisions up to `through`, but those of version `kept`.

        Items of higher revisions are a newer writer's and stay.
        """
        newer = _revision(through + 1)
        ranges = [(FIRST, newer)]
        if kept:
            # What stays is not read: it is most of what there is.
            ranges = [(FIRST, _item_id(kept, "")), (_after(kept), newer)]
        self._write_all(
            {"DeleteRequest": {"Key": to_item({"key": key, "item": item})}}
            for first, end in ranges
            for page in self._pages(key, first, end)
            for item in page
        )

    def versions(self, key: str | None = None) -> Iterator[tuple[str, Version, int]]:
        """Each version of each document (None: of all) that has items, and how many it has.

        Of one document it is as it is now (consistent).
        """
        with answering("content"):
            if key is None:
                pages = self._client.get_paginator("scan").paginate(
                    TableName=self._table,
                    ProjectionExpression="#key, #item",
                    ExpressionAttributeNames={"#key": "key", "#item": "item"},
                )
                ids = ((item["key"], item["item"]) for page in pages for item in _plain(page))
                found = Counter((of, _version(item)) for of, item in ids)
            else:
                pages = self._pages(key, FIRST, LAST)
                found = Counter((key, _version(item)) for page in pages for item in page)
        for (of, version), count in found.items():
            yield of, version, count

    def has_newer(self, key: str, revision: int) -> bool:
        """Whether items of a higher revision are there (consistent)."""
        return any(self._pages(key, _revision(revision + 1), LAST, Limit=1))

    def _pages(self, key: str, first: str, end: str, **limit: int) -> Iterator[list[str]]:
        """Ids of the document's items from `first` up to `end`, neither of which is one."""
        with answering("content"):
            pages = self._client.get_paginator("query").paginate(
                TableName=self._table,
                ConsistentRead=True,
                KeyConditionExpression="#key = :key AND #item BETWEEN :first AND :end",
                ProjectionExpression="#item",
                ExpressionAttributeNames={"#key": "key", "#item": "item"},
                ExpressionAttributeValues=to_item({":key": key, ":first": first, ":end": end}),
                **limit,
            )
            for page in pages:
                yield [from_item(item)["item"] for item in page["Items"]]

    def _write_all(self, requests: Iterable[Item]) -> None:
        with answering("content"):
            write_all(self._client, self._table, requests)


def content_items(
    key: str,
    version: Version,
    parts: Iterable[Part],
    outline: Outline,
    metadata: Mapping[str, object],
) -> list[Item]:
    """What a lookup reads of one version. Raises Refused where an item would be too large."""
    items = [
        _packed(key, version, OUTLINE, asdict(outline)),
        _packed(key, version, METADATA, metadata),
    ]
    for part in parts:
        _check_size(f"part {part.number}", len(part.text.encode()))
        items.append(
            {
                "key": key,
                "item": _item_id(version, _part_name(part.number)),
                "text": part.text,
                "section": part.section,
            }
        )
    return items


def items_of(row: CatalogRow) -> int:
    """How many items the row's served version has."""
    return row.parts + len(NAMES)


def _revision(number: int) -> str:
    """Twelve digits, so that ids sort as revisions do."""
    return f"{number:012d}"


def _item_id(version: Version, name: str) -> str:
    return f"{_revision(version.revision)}#{version.fingerprint}#{name}"


def _version(item_id: str) -> Version:
    revision, fingerprint, _ = item_id.split("#", 2)
    return Version(int(revision), fingerprint)


def _plain(page: Item) -> Iterator[Item]:
    return map(from_item, page["Items"])


def _after(version: Version) -> str:
    """What all ids of the version are below, and those of later versions above."""
    return f"{_revision(version.revision)}#{version.fingerprint}$"


def _part_name(number: int) -> str:
    return f"part#{number:06d}"


def _packed(key: str, version: Version, name: str, value: object) -> Item:
    packed = zlib.compress(json.dumps(value, ensure_ascii=False, default=str).encode())
    _check_size(NAMES[name], len(packed))
    return {"key": key, "item": _item_id(version, name), "packed": packed}


def _check_size(what: str, size: int) -> None:
    if size > ITEM_BYTES_MOST:
        raise Refused(f"{what} takes {size:,} bytes; at most {ITEM_BYTES_MOST:,} can be stored")


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
