"""The one place where parts are put together, from the environment, once a process."""

import os
import time
import uuid
from dataclasses import dataclass
from functools import cache
from typing import Any

import boto3
from botocore.config import Config

from kb.catalog import Catalog
from kb.finding import Finder
from kb.ingest import Ingest
from kb.lookup import Lookup
from kb.ports import Embedder, VectorIndex
from kb.semantic import SemanticSearch
from kb.settings import IngestSettings, LookupSettings, Shared, read_settings
from kb.stores.catalog_table import CatalogTable
from kb.stores.content_table import ContentTable
from kb.stores.invocation_table import InvocationTable
from kb.stores.knowledge_bucket import KnowledgeBucket
from kb.stores.session_table import SessionMemory

ATTEMPTS = 2
"""Tries of one call to AWS; a third would not fit into API Gateway's 29 seconds."""
CONNECTIONS = 32
"""Kept open to one service; threads of the local server share a client."""


@dataclass(frozen=True, slots=True)
class IngestParts:
    """What the ingest function calls."""

    settings: IngestSettings
    ingest: Ingest
    queue: Any
    """SQS client, for the backoff of failed messages."""


class LookupParts:
    """What the lookup function calls."""

    def __init__(self, settings: LookupSettings) -> None:
        dynamodb = _client("dynamodb", settings, settings.read_timeout)
        self.settings = settings
        self.documents = CatalogTable(dynamodb, settings.catalog_table)
        self.content = ContentTable(dynamodb, settings.content_table)
        self.log = InvocationTable(dynamodb, settings.invocation_table, ttl=settings.log_ttl)
        self.catalog = Catalog(
            self.documents,
            now=time.time,
            interval=settings.refresh_interval,
            overlap=settings.refresh_overlap,
            idle=settings.reload_after_idle,
        )
        self.embedder = _embedder(settings, settings.question_timeout)
        self.index = _vector_index(settings, self.embedder)
        self._dynamodb = dynamodb
        semantic = SemanticSearch(
            self.embedder,
            self.index,
            self.catalog,
            k=settings.search_k,
            max_l2=settings.max_l2,
        )
        self.lookup = Lookup(
            catalog=self.catalog,
            finder=Finder(
                self.catalog,
                semantic,
                settings.profile,
                min_coverage=settings.precise_min_coverage,
            ),
            content=self.content,
            sessions=self.sessions,
            log=self.log,
            profile=settings.profile,
            embedding_model=self.embedder.model,
            query_length=settings.query_length,
            language=settings.language,
            now=time.time_ns,
            new_id=lambda: str(uuid.uuid4()),
        )

    def sessions(self, caller: str) -> SessionMemory:
        """The session memory of one caller."""
        table, ttl = self.settings.session_table, self.settings.session_ttl
        return SessionMemory(self._dynamodb, table, caller, ttl=ttl, now=time.time_ns)


@cache
def ingest_parts() -> IngestParts:
    """Made at the first call. Raises Misconfigured naming every wrong setting."""
    settings = read_settings(IngestSettings, os.environ)
    dynamodb = _client("dynamodb", settings, settings.read_timeout)
    embedder = _embedder(settings, settings.embedding_timeout)
    ingest = Ingest(
        bucket=KnowledgeBucket(
            _client("s3", settings, settings.read_timeout), settings.knowledge_bucket
        ),
        catalog=CatalogTable(dynamodb, settings.catalog_table),
        content=ContentTable(dynamodb, settings.content_table),
        index=_vector_index(settings, embedder),
        embedder=embedder,
        settings=settings,
        now=time.time,
    )
    return IngestParts(settings, ingest, _client("sqs", settings, settings.read_timeout))


@cache
def lookup_parts() -> LookupParts:
    """Made at the first call. Raises Misconfigured naming every wrong setting."""
    return LookupParts(read_settings(LookupSettings, os.environ))


def _embedder(settings: Shared, timeout: float) -> Embedder:
    match settings.embedder:
        case "embedded":
            return embedded_model()
        case "function":
            from kb.stores.embedding_function import EmbeddingFunction

            client = _client("lambda", settings, timeout, attempts=1)
            return EmbeddingFunction(client, function=settings.embedding_function)


def _vector_index(settings: Shared, embedder: Embedder) -> VectorIndex:
    match settings.vector_index:
        case "embedded":
            return _embedded_index(embedder.model, embedder.dimension)
        case "opensearch":
            from kb.stores.opensearch_index import OpenSearchIndex, connect

            client = connect(
                settings.opensearch_endpoint,
                region=os.environ.get("AWS_REGION", ""),
                timeout=settings.vectors_timeout,
            )
            return OpenSearchIndex(
                client,
                index=settings.opensearch_index,
                model=embedder.model,
                dimension=embedder.dimension,
            )


@cache
def embedded_model() -> Embedder:
    """The one in this process, so that ingest and lookup share its memory of vectors."""
    from kb.local.embedded_model import EmbeddedModel

    return EmbeddedModel()


@cache
def _embedded_index(model: str, dimension: int) -> VectorIndex:
    from kb.local.embedded_index import EmbeddedIndex

    return EmbeddedIndex(model=model, dimension=dimension)


def _client(service: str, settings: Shared, timeout: float, attempts: int = ATTEMPTS) -> Any:
    return boto3.client(
        service,
        config=Config(
            connect_timeout=settings.connect_timeout,
            read_timeout=timeout,
            retries={"mode": "standard", "total_max_attempts": attempts},
            max_pool_connections=CONNECTIONS,
        ),
    )
