"""From a file's bytes to its pieces, or the limit it exceeds: one way for ingest and check."""

from kb.chunking import Pieces, split_document
from kb.documents import Document
from kb.errors import Refused
from kb.parsing import parse_document
from kb.settings import DocumentLimits

SECTIONS_MOST = 10_000
"""Of one document: every lookup of it reads them all, which takes 10 ms for that many."""


def too_large(size: int, limits: DocumentLimits) -> Refused:
    """Why a file of `size` bytes, more than `limits.document_bytes`, is not read at all."""
    return Refused(
        f"the file has {size:,} bytes; at most {limits.document_bytes:,} are indexed: split it"
    )


def parse_within(data: bytes, limits: DocumentLimits) -> Document:
    """The document. Raises Refused where the bytes are no text."""
    return parse_document(
        data, frontmatter_limit=limits.frontmatter_limit, keyword_length=limits.keyword_length
    )


def split_within(document: Document, limits: DocumentLimits) -> Pieces:
    """Its parts and chunks. Raises Refused where they are too many to embed, or its sections."""
    pieces = split_document(
        document,
        content_limit=limits.content_limit,
        chunk_size=limits.chunk_size,
        overlap=limits.chunk_overlap,
    )
    if len(pieces.chunks) > limits.chunks_per_document:
        raise Refused(
            f"the document has {len(pieces.chunks):,} chunks; at most"
            f" {limits.chunks_per_document:,} are indexed: split it"
        )
    if len(pieces.outline.sections) > SECTIONS_MOST:
        raise Refused(
            f"the document has {len(pieces.outline.sections):,} sections; at most"
            f" {SECTIONS_MOST:,} are indexed: split it"
        )
    return pieces
