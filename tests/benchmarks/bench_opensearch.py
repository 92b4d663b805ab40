"""Index rate, query time and recall of the OpenSearch index, the embedded one being exact.

    python tests/opensearch/node.py run python tests/benchmarks/bench_opensearch.py

10,000 vectors of 1,024 dimensions as 500 documents of 20 chunks, each written and refreshed by
itself as ingest does. `scattered` vectors have no neighbourhoods at all, the worst case for a
graph; `topics` are 200 topics with chunks at cosine 0.7 or so within one.
"""

import os
import time
import uuid
from collections.abc import Sequence

import numpy as np
from kb.documents import Version
from kb.local.embedded_index import EmbeddedIndex
from kb.ports import Hit, IndexedChunk, VectorIndex
from kb.stores import opensearch_index
from kb.stores.opensearch_index import OpenSearchIndex, connect
from numpy.typing import NDArray

DOCUMENTS = 500
CHUNKS = 20
DIMENSION = 1024
QUESTIONS = 200
WARM_UP = 50
WIDTHS = (10, 100, 200)
SEARCHES = (("all", 10, None), ("all", 100, None), ("1 domain of 10", 100, "domain 3"))
VERSION = Version(1, "f" * 64)
TEXT = "知识库的一段文字，说明怎样安装、升级和排查。" * 20

Vectors = NDArray[np.float64]


def unit(vectors: Vectors) -> Vectors:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def scattered(random: np.random.Generator) -> tuple[Vectors, Vectors]:
    vectors = random.normal(size=(DOCUMENTS * CHUNKS, DIMENSION))
    return unit(vectors), unit(random.normal(size=(QUESTIONS, DIMENSION)))


def topics(random: np.random.Generator) -> tuple[Vectors, Vectors]:
    centres = random.normal(size=(200, DIMENSION))
    of = random.integers(200, size=DOCUMENTS * CHUNKS + QUESTIONS)
    vectors = unit(centres[of] + 0.65 * random.normal(size=(len(of), DIMENSION)))
    return vectors[QUESTIONS:], vectors[:QUESTIONS]


def documents(vectors: Vectors) -> list[list[IndexedChunk]]:
    return [
        [
            IndexedChunk(
                key=f"docs/{document}.md",
                version=VERSION,
                ordinal=ordinal,
                part=ordinal // 3 + 1,
                section=f"第 {ordinal} 节",
                domain=f"domain {document % 10}",
                text=TEXT,
                vector=vectors[document * CHUNKS + ordinal].tolist(),
            )
            for ordinal in range(CHUNKS)
        ]
        for document in range(DOCUMENTS)
    ]


def written(index: VectorIndex, documents: Sequence[Sequence[IndexedChunk]]) -> float:
    """Chunks a second."""
    start = time.perf_counter()
    for document in documents:
        index.write(document)
        index.refresh()
    return DOCUMENTS * CHUNKS / (time.perf_counter() - start)


def asked(
    index: VectorIndex, questions: Vectors, size: int, domain: str | None
) -> tuple[list[list[Hit]], float, float]:
    """The hits of each question, and the median and 95th percentile of their milliseconds."""
    vectors = questions.tolist()
    for vector in vectors[:WARM_UP]:
        index.search(vector, size, domain)
    took = []
    found = []
    for vector in vectors:
        start = time.perf_counter()
        found.append(index.search(vector, size, domain))
        took.append((time.perf_counter() - start) * 1000)
    return found, float(np.percentile(took, 50)), float(np.percentile(took, 95))


def recall(found: Sequence[Sequence[Hit]], exact: Sequence[Sequence[Hit]], at: int) -> float:
    shares = [
        len(
            {(hit.key, hit.ordinal) for hit in hits[:at]} & {(hit.key, hit.ordinal) for hit in best}
        )
        / at
        for hits, best in zip(found, (best[:at] for best in exact), strict=True)
    ]
    return float(np.mean(shares))


def main() -> None:
    """Print one table for each kind of vectors."""
    client = connect(os.environ["OPENSEARCH_TEST_ENDPOINT"], region="", timeout=120)
    for make in (scattered, topics):
        vectors, questions = make(np.random.default_rng(0))
        name = f"bench-{uuid.uuid4().hex}"
        index = OpenSearchIndex(client, index=name, model="m", dimension=DIMENSION)
        oracle = EmbeddedIndex(model="m", dimension=DIMENSION)
        index.prepare()
        corpus = documents(vectors)
        rate = written(index, corpus)
        embedded_rate = written(oracle, corpus)
        segments = client.cat.segments(index=name, format="json")
        print(
            f"\n{make.__name__}: {rate:.0f} chunks/s written ({len(segments)} segments),"
            f" embedded {embedded_rate:.0f}"
        )
        print("| search | width k | size | p50 ms | p95 ms | recall@10 | recall@size |")
        print("|---|---|---|---|---|---|---|")
        for label, size, domain in SEARCHES:
            exact, p50, p95 = asked(oracle, questions, size, domain)
            print(f"| {label}, embedded | exact | {size} | {p50:.1f} | {p95:.1f} | 1 | 1 |")
            for width in WIDTHS:
                if width < size:
                    continue
                opensearch_index.SEARCH_WIDTH = width
                found, p50, p95 = asked(index, questions, size, domain)
                print(
                    f"| {label} | {width} | {size} | {p50:.1f} | {p95:.1f}"
                    f" | {recall(found, exact, 10):.3f} | {recall(found, exact, size):.3f} |"
                )
        client.indices.delete(index=f"{name}-1")


if __name__ == "__main__":
    main()
