"""Which parts of the system answer, each asked once."""

from collections.abc import Callable
from typing import Any

from kb.errors import Misconfigured, Unavailable
from kb.wiring import LookupParts

QUESTION = "health"
"""Embedded and searched for; what it finds does not matter."""


def health_of(parts: LookupParts) -> dict[str, Any]:
    """`{"status": "ok" or "degraded", "parts": {name: "ok" or what is wrong}, "documents"}`."""
    asked: dict[str, Callable[[], object]] = {
        "keywords": parts.catalog.refresh,
        "embedding": lambda: parts.embedder.embed_question(QUESTION),
        "vectors": parts.index.prepare,
        "session": lambda: parts.sessions("health").read("health"),
    }
    states = {name: _state(ask) for name, ask in asked.items()}
    is_ok = all(state == "ok" for state in states.values())
    return {
        "status": "ok" if is_ok else "degraded",
        "parts": states,
        "documents": len(parts.catalog.rows()),
    }


def _state(ask: Callable[[], object]) -> str:
    try:
        ask()
    except Unavailable:
        return "does not answer"
    except Misconfigured:
        return "is set up wrongly"
    return "ok"
