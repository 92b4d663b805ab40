"""What is not in order with one document, judged from what every store holds of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum

from kb.catalog_row import REASON_LENGTH
from kb.characters import shorten
from kb.documents import CatalogRow, Status, Version

TOMBSTONE_GRACE = 3 * 86400
"""Seconds after its time before a tombstone is overdue; DynamoDB takes days to remove one."""

NOT_OF_CONTENT = {"revision", "changed_at", "served", "updated_at", "cleanup_pending", "expires_at"}
"""Fields of a row that the document's content does not decide."""


class Kind(StrEnum):
    """What a finding is of."""

    NOT_INGESTED = "not_ingested"
    """A document of the bucket that the catalog does not have."""
    OUTDATED = "outdated"
    """The object's content is not what the row tells of."""
    OLD_RECIPE = "old_recipe"
    """Made by other sizes or another chunker than those that hold now."""
    ROW_DIFFERS = "row_differs"
    """The row is of this content, but not the one that ingest writes for it."""
    NO_OBJECT = "no_object"
    """A row whose document the bucket does not have."""
    CHUNKS_MISSING = "chunks_missing"
    PARTS_MISSING = "parts_missing"
    LEFT_OVER = "left_over"
    """Chunks or parts that no row serves."""
    CLEANUP_PENDING = "cleanup_pending"
    """Nothing is left over, but the row does not know."""
    TOMBSTONE_OVERDUE = "tombstone_overdue"
    FAILED = "failed"
    """The document needs its writer."""


WRITTEN_ANEW = {Kind.ROW_DIFFERS, Kind.CHUNKS_MISSING, Kind.PARTS_MISSING}
"""What ingest would not see, since the row says what the object is."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not in order."""

    key: str
    kind: Kind
    detail: str


@dataclass(frozen=True, slots=True)
class Expected:
    """What an undisturbed ingest makes of an object."""

    row: CatalogRow
    """Its revisions are 0, whatever they come to be."""
    chunks: int


@dataclass(frozen=True, slots=True)
class Held:
    """What the stores hold of one key."""

    key: str
    row: CatalogRow | None
    expected: Expected | str | None
    """Of the object that is there; why it cannot be indexed; None where there is none."""
    chunks: Mapping[Version, int]
    """How many of each version the index holds."""
    items: Mapping[Version, int]
    """How many of each version the content table holds."""
    items_served: int
    """How many items the version has that the row serves."""


def diagnose(held: Held, now: float) -> list[Finding]:
    """All that is not in order; `now` in seconds since 1970."""
    found = [*_of_row(held, now), *_of_served(held), *_left_over(held)]
    if held.row and held.row.cleanup_pending and not _unserved(held):
        found.append((Kind.CLEANUP_PENDING, "nothing is left over, the row only says so"))
    return [Finding(held.key, kind, detail) for kind, detail in found]


def highest_left_over(held: Held) -> int:
    """The highest revision of what no row serves; 0 where there is none."""
    return max((version.revision for version in _unserved(held)), default=0)


_Findings = Iterator[tuple[Kind, str]]


def _of_row(held: Held, now: float) -> _Findings:
    match held.row, held.expected:
        case None | CatalogRow(status=Status.DELETED), Expected() | str():
            yield Kind.NOT_INGESTED, "the bucket has it, the catalog has not"
        case CatalogRow(status=Status.DELETED, expires_at=int(time)), None if (
            time + TOMBSTONE_GRACE < now
        ):
            yield Kind.TOMBSTONE_OVERDUE, f"by {(now - time) / 86400:.0f} days"
        case CatalogRow(status=status), None if status is not Status.DELETED:
            yield Kind.NO_OBJECT, "the catalog has it, the bucket has not"
        case CatalogRow() as row, str(refusal):
            is_told = row.status is Status.FAILED and row.reason == shorten(refusal, REASON_LENGTH)
            yield (Kind.FAILED if is_told else Kind.OUTDATED), refusal
        case CatalogRow(status=Status.FAILED) as row, Expected():
            # What only embedding shows is not expected here, so the reason may still hold.
            yield Kind.FAILED, row.reason
        case CatalogRow() as row, Expected() as expected:
            yield from _differences(row, expected)


def _differences(row: CatalogRow, expected: Expected) -> _Findings:
    if row.content_hash != expected.row.content_hash:
        yield Kind.OUTDATED, "the bucket has another content than the catalog"
    elif not _is_of_recipe(row, expected):
        yield Kind.OLD_RECIPE, "cut by another chunker, or into other sizes"
    elif names := [
        field.name
        for field in fields(CatalogRow)
        if field.name not in NOT_OF_CONTENT
        and getattr(row, field.name) != getattr(expected.row, field.name)
    ]:
        yield Kind.ROW_DIFFERS, f"in {', '.join(names)}"


def _of_served(held: Held) -> _Findings:
    """Whether what the row serves is whole; of another content than the object's, what is sure."""
    row = held.row
    if row is None or row.served is None:
        return
    chunks, items = held.chunks.get(row.served, 0), held.items.get(row.served, 0)
    if isinstance(held.expected, Expected) and _is_of_recipe(row, held.expected):
        if chunks != held.expected.chunks:
            yield Kind.CHUNKS_MISSING, f"{chunks} of {held.expected.chunks} are in the vector index"
    elif row.parts and not chunks:
        yield Kind.CHUNKS_MISSING, "none is in the vector index"
    if items != held.items_served:
        yield Kind.PARTS_MISSING, f"{items} of {held.items_served} items are in the content table"


def _left_over(held: Held) -> _Findings:
    reached = held.row.revision if held.row else 0
    for version in _unserved(held):
        counts = (held.chunks.get(version, 0), "chunks"), (held.items.get(version, 0), "items")
        what = " and ".join(f"{count} {name}" for count, name in counts if count)
        is_newer = version.revision > reached and held.expected is not None
        attempt = ", of an attempt that may be under way" if is_newer else ""
        yield Kind.LEFT_OVER, f"{what} of revision {version.revision}{attempt}"


def _unserved(held: Held) -> list[Version]:
    served = held.row.served if held.row else None
    versions = (held.chunks.keys() | held.items.keys()) - {served}
    return sorted(versions, key=lambda version: (version.revision, version.fingerprint))


def _is_of_recipe(row: CatalogRow, expected: Expected) -> bool:
    served, wanted = row.served, expected.row.served
    return served is not None and wanted is not None and served.fingerprint == wanted.fingerprint
