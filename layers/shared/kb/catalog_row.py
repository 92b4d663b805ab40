"""What the catalog says of a document: its L0 entry, its ingest status and the reason for it."""

from dataclasses import replace
from itertools import accumulate, takewhile

from kb.characters import shorten
from kb.chunking import Pieces
from kb.documents import CatalogRow, Document, Status, Version, domain_of

FIELD_LENGTH = 300
"""Characters of a row's title, domain, date, version and author at most; answers repeat them."""
REASON_LENGTH = 1000
"""Characters of a row's reason at most; a document can have thousands of problems."""
REASON_BYTES = 4 * REASON_LENGTH
"""Room kept for the reason: UTF-8 takes at most four bytes a character."""
KEYWORD_BYTES = 3
"""Of an item, beside each keyword's text."""


def row_of(
    key: str,
    version: Version,
    document: Document,
    pieces: Pieces,
    stored_at: str,
    most_bytes: int,
) -> CatalogRow:
    """The row, at most `most_bytes` long, that commits this version of a document.

    `stored_at` (ISO 8601) is its date where the author gives none.
    """
    fields = document.frontmatter
    problems = list(document.problems)

    def field(name: str, value: str) -> str:
        if len(value) > FIELD_LENGTH:
            problems.append(f"{name} is cut to {FIELD_LENGTH} characters, it has {len(value)}")
        return shorten(value, FIELD_LENGTH)

    first_heading = pieces.outline.sections[0].title if pieces.outline.sections else ""
    row = CatalogRow(
        key=key,
        revision=version.revision,
        status=Status.EMPTY,
        changed_at=0,
        served=version,
        content_hash=document.content_hash,
        title=field("title", fields.title) if fields else shorten(first_heading, FIELD_LENGTH),
        summary=fields.summary if fields else "",
        domain=domain_of(key, field("category", fields.category) if fields else ""),
        updated_at=(field("lastUpdated", fields.last_updated) if fields else "") or stored_at,
        version=field("version", fields.version) if fields else "",
        author=field("author", fields.author) if fields else "",
        parts=len(pieces.parts),
        cleanup_pending=True,
    )
    wanted = fields.keywords if fields else ()
    keywords = _fitting(wanted, most_bytes - _size(row) - REASON_BYTES)
    if len(keywords) < len(wanted):
        problems.append(
            f"only the first {len(keywords)} of {len(wanted)} keywords are kept: a catalog row has"
            f" at most {most_bytes:,} bytes"
        )
    if pieces.chunks:
        status = Status.INDEXED if keywords else Status.SEMANTIC_ONLY
    else:
        status = Status.EMPTY
        problems.append("there is no text below the frontmatter" if fields else "there is no text")
    reason = shorten("; ".join(problems), REASON_LENGTH)
    return replace(row, status=status, keywords=keywords, reason=reason)


def failed_row(key: str, row: CatalogRow | None, reason: str) -> CatalogRow:
    """`row` with the reason why the newest version cannot be indexed; what it serves it keeps.

    The row itself where it says so already.
    """
    reason = shorten(reason, REASON_LENGTH)
    if row and row.status is Status.FAILED and row.reason == reason:
        return row
    revision = row.revision + 1 if row else 1
    if row is None or row.served is None:
        row = CatalogRow(key, revision, Status.FAILED, changed_at=0, domain=domain_of(key))
    return replace(
        row, revision=revision, status=Status.FAILED, reason=reason, cleanup_pending=True
    )


def tombstone(key: str, row: CatalogRow | None, expires_at: int) -> CatalogRow:
    """The row of a document that is gone; `row` itself where it says so already."""
    if row and row.status is Status.DELETED:
        return row
    return CatalogRow(
        key,
        row.revision + 1 if row else 1,
        Status.DELETED,
        changed_at=0,
        cleanup_pending=True,
        expires_at=expires_at,
    )


def _size(row: CatalogRow) -> int:
    """About the bytes of the row's item, not less."""
    return len(repr(row).encode())


def _fitting(keywords: tuple[str, ...], room: int) -> tuple[str, ...]:
    """The first keywords, as many as take at most `room` bytes together."""
    sizes = accumulate(len(keyword.encode()) + KEYWORD_BYTES for keyword in keywords)
    return keywords[: sum(1 for _ in takewhile(lambda size: size <= room, sizes))]
