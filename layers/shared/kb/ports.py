"""The two things that have two implementations: what embeds text and what searches vectors."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kb.documents import Version

Vector = Sequence[float]
"""Unit length, `Embedder.dimension` finite numbers."""


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """One chunk with its vector, as the index holds it, identified by key, version and ordinal."""

    key: str
    version: Version
    ordinal: int
    """0..n-1 over the whole document."""
    part: int
    section: str
    domain: str
    text: str
    """What was embedded: title and headings in front."""
    vector: Vector


@dataclass(frozen=True, slots=True)
class Hit:
    """One chunk found by a search."""

    key: str
    version: Version
    ordinal: int
    part: int
    section: str
    score: float
    """1 / (1 + d2), d2 the squared L2 distance: OpenSearch's `_score` for space l2."""


@dataclass(frozen=True, slots=True)
class WordHit:
    """One chunk that has words of the question."""

    hit: Hit
    """Its score is BM25's."""
    words: frozenset[str]
    """Those of the question that it has, as the index spells them."""


class Embedder(Protocol):
    """Turns text into unit vectors. Raises Unavailable("embedding") when it does not answer."""

    @property
    def model(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order; texts are not blank."""
        ...

    def embed_question(self, text: str) -> Vector: ...


class VectorIndex(Protocol):
    """Holds chunks and finds the nearest. Raises Unavailable("vectors") when it does not answer."""

    def prepare(self) -> None:
        """Create the index, or check that the one there has this mapping, dimension and model.

        Raises Misconfigured when it differs.
        """
        ...

    def write(self, chunks: Sequence[IndexedChunk]) -> None:
        """Write all or raise; writing the same chunk twice leaves one."""
        ...

    def refresh(self) -> None:
        """Make everything written so far visible to `search`."""
        ...

    def remove_others(self, key: str, kept: Version | None, through: int) -> None:
        """Remove the document's chunks of revisions up to `through`, but those of version `kept`.

        Chunks of higher revisions are a newer writer's and stay. What was written before the call
        is gone when it returns, also what was not refreshed.
        """
        ...

    def versions(self, key: str | None = None) -> Iterator[tuple[str, Version, int]]:
        """Each version of each document (None: of all) that has chunks, and how many it has.

        In any order; what `search` would not see yet is not counted.
        """
        ...

    def search(
        self,
        vector: Vector,
        k: int,
        domain: str | None = None,
        without: Collection[str] = (),
    ) -> list[Hit]:
        """The k nearest chunks, best first; equal scores by key, then ordinal.

        `domain` keeps only that domain and `without` leaves out whole documents, both inside
        the nearest-neighbour search, so that k results are found wherever k exist.
        """
        ...

    def rarity(self, text: str) -> dict[str, float]:
        """The words of the text as the index spells them, each with how rare it is here.

        Inverse document frequency, ln(1 + (N - n + 0.5) / (n + 0.5)) for n of N chunks.
        """
        ...

    def search_words(
        self,
        words: Mapping[str, float],
        k: int,
        domain: str | None = None,
        without: Collection[str] = (),
    ) -> list[WordHit]:
        """The k chunks with the highest BM25 for these words, of those that have one of them.

        Best first; equal scores by key, then ordinal. `words` come from `rarity`.
        """
        ...
