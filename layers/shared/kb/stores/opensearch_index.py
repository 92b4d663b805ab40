"""The vector index in OpenSearch: one k-NN index behind an alias, one document a chunk."""

import hashlib
import json
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from opensearchpy import OpenSearch

from kb.documents import Version
from kb.errors import Misconfigured, Unavailable
from kb.ports import Hit, IndexedChunk, Vector, WordHit
from kb.stores.opensearch_place import Place
from kb.stores.opensearch_requests import TOO_BUSY, Busy, Requests, connect
from kb.stores.opensearch_words import having_one_of, rarity_of, weighing

__all__ = ["OpenSearchIndex", "connect"]

SEARCH_WIDTH = 200
"""Least `k` of the graph search, whose width it is with the engine lucene.

Recall@10 on 10,000 vectors of 1,024 dimensions (tests/benchmarks/bench_opensearch.py), without
any neighbourhoods and around 200 topics: 0.33 and 0.97 with 10, 0.82 and 1.00 with 100, 0.94 and
1.00 with 200, which takes a tenth longer than 100.
"""

VERSIONS_AT_ONCE = 1000
"""Buckets of one answer; the service takes 10,000 by default."""

CHUNKS_AT_ONCE = 200
"""With their vectors about 4 MB."""

BULK_BYTES = 4 * 1024 * 1024
"""Most of one bulk request; Amazon's smallest instances refuse 10 MB."""


class OpenSearchIndex:
    """The port's calls as requests to one OpenSearch index.

    `index` is an alias, of the index `{index}-1` where this class creates it: writes demand an
    alias, since a write to a name that is gone would else create an index without our mapping.
    Which index all else is asked of, and what `may_lag` is, says opensearch_place.

    The index never refreshes itself: what was written is found from the next `refresh` on,
    whoever calls it. A removal sees everything written before it and is effective when it
    returns, so that it refreshes too. The embedded index does the same.

    Answers 429 and 503, of a request or of single chunks in it, are asked again for up to
    `patience` seconds. What did not answer then is Unavailable("vectors"); what the operator must
    change is Misconfigured; a document that the index will never take is Refused, and what was
    written of it is the caller's to remove.
    """

    def __init__(
        self,
        client: OpenSearch,
        *,
        index: str,
        model: str,
        dimension: int,
        patience: float = 10.0,
        may_lag: bool = False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.index = index
        self.model = model
        self.dimension = dimension
        self.client = client
        self._requests = Requests(index, patience, clock, sleep)
        self._place = Place(client, self._requests, index, model, dimension, may_lag)

    def prepare(self) -> None:
        """Create the index, or check that the one there has this mapping, dimension and model."""
        self._place.prepare()

    def write(self, chunks: Sequence[IndexedChunk]) -> None:
        """Write all or raise; writing the same chunk twice leaves one."""
        lines = [self._lines(chunk) for chunk in chunks]
        for batch in _batches(lines):
            self._write_batch(batch)

    def refresh(self) -> None:
        """Make everything written so far visible to `search`."""
        self._place.ask("refresh", self._refresh_once)

    def remove_others(self, key: str, kept: Version | None, through: int) -> None:
        """Remove the chunks of revisions up to `through`, but those of version `kept`."""
        condition: dict[str, Any] = {
            "filter": [{"term": {"key": key}}, {"range": {"revision": {"lte": through}}}]
        }
        if kept:
            condition["must_not"] = [{"bool": {"filter": _of(kept)}}]
        self._remove(condition)

    def versions(self, key: str | None = None) -> Iterator[tuple[str, Version, int]]:
        """Each version of each document (None: of all) that has chunks, and how many it has."""
        names = ("key", "revision", "fingerprint")
        versions: dict[str, Any] = {
            "size": VERSIONS_AT_ONCE,
            "sources": [{name: {"terms": {"field": name}}} for name in names],
        }
        body: dict[str, Any] = {"size": 0, "aggs": {"versions": {"composite": versions}}}
        if key is not None:
            body["query"] = {"term": {"key": key}}
        while True:
            found = self._asked("list the versions of", body)["aggregations"]["versions"]
            for bucket in found["buckets"]:
                of, revision, fingerprint = (bucket["key"][name] for name in names)
                yield of, Version(revision, fingerprint), bucket["doc_count"]
            if "after_key" not in found:
                return
            versions["after"] = found["after_key"]

    def chunks(self, key: str, version: Version, vectors: bool) -> Iterator[IndexedChunk]:
        """One version's chunks by ordinal, whole but for their vectors where none are wanted."""
        condition = [{"term": {"key": key}}, *_of(version)]
        body: dict[str, Any] = {
            "size": CHUNKS_AT_ONCE,
            "query": {"bool": {"filter": condition}},
            "_source": True if vectors else {"excludes": ["vector"]},
            "sort": ["ordinal"],
        }
        while found := self._asked("read chunks of", body)["hits"]["hits"]:
            for one in found:
                source = one["_source"]
                yield IndexedChunk(
                    key,
                    version,
                    source["ordinal"],
                    source["part"],
                    source["section"],
                    source["domain"],
                    source["text"],
                    source.get("vector", ()),
                )
            body["search_after"] = found[-1]["sort"]

    def search(
        self,
        vector: Vector,
        k: int,
        domain: str | None = None,
        without: Collection[str] = (),
    ) -> list[Hit]:
        """The k nearest chunks, best first; equal scores by key, then ordinal."""
        nearest: dict[str, Any] = {"vector": self._numbers(vector), "k": max(k, SEARCH_WIDTH)}
        if condition := _only(domain, without):
            nearest["filter"] = {"bool": condition}
        return [_hit(found) for found in self._hits({"knn": {"vector": nearest}}, k)]

    def rarity(self, text: str) -> dict[str, float]:
        """Each word of the text, as the `cjk` analyser cuts it, with how rare it is."""
        answer = self._place.ask(
            "weigh words in",
            lambda: self.client.termvectors(index=self._place.name, body=weighing(text)),
        )
        return rarity_of(answer)

    def search_words(
        self,
        words: Mapping[str, float],
        k: int,
        domain: str | None = None,
        without: Collection[str] = (),
    ) -> list[WordHit]:
        """The k chunks with the highest BM25; equal scores by key, then ordinal."""
        if not words:
            return []
        query = having_one_of(words, _only(domain, without))
        return [
            WordHit(_hit(found), frozenset(found["matched_queries"]))
            for found in self._hits(query, k)
        ]

    def _hits(self, query: Mapping[str, Any], k: int) -> list[dict[str, Any]]:
        body = {
            "size": k,
            "query": query,
            # The source holds the vector and takes three times as long to read.
            "_source": False,
            "docvalue_fields": ["key", "revision", "fingerprint", "ordinal", "part"],
            "stored_fields": ["section"],
            "sort": ["_score", "key", "ordinal", "revision", "fingerprint"],
        }
        hits: list[dict[str, Any]] = self._asked("search", body)["hits"]["hits"]
        return sorted(hits, key=_best_first)

    def _asked(self, doing: str, body: Mapping[str, Any]) -> Any:
        return self._place.ask(
            doing,
            lambda: self.client.search(
                index=self._place.name,
                body=body,
                params={"allow_partial_search_results": "false"},
            ),
        )

    def _lines(self, chunk: IndexedChunk) -> str:
        source = {
            "key": chunk.key,
            "revision": chunk.version.revision,
            "fingerprint": chunk.version.fingerprint,
            "ordinal": chunk.ordinal,
            "part": chunk.part,
            "section": chunk.section,
            "domain": chunk.domain,
            "text": chunk.text,
            "vector": self._numbers(chunk.vector),
        }
        action = {"index": {"_id": _identity(chunk)}}
        return f"{json.dumps(action)}\n{json.dumps(source, ensure_ascii=False)}\n"

    def _numbers(self, vector: Vector) -> list[float]:
        if len(vector) != self.dimension:
            raise Misconfigured(
                f"a vector has {len(vector)} numbers where the index of {self.model}"
                f" holds {self.dimension}"
            )
        numbers = [float(number) for number in vector]
        if not all(map(math.isfinite, numbers)):
            raise Misconfigured(
                f"the embedding model {self.model} gave numbers that are not finite"
            )
        # Half the bytes; OpenSearch keeps 32 bits, which tell no more apart in a unit vector.
        return [round(number, 9) for number in numbers]

    def _write_batch(self, batch: Sequence[str]) -> None:
        pending = list(batch)

        def write_pending() -> None:
            nonlocal pending
            answer = self.client.bulk(
                index=self.index,
                body="".join(pending),
                params={"require_alias": "true"},
            )
            outcomes = [item["index"] for item in answer["items"]]
            self._place.check_written(outcome.get("_index") for outcome in outcomes)
            for outcome in outcomes:
                if outcome["status"] >= 300 and outcome["status"] not in TOO_BUSY:
                    raise self._requests.failure("write to", outcome["status"], outcome["error"])
            pending = [
                lines
                for lines, outcome in zip(pending, outcomes, strict=True)
                if outcome["status"] in TOO_BUSY
            ]
            if pending:
                raise Busy(f"{len(pending)} of {len(batch)} chunks")

        self._requests.ask("write to", write_pending)

    def _refresh_once(self) -> Any:
        answer = self.client.indices.refresh(index=self._place.name)
        if answer["_shards"]["failed"]:
            raise Unavailable("vectors")
        return answer

    def _remove(self, condition: Mapping[str, Any]) -> None:
        def remove_found() -> Any:
            self._refresh_once()  # what a search does not see yet would stay
            answer = self.client.delete_by_query(
                index=self._place.name,
                body={"query": {"bool": condition}},
                params={"conflicts": "proceed", "refresh": "true"},
            )
            if answer["failures"] or answer["timed_out"]:
                raise Unavailable("vectors")
            if answer["version_conflicts"]:
                # Written or removed by another since the search in it: those found anew go too.
                raise Busy(f"{answer['version_conflicts']} chunks changed meanwhile")
            return answer

        self._place.ask("remove from", remove_found)


def _identity(chunk: IndexedChunk) -> str:
    # Hashed, since OpenSearch takes ids of 512 bytes at most and a key alone may have 1,024.
    version = chunk.version
    name = json.dumps([chunk.key, version.revision, version.fingerprint, chunk.ordinal])
    return hashlib.sha256(name.encode()).hexdigest()


def _batches(lines: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for line in lines:
        length = len(line.encode())
        if batch and size + length > BULK_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += length
    if batch:
        yield batch


def _of(version: Version) -> list[dict[str, Any]]:
    return [
        {"term": {"revision": version.revision}},
        {"term": {"fingerprint": version.fingerprint}},
    ]


def _only(domain: str | None, without: Collection[str]) -> dict[str, Any]:
    """Conditions of a bool query that keep a domain and leave documents out."""
    condition: dict[str, Any] = {}
    if domain is not None:
        condition["filter"] = {"term": {"domain": domain}}
    if without:
        condition["must_not"] = {"terms": {"key": sorted(without)}}
    return condition


def _best_first(found: Mapping[str, Any]) -> tuple[float, str, int, int, str]:
    hit = _hit(found)
    return -hit.score, hit.key, hit.ordinal, hit.version.revision, hit.version.fingerprint


def _hit(found: Mapping[str, Any]) -> Hit:
    fields = {name: values[0] for name, values in found["fields"].items()}
    return Hit(
        key=fields["key"],
        version=Version(fields["revision"], fields["fingerprint"]),
        ordinal=fields["ordinal"],
        part=fields["part"],
        section=fields.get("section", ""),
        score=found["_score"],
    )
