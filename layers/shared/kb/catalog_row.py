"""What the catalog says of a document: its L0 entry, its status and the reason for it."""

from dataclasses import replace
from itertools import accumulate

from kb.chunking import Pieces
from kb.documents import CatalogRow, Document, Status, Version, domain_of

REASON_LENGTH_MOST = 1000
"""Characters of a row's reason; a document can have thousands of problems."""
REASON_BYTES = 4 * REASON_LENGTH_MOST
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
    first_heading = pieces.outline.sections[0].title if pieces.outline.sections else ""
    row = CatalogRow(
        key=key,
        revision=version.revision,
        status=_status(document, pieces),
        changed_at=0,
        served=version,
        content_hash=document.content_hash,
        title=fields.title if fields else first_heading,
        summary=fields.summary if fields else "",
        domain=domain_of(key, fields.category if fields else ""),
        updated_at=(fields.last_updated if fields else "") or stored_at,
        version=fields.version if fields else "",
        author=fields.author if fields else "",
        parts=len(pieces.parts),
        cleanup_pending=True,
    )
    problems = list(document.problems)
    keywords = fields.keywords if fields else ()
    fitting = _fitting(keywords, most_bytes - _size(row) - REASON_BYTES)
    if fitting < len(keywords):
        problems.append(
            f"only the first {fitting} of {len(keywords)} keywords are kept: a catalog row has"
            f" at most {most_bytes:,} bytes"
        )
    if not pieces.chunks:
        problems.append("there is no text below the frontmatter" if fields else "no text")
    reason = "; ".join(problems)[:REASON_LENGTH_MOST]
    return replace(row, keywords=keywords[:fitting], reason=reason)


def _status(document: Document, pieces: Pieces) -> Status:
    if not pieces.chunks:
        return Status.EMPTY
    return Status.INDEXED if document.frontmatter else Status.SEMANTIC_ONLY


def _size(row: CatalogRow) -> int:
    """About the bytes of the row's item."""
    return len(repr(row).encode())


def _fitting(keywords: tuple[str, ...], room: int) -> int:
    """How many of the keywords, in order, take at most `room` bytes."""
    sizes = accumulate(len(keyword.encode()) + KEYWORD_BYTES for keyword in keywords)
    return sum(1 for size in sizes if size <= room)
