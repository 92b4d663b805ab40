"""The embedding function: {"texts": [...]} in, {"vectors", "model", "truncated"} out.

What the caller must change is answered as {"error": {"code": "invalid_input", "message"}}; all else
raises, which Lambda marks as a function error: an outage, to be tried again.
"""

import os
import unicodedata
from pathlib import Path
from typing import Any

from model import Encoder

MODEL = "BAAI/bge-m3"
MAX_TOKENS = 8192
"""The longest text that the model was trained for; the end of a longer one is left out."""
MOST_TEXTS = 64
"""Their vectors are about 0.8 MB of JSON; Lambda carries 6 MB in either direction."""
DIGITS = 7
"""Significant digits of a float32."""
MEMORY_A_PROCESSOR = 1769
"""MB of a function's memory for which Lambda gives it one processor."""
BLANK = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
"""Unicode categories: controls, format characters, separators."""


class InvalidInput(Exception):
    """What the caller must change."""


def handler(event: object, _context: object) -> dict[str, Any]:
    """Answer one invocation."""
    try:
        embedded = _encoder.embed(_texts_of(event))
    except InvalidInput as problem:
        return {"error": {"code": "invalid_input", "message": str(problem)}}
    vectors = [[float(f"{x:.{DIGITS}g}") for x in row] for row in embedded.vectors.tolist()]
    return {"vectors": vectors, "model": MODEL, "truncated": list(embedded.truncated)}


def _texts_of(event: object) -> list[str]:
    if not isinstance(event, dict) or set(event) != {"texts"}:
        raise InvalidInput('an object of "texts" alone is wanted')
    texts = event["texts"]
    if not isinstance(texts, list) or not 1 <= len(texts) <= MOST_TEXTS:
        raise InvalidInput(f"texts: a list of 1 to {MOST_TEXTS} is wanted")
    if faults := [f"texts[{i}] {fault}" for i, text in enumerate(texts) if (fault := _fault(text))]:
        raise InvalidInput("; ".join(faults))
    return texts


def _fault(text: object) -> str:
    if not isinstance(text, str):
        return "is no string"
    if "\0" in text:
        return "holds a NUL"
    if any("\ud800" <= character <= "\udfff" for character in text):
        return "holds a lone surrogate"
    return "is blank" if all(unicodedata.category(c) in BLANK for c in text) else ""


def _threads(memory: str, processors: int) -> int:
    """As many as Lambda gives processors for `memory` MB; outside Lambda, where it is "", all."""
    return min(-(-int(memory) // MEMORY_A_PROCESSOR), processors) if memory else processors


# At import: that is Lambda's init phase, which is over before the first request is served.
_memory = os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
_threads_used = _threads(_memory, os.cpu_count() or 1)
_encoder = Encoder(Path(os.environ["MODEL_FOLDER"]), _threads_used, max_tokens=MAX_TOKENS)
