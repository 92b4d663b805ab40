"""The one place where parts are put together, from the environment, once a process."""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import boto3
from botocore.config import Config

from kb.catalog import Catalog
from kb.errors import KbError, Misconfigured
from kb.finding import Finder
from kb.lookup import Lookup
from kb.ports import Embedder, VectorIndex
from kb.semantic import SemanticSearch
from kb.settings import ATTEMPTS, IngestSettings, LookupSettings, Shared, read_settings
from kb.stores.catalog_table import CatalogTable
from kb.stores.content_table import ContentTable
from kb.stores.invocation_table import InvocationTable
from kb.stores.session_table import SessionMemory

logger = logging.getLogger(__name__)

if TYPE_CHECKING:
    from kb.doctor import Doctor
    from kb.ingest import Ingest
    from kb.reindex import Reindex
    from kb.stores.ingest_queue import IngestQueue
    from kb.stores.knowledge_bucket import KnowledgeBucket

CONNECTIONS = 32
"""Kept open to one service; threads of the local server share a client."""
THREADS = 16
"""For calls that lookups make side by side, and for those that hang and were left behind."""


@dataclass(frozen=True, slots=True)
class IngestParts:
    """What the ingest function calls."""

    settings: IngestSettings
    ingest: Ingest
    queue: IngestQueue
    bucket: KnowledgeBucket
    catalog: CatalogTable
    content: ContentTable
    index: VectorIndex
    embedder: Embedder


@dataclass(frozen=True, slots=True)
class LookupParts:
    """What the lookup function calls."""

    settings: LookupSettings
    lookup: Lookup
    catalog: Catalog
    documents: CatalogTable
    content: ContentTable
    log: InvocationTable
    embedder: Embedder
    index: VectorIndex
    sessions: Callable[[str], SessionMemory]
    """The session memory of a caller."""
    threads: Executor


@cache
def ingest_parts() -> IngestParts:
    """From the environment, at the first call. Raises Misconfigured naming every wrong setting."""
    return ingest_parts_of(os.environ)


def ingest_parts_of(environment: Mapping[str, str]) -> IngestParts:
    """From an ingest function's environment, new ones. Raises Misconfigured as above."""
    settings = read_settings(IngestSettings, environment)
    embedder = _embedder(settings, settings.embedding_timeout)
    index = _vector_index(settings, embedder, settings.write_patience)
    return make_ingest(settings, embedder, index)


@cache
def lookup_parts() -> LookupParts:
    """From the environment, at the first call. Raises Misconfigured naming every wrong setting."""
    settings = read_settings(LookupSettings, os.environ)
    embedder = _embedder(settings, settings.question_timeout)
    index = _Late(lambda: _vector_index(settings, embedder, settings.search_patience, may_lag=True))
    return make_lookup(settings, embedder, cast(VectorIndex, index))


def warm_up() -> None:
    """Load the catalog before the first request; what fails now, that request tries again."""
    try:
        lookup_parts().catalog.refresh()
    except KbError as error:
        logger.error("start_incomplete", extra={"cause": str(error)})


def make_ingest(
    settings: IngestSettings,
    embedder: Embedder,
    index: VectorIndex,
    now: Callable[[], float] = time.time,
) -> IngestParts:
    """`now` returns seconds since 1970."""
    # Late, since parsing Markdown and YAML is nothing that the lookup function needs to import.
    from kb.ingest import Ingest
    from kb.stores.ingest_queue import IngestQueue
    from kb.stores.knowledge_bucket import KnowledgeBucket

    dynamodb, s3, sqs = (
        _client(service, settings, settings.read_timeout) for service in ("dynamodb", "s3", "sqs")
    )
    bucket = KnowledgeBucket(s3, settings.knowledge_bucket)
    catalog = CatalogTable(dynamodb, settings.catalog_table)
    content = ContentTable(dynamodb, settings.content_table)
    ingest = Ingest(
        bucket=bucket,
        catalog=catalog,
        content=content,
        index=index,
        embedder=embedder,
        settings=settings,
        now=now,
    )
    queue = IngestQueue(
        sqs,
        settings.ingest_queue_url,
        delay=settings.retry_delay,
        delay_most=settings.retry_delay_most,
    )
    return IngestParts(settings, ingest, queue, bucket, catalog, content, index, embedder)


def make_doctor(parts: IngestParts, now: Callable[[], float] = time.time) -> Doctor:
    """`now` returns seconds since 1970."""
    from kb.doctor import Doctor

    return Doctor(
        ingest=parts.ingest,
        bucket=parts.bucket,
        catalog=parts.catalog,
        content=parts.content,
        index=parts.index,
        document_bytes=parts.settings.document_bytes,
        now=now,
    )


def make_reindex(parts: IngestParts) -> Reindex:
    """Raises Misconfigured where vectors live in no OpenSearch index."""
    from kb.reindex import Reindex
    from kb.stores.opensearch_generations import Generations
    from kb.stores.opensearch_index import OpenSearchIndex

    if not isinstance(parts.index, OpenSearchIndex):
        raise Misconfigured("an index in memory is made anew at every start")
    return Reindex(
        ingest=parts.ingest,
        catalog=parts.catalog,
        embedder=parts.embedder,
        index=parts.index,
        generations=Generations(parts.index, parts.settings.write_patience),
        embed_batch=parts.settings.embed_batch,
    )


def make_lookup(
    settings: LookupSettings,
    embedder: Embedder,
    index: VectorIndex,
    now: Callable[[], int] = time.time_ns,
) -> LookupParts:
    """`now` returns nanoseconds since 1970."""
    threads = ThreadPoolExecutor(THREADS, thread_name_prefix="lookup")
    dynamodb = _client("dynamodb", settings, settings.table_timeout)
    documents = CatalogTable(dynamodb, settings.catalog_table)
    content = ContentTable(dynamodb, settings.content_table)
    log = InvocationTable(dynamodb, settings.invocation_table, ttl=settings.log_ttl)
    catalog = Catalog(
        documents,
        now=lambda: now() / 1e9,
        interval=settings.refresh_interval,
        overlap=settings.refresh_overlap,
        idle=settings.reload_after_idle,
    )
    semantic = SemanticSearch(
        embedder, index, catalog, settings.profile, k=settings.search_k, words=settings.words
    )

    def sessions(caller: str) -> SessionMemory:
        table, ttl = settings.session_table, settings.session_ttl
        return SessionMemory(dynamodb, table, caller, ttl=ttl, now=now)

    lookup = Lookup(
        catalog=catalog,
        finder=Finder(
            catalog, semantic, settings.profile, min_coverage=settings.precise_min_coverage
        ),
        content=content,
        sessions=sessions,
        log=log,
        profile=settings.profile,
        embedding_model=embedder.model,
        query_length=settings.query_length,
        language=settings.language,
        timeouts=settings.timeouts,
        threads=threads,
        now=now,
        new_id=lambda: str(uuid.uuid4()),
    )
    return LookupParts(
        settings, lookup, catalog, documents, content, log, embedder, index, sessions, threads
    )


def _embedder(settings: Shared, timeout: float) -> Embedder:
    match settings.embedder:
        case "embedded":
            return embedded_model()
        case "function":
            from kb.stores.embedding_function import EmbeddingFunction

            client = _client("lambda", settings, timeout, attempts=1)
            return EmbeddingFunction(client, function=settings.embedding_function)


class _Late:
    """Made at its first use: what OpenSearch takes to import, a keyword's answer does not need."""

    def __init__(self, make: Callable[[], object]) -> None:
        self._make = cache(make)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._make(), name)


def _vector_index(
    settings: Shared, embedder: Embedder, patience: float, may_lag: bool = False
) -> VectorIndex:
    match settings.vector_index:
        case "embedded":
            return _embedded_index(embedder.model, embedder.dimension)
        case "opensearch":
            from kb.stores.opensearch_index import OpenSearchIndex, connect

            client = connect(
                settings.opensearch_endpoint,
                region=os.environ.get("AWS_REGION") or boto3.Session().region_name or "",
                timeout=settings.vectors_timeout,
            )
            return OpenSearchIndex(
                client,
                index=settings.opensearch_index,
                model=embedder.model,
                dimension=embedder.dimension,
                patience=patience,
                may_lag=may_lag,
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
