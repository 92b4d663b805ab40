"""The indexes that every test of the port runs against."""

import os
import uuid
from collections.abc import Callable, Iterator

import pytest
from kb.local.embedded_index import EmbeddedIndex
from kb.ports import VectorIndex
from kb.stores.opensearch_index import OpenSearchIndex, connect

ENDPOINT = os.environ.get("OPENSEARCH_TEST_ENDPOINT")


@pytest.fixture(params=["embedded", "opensearch"] if ENDPOINT else ["embedded"])
def new_index(request: pytest.FixtureRequest) -> Iterator[Callable[[int], VectorIndex]]:
    """Makes an empty index for vectors of a dimension, ready to be written."""
    if request.param == "embedded":
        yield lambda dimension: EmbeddedIndex(model="m", dimension=dimension)
        return
    client = connect(ENDPOINT or "", region="", timeout=60)
    names: list[str] = []

    def make(dimension: int) -> VectorIndex:
        names.append(f"contract-{uuid.uuid4().hex}")
        index = OpenSearchIndex(client, index=names[-1], model="m", dimension=dimension)
        index.prepare()
        return index

    yield make
    for name in names:
        client.indices.delete(index=f"{name}-1")
    client.close()


@pytest.fixture
def index(new_index: Callable[[int], VectorIndex]) -> VectorIndex:
    """An empty index of two dimensions."""
    return new_index(2)
