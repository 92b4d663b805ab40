"""What the owners' routes show of documents, domains and sessions."""

import base64
import binascii
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from kb.catalog import Catalog
from kb.documents import CatalogRow, Outline, Status
from kb.errors import InvalidInput
from kb.folding import fold
from kb.stores.catalog_table import CatalogTable
from kb.stores.session_table import SessionContents

PAGE_ROWS = 100
"""Documents on one page."""
PAGE_CHARACTERS = 1_000_000
"""Of a page's JSON, about; Lambda passes on 6 MB, and a row may have 64 KB of keywords."""
LISTED_MOST = 500
"""Sections, or keywords with collisions, of one document."""
NAMED_MOST = 50
"""Titles of one domain, or documents that share one keyword."""


def status_of(name: str) -> Status | None:
    """A status to filter by; None for "". Raises InvalidInput."""
    try:
        return Status(name) if name else None
    except ValueError as error:
        raise InvalidInput("status", f"is none of {', '.join(Status)}") from error


def document_page(
    catalog: Catalog, table: CatalogTable, status: Status | None, domain: str, token: str
) -> dict[str, Any]:
    """Documents by key, from where `token` says; raises InvalidInput where it is none of ours.

    Raises Unavailable("catalog") where their rows cannot be read.
    """
    after = _key_of(token)
    keys = [
        row.key
        for row in catalog.rows(status)
        if row.key > after and (not domain or row.domain == domain)
    ]
    rows = table.read_many(keys[:PAGE_ROWS])
    page: list[dict[str, Any]] = []
    room = PAGE_CHARACTERS
    last = ""
    for last in keys[:PAGE_ROWS]:
        if row := rows.get(last):
            page.append(_described(row, catalog))
            room -= len(json.dumps(page[-1], ensure_ascii=False))
        if room < 0:
            break
    is_last = not keys or last == keys[-1]
    return {"documents": page, "next": None if is_last else _token_of(last)}


def document(
    row: CatalogRow, outline: Outline, metadata: Mapping[str, object], catalog: Catalog
) -> dict[str, Any]:
    """One document with what is in it, and which others its keywords lead to as well."""
    return _described(row, catalog) | {
        "version": row.version or None,
        "author": row.author or None,
        "parts": outline.parts,
        "sections": [
            {
                "title": section.title,
                "level": section.level,
                "firstPart": section.first_part,
                "lastPart": section.last_part,
            }
            for section in outline.sections[:LISTED_MOST]
        ],
        "sectionNames": outline.names,
        "metadata": metadata,
        "keywordCollisions": _collisions(row, catalog)[:LISTED_MOST],
        # For whoever put a document and waits until the catalog speaks of that very content.
        "contentHash": row.content_hash or None,
        "changedAt": datetime.fromtimestamp(row.changed_at / 1000, UTC).isoformat(),
    }


def domains(catalog: Catalog) -> dict[str, Any]:
    """The domains of what can be answered with, by name."""
    titles: dict[str, list[str]] = defaultdict(list)
    for row in catalog.rows():
        if row.served:
            titles[row.domain].append(row.title or row.key)
    return {
        "domains": [
            {"domain": domain, "documents": len(listed), "titles": listed[:NAMED_MOST]}
            for domain, listed in sorted(titles.items())
        ]
    }


def session(session_id: str, contents: SessionContents) -> dict[str, Any]:
    """What a session has read, first-seen first."""
    documents = sorted(contents.documents.values(), key=lambda read: read.first_seen)
    return {
        "sessionId": session_id,
        "retrievedDomains": contents.domains,
        "documents": [
            {
                "source": read.document,
                "domain": read.domain,
                "partsRead": len(read.parts),
                "firstSeen": datetime.fromtimestamp(read.first_seen / 1e9, UTC).isoformat(),
            }
            for read in documents
        ],
    }


def _described(row: CatalogRow, catalog: Catalog) -> dict[str, Any]:
    return {
        "key": row.key,
        "title": row.title or None,
        "keywords": list(row.keywords),
        "summary": row.summary or None,
        "domain": row.domain or None,
        "status": row.status,
        "reason": row.reason or None,
        "updatedAt": row.updated_at or None,
        "twin": next((twin.key for twin in catalog.twins(row) if twin.key != row.key), None),
    }


def _collisions(row: CatalogRow, catalog: Catalog) -> list[dict[str, Any]]:
    """Keywords that other documents have too, so that neither is PRECISE for them."""
    shared: list[dict[str, Any]] = []
    for keyword in row.keywords:
        keys = [match.key for match in catalog.match(fold(keyword)) if match.whole]
        others = list(_other_contents(keys, row, catalog))
        if others:
            shared.append({"keyword": keyword, "documents": others[:NAMED_MOST]})
    return shared


def _other_contents(keys: Iterable[str], row: CatalogRow, catalog: Catalog) -> Iterable[str]:
    for key in keys:
        other = catalog.row(key)
        if other and key != row.key and other.content_hash != row.content_hash:
            yield key


def _token_of(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode()).decode()


def _key_of(token: str) -> str:
    try:
        return base64.b64decode(token.encode(), b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise InvalidInput("next", "is no token of a page") from error
