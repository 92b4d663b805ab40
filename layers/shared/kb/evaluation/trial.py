"""A labelled set in a system of its own, asked question by question."""

import itertools
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kb.answers import Question
from kb.deadline import Deadline
from kb.evaluation.labelled_set import LabelledQuestion, LabelledSet
from kb.evidence import Background, Signals
from kb.folding import fold
from kb.grading import Level
from kb.ingest import Outcome
from kb.local.cloud import LocalCloud, MotoServer
from kb.local.embedded_index import EmbeddedIndex
from kb.local.functions import CHECKOUT
from kb.ports import Embedder
from kb.ranking import cosine_of, mean_and_spread
from kb.semantic import SemanticSearch
from kb.settings import IngestSettings, LookupSettings, read_settings
from kb.wiring import make_ingest, make_lookup

Ranking = tuple[str, ...]
"""Keys of documents, best first."""
RANKED_MOST = 10
_stacks = itertools.count()


@dataclass(frozen=True, slots=True)
class Trial:
    """What one question came to, by every way of looking it up."""

    question: LabelledQuestion
    by_keywords: Ranking
    """L0."""
    by_vectors: Ranking
    by_words: Ranking
    by_meaning: Ranking
    """L1: both."""
    whole: Ranking
    """Primary, supplement, then L1's order."""
    level: Level | None
    signals: Signals | None
    """Of L1's best document."""
    evidence: float
    holds: bool | None
    """Whether a delivered text has what the question says it must; None where it says nothing."""
    seconds: float


class Bench:
    """One set, ingested as documents of any system are; `server` is shared by several."""

    def __init__(self, labelled: LabelledSet, server: MotoServer, embedder: Embedder) -> None:
        self.labelled = labelled
        self._embedder = embedder
        self._index = EmbeddedIndex(model=embedder.model, dimension=embedder.dimension)
        self._cloud = LocalCloud(server, CHECKOUT / "template.yaml", f"eval-{next(_stacks)}")
        self._cloud.enter()
        self._s3 = server.client("s3")

    def ingest(self) -> Iterator[Outcome]:
        """Take the documents in, one by one."""
        settings = read_settings(IngestSettings, self._cloud.environment)
        ingest = make_ingest(settings, self._embedder, self._index).ingest
        for key, data in self.labelled.documents.items():
            self._s3.put_object(Bucket=self._cloud.bucket, Key=key, Body=data)
            yield ingest.reconcile(key)

    def background(self, questions: Sequence[LabelledQuestion], k: int = 100) -> Background:
        """Mean and spread of the cosines of these questions and the chunks found for them."""
        cosines = [
            cosine_of(hit.score)
            for question in questions
            for hit in self._index.search(self._embedder.embed_question(question.text), k)
        ]
        return Background(*mean_and_spread(cosines))

    def ask(
        self, questions: Sequence[LabelledQuestion], overrides: Mapping[str, str] | None = None
    ) -> Iterator[Trial]:
        """Ask each question in no session; `overrides` are settings of the lookup function."""
        settings = read_settings(
            LookupSettings, dict(os.environ) | self._cloud.environment | dict(overrides or {})
        )
        parts = make_lookup(settings, self._embedder, self._index)
        parts.catalog.refresh()
        semantic = SemanticSearch(
            self._embedder,
            self._index,
            parts.catalog,
            settings.profile,
            k=settings.search_k,
            words=settings.words,
        )
        for question in questions:
            started = time.perf_counter()
            answer = parts.lookup.answer(Question(question.text), "eval")
            seconds = time.perf_counter() - started
            nearest = semantic.nearest(
                question.text, None, Deadline(settings.timeouts, parts.threads)
            )
            delivered = [each for each in (answer.primary, answer.supplement) if each]
            order = [near.row.key for near in nearest]
            vector = self._embedder.embed_question(question.text)
            said = self._index.search_words(self._index.rarity(question.text), settings.search_k)
            yield Trial(
                question,
                by_keywords=_first(m.key for m in parts.catalog.match(fold(question.text))),
                by_vectors=_first(hit.key for hit in self._index.search(vector, settings.search_k)),
                by_words=_first(word.hit.key for word in said),
                by_meaning=_first(order),
                whole=_first([*(each.row.key for each in delivered), *order]),
                level=answer.level,
                signals=nearest[0].signals if nearest else None,
                evidence=nearest[0].evidence if nearest else 0.0,
                holds=any(question.holds in each.content for each in delivered)
                if question.holds
                else None,
                seconds=seconds,
            )


def _first(keys: Iterable[str]) -> Ranking:
    """Each document once, the best ones."""
    return tuple(dict.fromkeys(keys))[:RANKED_MOST]
