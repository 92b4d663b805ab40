"""A client of the node that these tests run beside, and a name for an index of their own."""

import os
import uuid
from collections.abc import Iterator

import pytest
from kb.stores.opensearch_index import connect
from opensearchpy import OpenSearch


@pytest.fixture
def client() -> Iterator[OpenSearch]:
    endpoint = os.environ.get("OPENSEARCH_TEST_ENDPOINT")
    if not endpoint:
        pytest.skip("OPENSEARCH_TEST_ENDPOINT is not set")
    client = connect(endpoint, region="", timeout=60)
    yield client
    client.close()


@pytest.fixture
def name(client: OpenSearch) -> Iterator[str]:
    """An alias that is free; whatever index a test makes for it is deleted."""
    name = f"test-{uuid.uuid4().hex}"
    yield name
    client.indices.delete(index=f"{name}*")
