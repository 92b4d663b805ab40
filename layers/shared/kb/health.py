"""Which parts of the system answer, each asked once, all at the same time."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from kb.deadline import Deadline, Step
from kb.documents import Version
from kb.errors import Misconfigured, Unavailable
from kb.wiring import LookupParts

QUESTION = "health"
"""Embedded; what its vector is does not matter."""
NO_VERSION = Version(0, "")
"""Of no document."""


def health_of(parts: LookupParts) -> dict[str, Any]:
    """`{"status": "ok" or "degraded", "parts": {name: "ok" or what is wrong}, "documents"}`."""
    deadline = Deadline(parts.settings.timeouts, parts.threads)
    asked: dict[str, Callable[[], object]] = {
        "keywords": parts.catalog.refresh,
        "embedding": lambda: parts.embedder.embed_question(QUESTION),
        "vectors": lambda: parts.index.prepare(),
        "content": lambda: parts.content.read_outline(QUESTION, NO_VERSION),
        "session": lambda: parts.sessions(QUESTION).read(QUESTION),
    }
    waiting = {name: deadline.start(ask) for name, ask in asked.items()}
    states = {name: _state(name, future, deadline) for name, future in waiting.items()}
    is_ok = all(state == "ok" for state in states.values())
    return {
        "status": "ok" if is_ok else "degraded",
        "parts": states,
        "documents": len(parts.catalog.rows()),
    }


def _state(name: str, future: Future[object], deadline: Deadline) -> str:
    try:
        deadline.wait(Step.LOG, name, future)
    except Unavailable:
        return "does not answer"
    except Misconfigured:
        return "is set up wrongly"
    return "ok"
