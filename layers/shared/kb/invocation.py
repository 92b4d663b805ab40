"""What one call of lookup_knowledge has come to, and the row that the log keeps of it."""

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from kb.answers import Answer, Question
from kb.delivery import DedupReason
from kb.finding import NOTHING_FOUND, Finding
from kb.grading import Profile
from kb.stores.invocation_table import Invocation

NANOSECONDS = 1_000_000_000
"""In a second."""


@dataclass(slots=True)
class Call:
    """Filled in as the call goes on, so that a call that fails is logged as far as it came."""

    question: Question
    invocation_id: str
    started: int
    """Nanoseconds since 1970."""
    finding: Finding = NOTHING_FOUND
    answer: Answer | None = None
    reason: DedupReason | None = None
    degraded: set[str] = field(default_factory=set)
    error: str | None = "internal_error"
    """Why there is no answer; None where there is one."""

    def row(self, profile: Profile, embedding_model: str, now: int) -> Invocation:
        """The log's row, at `now` (nanoseconds since 1970)."""
        answer = self.answer
        sources = [p.row.key for p in (answer.primary, answer.supplement) if p] if answer else []
        level = answer.level if answer else None
        details = {
            "l1_top_similarity": self.finding.similarity,
            "l1_evidence": self.finding.evidence,
            "relevance_level": level,
            "completeness_hint": answer.hint if answer else None,
            "retrieved_domains": answer.domains if answer else [],
            "dedup_reason": self.reason,
            "l0_match_count": self.finding.matches,
            "sources": sources,
            "degraded": sorted(self.degraded),
            "thresholds": asdict(profile),
            "embedding_model": embedding_model,
            "error": self.error,
        }
        return Invocation(
            invocation_id=self.invocation_id,
            session_id=self.question.session_id,
            query=self.question.query,
            created_at=datetime.fromtimestamp(self.started / NANOSECONDS, UTC).isoformat(),
            duration_ms=(now - self.started) // 1_000_000,
            found=bool(answer and answer.found),
            relevance_level=level,
            dedup_reason=self.reason,
            retrieval_details=json.dumps(details, ensure_ascii=False),
        )
