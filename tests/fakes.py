"""Stand-ins with state, for what tests must not wait for or must be able to break."""

import hashlib
import math
from collections.abc import Sequence

from kb.ports import Vector


class HashingEmbedder:
    """Texts that share words, or neighbouring CJK characters, lie near each other.

    Deterministic and fast: the unit vector of the text's words and character pairs, hashed.
    """

    model = "hashing-test-model"
    dimension = 64

    def __init__(self) -> None:
        self.passages: list[str] = []
        """Every passage embedded, in order."""
        self.failure: Exception | None = None
        """Raised by every call while set."""

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        self.passages += texts
        return [self.embed_question(text) for text in texts]

    def embed_question(self, text: str) -> Vector:
        if self.failure:
            raise self.failure
        counts = [1e-6] * self.dimension
        for word in text.casefold().split():
            for piece in {word, *(word[i : i + 2] for i in range(len(word) - 1))}:
                counts[int(hashlib.md5(piece.encode()).hexdigest(), 16) % self.dimension] += 1  # noqa: S324
        length = math.sqrt(sum(number * number for number in counts))
        return [number / length for number in counts]
