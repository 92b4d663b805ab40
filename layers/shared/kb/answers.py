"""What is asked and what is answered, and the answer's JSON."""

from dataclasses import dataclass
from typing import Any

from kb.documents import CatalogRow
from kb.grading import Level


@dataclass(frozen=True, slots=True)
class Question:
    """One call of `lookup_knowledge`."""

    query: str
    section_title: str | None = None
    part: int | None = None
    session_id: str | None = None
    domain: str | None = None
    force: bool = False
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """One part of one document, as delivered."""

    row: CatalogRow
    content: str
    section: str
    part: int
    parts: int
    sections: tuple[str, ...]
    """Names under which the document's sections can be asked for."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one invocation found, for this session."""

    found: bool
    primary: Passage | None
    supplement: Passage | None
    level: Level | None
    hint: str | None
    domains: tuple[str, ...]
    """That the session has read from, first-seen order, this answer's included."""
    message: str | None
    degraded: tuple[str, ...]
    invocation_id: str


SECTIONS_NAMED_MOST = 50
"""Titles in `availableSections`; an answer is for reading, not for thousands of headings."""


def as_json(answer: Answer) -> dict[str, Any]:
    """The answer's object as agents get it; no score of any kind is in it."""
    return {
        "found": answer.found,
        "primary": _primary(answer),
        "supplement": _passage(answer.supplement, "semantic_L1") if answer.supplement else None,
        "relevanceLevel": answer.level,
        "completenessHint": answer.hint,
        "retrievedDomainsThisSession": list(answer.domains),
        "message": answer.message,
        "degraded": list(answer.degraded),
        "invocationId": answer.invocation_id,
    }


def _primary(answer: Answer) -> dict[str, Any] | None:
    if not answer.primary:
        return None
    passage = answer.primary
    return _passage(passage, "exact_L0") | {
        "confidence": "high" if answer.level is Level.PRECISE else "low",
        "truncated": passage.parts > 1,
        "availableSections": list(passage.sections[:SECTIONS_NAMED_MOST]),
    }


def _passage(passage: Passage, match_type: str) -> dict[str, Any]:
    row = passage.row
    return {
        "content": passage.content,
        "source": row.key,
        "title": row.title or None,
        "section": passage.section or None,
        "part": passage.part,
        "parts": passage.parts,
        "matchType": match_type,
        "updatedAt": row.updated_at or None,
        "version": row.version or None,
        "author": row.author or None,
    }
