"""What every vector must be before it is written or searched with."""

import math
from collections.abc import Sequence

from kb.errors import Unavailable
from kb.ports import Vector

NORM_TOLERANCE = 1e-3
"""How far from 1 a norm may be; float32 and rounding in JSON stay well below."""


def check_vectors(vectors: Sequence[Vector], count: int, dimension: int) -> None:
    """Check for `count` finite unit vectors of `dimension`. Raises Unavailable("embedding")."""
    if len(vectors) != count:
        raise Unavailable("embedding", f"{len(vectors)} vectors for {count} texts")
    for vector in vectors:
        if len(vector) != dimension:
            raise Unavailable("embedding", f"{len(vector)} numbers instead of {dimension}")
        norm = math.sqrt(math.fsum(number * number for number in vector))
        if not math.isfinite(norm) or abs(norm - 1) > NORM_TOLERANCE:
            raise Unavailable("embedding", f"a vector of norm {norm}")
