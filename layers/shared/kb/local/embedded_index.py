"""The vector index in memory: exact search, and so the oracle for approximate ones."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import RLock

import numpy as np
from numpy.typing import NDArray

from kb.documents import Version
from kb.errors import Misconfigured
from kb.local.embedded_words import EmbeddedWords
from kb.ports import Hit, IndexedChunk, Vector, WordHit

ROWS_AT_ONCE = 1024
"""Rows whose differences are held while distances are computed: 4 MB at 1,024 dimensions."""

_Identity = tuple[int, str, int]
"""Revision, fingerprint and ordinal: which chunk of a key."""


class EmbeddedIndex:
    """Squared L2 distances to all chunks, computed anew for every search.

    Safe for threads: one lock around each call. What was written is found from the next `refresh`
    on. A removal sees everything written before it and is effective when it returns, so that it
    refreshes too. The OpenSearch index does the same.
    """

    def __init__(self, *, model: str, dimension: int) -> None:
        self.model = model
        self.dimension = dimension
        self._lock = RLock()
        self._written: list[tuple[IndexedChunk, NDArray[np.float32]]] = []
        self._row_of: dict[str, dict[_Identity, int]] = {}
        # Rows 0..len(_chunks)-1 of the matrix are in use; the rest is room to grow.
        self._chunks: list[IndexedChunk] = []
        self._matrix = np.empty((0, dimension), np.float32)
        self._words = EmbeddedWords[tuple[str, _Identity]]()

    def prepare(self) -> None:
        """Nothing to create: the index lives and dies with the process."""

    def write(self, chunks: Sequence[IndexedChunk]) -> None:
        """Write all or raise; Misconfigured where a vector is not this index's kind."""
        checked = [(replace(chunk, vector=()), self._array(chunk.vector)) for chunk in chunks]
        with self._lock:
            self._written.extend(checked)

    def refresh(self) -> None:
        """Make everything written so far visible to `search`."""
        with self._lock:
            for chunk, vector in self._written:
                row = self._row_for(chunk)  # may replace the matrix by a larger one
                self._matrix[row] = vector
                self._chunks[row] = replace(chunk, text="")
                self._words.put((chunk.key, _identity(chunk)), chunk.text)
            self._written.clear()

    def remove_others(self, key: str, kept: Version | None, through: int) -> None:
        """Remove the chunks of revisions up to `through`, but those of version `kept`."""
        with self._lock:
            self.refresh()
            for identity in list(self._row_of.get(key, ())):
                revision, fingerprint, _ = identity
                if revision <= through and Version(revision, fingerprint) != kept:
                    self._remove(key, identity)

    def versions(self, key: str | None = None) -> Iterator[tuple[str, Version, int]]:
        """Each version of each document (None: of all) that has chunks, and how many it has."""
        with self._lock:
            found = Counter(
                (of, Version(revision, fingerprint))
                for of in ([key] if key is not None else self._row_of)
                for revision, fingerprint, _ in self._row_of.get(of, ())
            )
        for (of, version), count in found.items():
            yield of, version, count

    def search(
        self,
        vector: Vector,
        k: int,
        domain: str | None = None,
        without: Collection[str] = (),
    ) -> list[Hit]:
        """The k nearest chunks, best first; equal scores by key, then ordinal."""
        question = self._array(vector)
        excluded = frozenset(without)
        with self._lock:
            distances = self._squared_distances(question)
            rows = self._rows_of_interest(domain, excluded)
            if len(rows) > k:
                # All that tie with the k-th stay until the order by key decides.
                near = distances[rows]
                rows = rows[near <= np.partition(near, k - 1)[k - 1]]
            found = [(float(distances[row]), self._chunks[row]) for row in rows]
        hits = [_hit(chunk, 1 / (1 + distance)) for distance, chunk in found]
        return sorted(hits, key=_best_first)[:k]

    def rarity(self, text: str) -> dict[str, float]:
        """Each word of the text with its inverse document frequency."""
        with self._lock:
            return self._words.rarity(text)

    def search_words(
        self,
        words: Mapping[str, float],
        k: int,
        domain: str | None = None,
        without: Collection[str] = (),
    ) -> list[WordHit]:
        """The k chunks with the highest BM25; equal scores by key, then ordinal."""
        excluded = frozenset(without)
        with self._lock:
            found = [
                WordHit(_hit(chunk, score), had)
                for (key, identity), (score, had) in self._words.scores(words).items()
                for chunk in (self._chunks[self._row_of[key][identity]],)
                if (domain is None or chunk.domain == domain) and key not in excluded
            ]
        return sorted(found, key=lambda word: _best_first(word.hit))[:k]

    def _rows_of_interest(self, domain: str | None, excluded: Collection[str]) -> NDArray[np.intp]:
        if domain is None and not excluded:
            return np.arange(len(self._chunks))
        return np.array(
            [
                row
                for row, chunk in enumerate(self._chunks)
                if (domain is None or chunk.domain == domain) and chunk.key not in excluded
            ],
            np.intp,
        )

    def _squared_distances(self, question: NDArray[np.float32]) -> NDArray[np.float32]:
        # Row by row and not by a matrix product, which would round equal rows differently.
        count = len(self._chunks)
        distances = np.empty(count, np.float32)
        for start in range(0, count, ROWS_AT_ONCE):
            end = min(start + ROWS_AT_ONCE, count)
            difference = self._matrix[start:end] - question
            distances[start:end] = np.einsum("ij,ij->i", difference, difference)
        return distances

    def _array(self, vector: Vector) -> NDArray[np.float32]:
        if len(vector) != self.dimension:
            raise Misconfigured(
                f"a vector has {len(vector)} numbers where the index of {self.model}"
                f" holds {self.dimension}"
            )
        array = np.asarray(vector, np.float32)
        if not math.isfinite(float(array.sum())):
            raise Misconfigured(
                f"the embedding model {self.model} gave numbers that are not finite"
            )
        return array

    def _row_for(self, chunk: IndexedChunk) -> int:
        identity = _identity(chunk)
        rows = self._row_of.setdefault(chunk.key, {})
        if identity in rows:
            row = rows[identity]
            self._chunks[row] = chunk
            return row
        row = rows[identity] = len(self._chunks)
        self._chunks.append(chunk)
        if row == len(self._matrix):
            grown = np.empty((max(64, 2 * row), self.dimension), np.float32)
            grown[:row] = self._matrix
            self._matrix = grown
        return row

    def _remove(self, key: str, identity: _Identity) -> None:
        # The last row moves into the gap, so that rows stay without gaps at constant cost.
        gap = self._row_of[key].pop(identity)
        self._words.remove((key, identity))
        if not self._row_of[key]:
            del self._row_of[key]
        last = self._chunks.pop()
        if gap < len(self._chunks):
            self._chunks[gap] = last
            self._matrix[gap] = self._matrix[len(self._chunks)]
            self._row_of[last.key][_identity(last)] = gap


def _identity(chunk: IndexedChunk) -> _Identity:
    return chunk.version.revision, chunk.version.fingerprint, chunk.ordinal


def _hit(chunk: IndexedChunk, score: float) -> Hit:
    return Hit(chunk.key, chunk.version, chunk.ordinal, chunk.part, chunk.section, score)


def _best_first(hit: Hit) -> tuple[float, str, int, int, str]:
    return -hit.score, hit.key, hit.ordinal, hit.version.revision, hit.version.fingerprint
