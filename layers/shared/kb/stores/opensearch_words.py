"""Word match in OpenSearch: how rare a question's words are, and BM25 over the chunks' text."""

import math
from collections.abc import Mapping
from typing import Any


def weighing(text: str) -> dict[str, Any]:
    """The request that cuts a text as the index does and counts each word's chunks."""
    return {
        "doc": {"text": text},
        "fields": ["text"],
        "term_statistics": True,
        "field_statistics": True,
        "positions": False,
        "offsets": False,
        "payloads": False,
    }


def rarity_of(answer: Mapping[str, Any]) -> dict[str, float]:
    """Each word with Lucene's inverse document frequency, ln(1 + (N - n + 0.5) / (n + 0.5))."""
    found = answer["term_vectors"].get("text")
    if not found:
        return {}  # no word at all
    chunks = max(found["field_statistics"]["doc_count"], 0)
    rarity: dict[str, float] = {}
    for word, counts in found["terms"].items():
        # Chunks that were removed count until their segment is merged; never more than there are.
        held = min(counts.get("doc_freq", 0), chunks)
        rarity[word] = math.log1p((chunks - held + 0.5) / (held + 0.5))
    return rarity


def having_one_of(words: Mapping[str, float], condition: Mapping[str, Any]) -> dict[str, Any]:
    """The query for chunks with any of the words, each named, so that a hit tells which it has."""
    named = [{"term": {"text": {"value": word, "_name": word}}} for word in words]
    return {"bool": {**condition, "should": named, "minimum_should_match": 1}}
