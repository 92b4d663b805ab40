"""What the OpenSearch index must look like, and in what an index found there differs."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kb.errors import Misconfigured

MAPPING_VERSION = 1
"""Counted up with every change of the mapping; an index of another version is refused."""

SETTINGS = {
    "index": {
        "knn": True,
        "number_of_shards": 1,  # Amazon's default is 5; a million chunks fit into one
        "auto_expand_replicas": "0-1",  # a copy wherever there is a second node to hold it
        "refresh_interval": "-1",  # ingest refreshes, so that every segment pays off
    }
}


def mapping_for(model: str, dimension: int) -> dict[str, Any]:
    return {
        "dynamic": "strict",
        "_meta": {"embedding_model": model, "mapping_version": MAPPING_VERSION},
        "properties": {
            "key": {"type": "keyword"},
            "revision": {"type": "long"},
            "fingerprint": {"type": "keyword"},
            "ordinal": {"type": "integer"},
            "part": {"type": "integer"},
            # Stored only: a heading may be longer than the 32,766 bytes of an indexed term.
            "section": {"type": "keyword", "index": False, "doc_values": False, "store": True},
            "domain": {"type": "keyword"},
            "text": {"type": "text", "analyzer": "cjk"},
            "vector": {
                "type": "knn_vector",
                "dimension": dimension,
                "method": {
                    "name": "hnsw",
                    "engine": "lucene",
                    "space_type": "l2",
                    "parameters": {"m": 16, "ef_construction": 128},
                },
            },
        },
    }


def check(mapping: Mapping[str, Any], name: str, model: str, dimension: int) -> None:
    """Raise Misconfigured where index `name` with this mapping is not for this model."""
    remedy = f"; kb reindex makes one beside it, or delete index {name} and run kb doctor --fix"
    there = mapping.get("_meta", {}).get("embedding_model")
    if there != model:
        raise Misconfigured(
            f"OpenSearch index {name} holds vectors of the embedding model {there}, and this"
            f" function embeds with {model}{remedy}"
        )
    for difference in _differences(mapping_for(model, dimension), mapping):
        raise Misconfigured(f"OpenSearch index {name} has another mapping: {difference}{remedy}")


def is_for(mapping: Mapping[str, Any], name: str, model: str, dimension: int) -> bool:
    """Whether `check` finds nothing."""
    try:
        check(mapping, name, model, dimension)
    except Misconfigured:
        return False
    return True


def number_of(name: str, alias: str) -> int:
    """n of the index `{alias}-n`; 0 where the name is none of them."""
    found = re.fullmatch(rf"{re.escape(alias)}-(\d+)", name)
    return int(found[1]) if found else 0


def _differences(expected: Mapping[str, Any], found: Any, path: str = "") -> Iterator[str]:
    # The graph's parameters may be tuned; they change speed and recall, not what a score means.
    for name, value in expected.items():
        if name == "parameters":
            continue
        at = f"{path}.{name}".removeprefix(".")
        there = found.get(name) if isinstance(found, Mapping) else None
        if isinstance(value, Mapping):
            yield from _differences(value, there, at)
        elif there != value:
            yield f"{at} is {there!r} and not {value!r}"
