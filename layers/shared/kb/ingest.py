"""Makes the indexes agree with one object of the bucket, as it is now; the row is the commit."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from kb.catalog_row import row_of
from kb.chunking import CHUNKER_VERSION, Pieces, split_document
from kb.documents import CatalogRow, Document, Status, Version, digest_of, domain_of
from kb.errors import Conflict, Refused, Unavailable
from kb.parsing import parse_document
from kb.ports import Embedder, IndexedChunk, Vector, VectorIndex
from kb.settings import IngestSettings
from kb.stores.catalog_table import CatalogTable
from kb.stores.content_table import ContentTable
from kb.stores.dynamodb import batches
from kb.stores.knowledge_bucket import KnowledgeBucket, StoredObject
from kb.vectors import check_vectors

logger = logging.getLogger(__name__)

ATTEMPTS = 5
"""Starts over after another writer committed first; then the message comes back later."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one look at a key came to."""

    key: str
    status: Status
    reason: str = ""
    chunks: int = 0
    changed: bool = True
    """False where the catalog already said so."""


class Ingest:
    """`now` returns seconds since 1970."""

    def __init__(
        self,
        *,
        bucket: KnowledgeBucket,
        catalog: CatalogTable,
        content: ContentTable,
        index: VectorIndex,
        embedder: Embedder,
        settings: IngestSettings,
        now: Callable[[], float],
    ) -> None:
        self._bucket = bucket
        self._catalog = catalog
        self._content = content
        self._index = index
        self._embedder = embedder
        self._settings = settings
        self._now = now
        self._is_prepared = False

    def reconcile(self, key: str) -> Outcome:
        """Index the object as it is now, or remove what is left of it.

        A document that cannot be indexed is an outcome, not an error. Raises Unavailable where
        something did not answer: the same call may work later, and until then the version
        served before stays. Raises Misconfigured where the index is not this system's.
        """
        if not self._is_prepared:
            self._index.prepare()
            self._is_prepared = True
        for _ in range(ATTEMPTS):
            try:
                return self._attempt(key)
            except Conflict:
                logger.info("commit_conflict", extra={"key": key})
        raise Unavailable("catalog", "other writers kept committing first")

    def _attempt(self, key: str) -> Outcome:
        # The row before the object: whoever commits after this read makes our commit fail, so
        # an object older than the committed one can never replace it.
        row = self._catalog.read(key)
        try:
            stored = self._bucket.read(key, self._settings.document_bytes)
            if stored is None:
                return self._remove(key, row)
            document = parse_document(
                stored.data,
                frontmatter_limit=self._settings.frontmatter_limit,
                keyword_length=self._settings.keyword_length,
            )
            return self._index_document(key, row, stored, document)
        except Refused as refused:
            return self._fail(key, row, str(refused))

    def _index_document(
        self, key: str, row: CatalogRow | None, stored: StoredObject, document: Document
    ) -> Outcome:
        fingerprint = self._fingerprint(document.content_hash)
        if row and row.served and row.served.fingerprint == fingerprint:
            return self._keep(row, row.served, stored, document)
        pieces = self._split(document)
        version = Version(_revision(row) + 1, fingerprint)
        new = row_of(key, version, document, pieces, stored.stored_at, self._settings.row_bytes)
        vectors = self._embed(pieces)
        outline = replace(pieces.outline, digests=tuple(digest_of(p.text) for p in pieces.parts))
        metadata = document.frontmatter.metadata if document.frontmatter else {}
        self._content.write(key, version, pieces.parts, outline, metadata)
        if pieces.chunks:
            self._index.write(_indexed(new, version, pieces, vectors))
            self._index.refresh()
        try:
            self._commit(new)
        except Conflict:
            self._withdraw(key, version)
            raise
        self._clean_up(new)
        return Outcome(key, new.status, new.reason, len(pieces.chunks))

    def _keep(
        self, row: CatalogRow, served: Version, stored: StoredObject, document: Document
    ) -> Outcome:
        """The served version is the object's content already: at most a failure is over."""
        if row.status is not Status.FAILED:
            self._clean_up(row)
            return Outcome(row.key, row.status, row.reason, changed=False)
        again = row_of(
            row.key,
            served,
            document,
            self._split(document),
            stored.stored_at,
            self._settings.row_bytes,
        )
        again = replace(again, revision=row.revision + 1)
        self._commit(again)
        self._clean_up(again)
        return Outcome(row.key, again.status, again.reason)

    def _fail(self, key: str, row: CatalogRow | None, reason: str) -> Outcome:
        """Say why the newest version cannot be indexed; what was served before still is."""
        if row and row.status is Status.FAILED and row.reason == reason:
            return Outcome(key, row.status, reason, changed=False)
        if row is None or row.served is None:
            row = CatalogRow(
                key, _revision(row), Status.FAILED, changed_at=0, domain=domain_of(key)
            )
        failed = replace(row, revision=row.revision + 1, status=Status.FAILED, reason=reason)
        self._commit(failed)
        return Outcome(key, failed.status, reason)

    def _remove(self, key: str, row: CatalogRow | None) -> Outcome:
        """Leave a tombstone, so that warm functions learn of it, and remove the rest.

        Also where there was no row: only a committed revision makes it safe to remove what a
        crash before the first commit may have left.
        """
        if row and row.status is Status.DELETED:
            self._clean_up(row)
            return Outcome(key, row.status, changed=False)
        tombstone = CatalogRow(
            key,
            _revision(row) + 1,
            Status.DELETED,
            changed_at=0,
            cleanup_pending=True,
            expires_at=int(self._now() + self._settings.tombstone_ttl),
        )
        self._commit(tombstone)
        self._clean_up(tombstone)
        return Outcome(key, tombstone.status)

    def _commit(self, row: CatalogRow) -> None:
        """Stamp and write the row if nobody committed since it was read. Raises Conflict."""
        stamped = replace(row, changed_at=int(self._now() * 1000))
        self._catalog.commit(stamped, expected_revision=row.revision - 1)

    def _withdraw(self, key: str, version: Version) -> None:
        """Remove what a lost attempt wrote, unless the winner serves the very same version."""
        winner = self._catalog.read(key)
        if winner is None or winner.served != version:
            self._index.remove_version(key, version)
            self._content.remove_version(key, version)

    def _clean_up(self, row: CatalogRow) -> None:
        """Remove what is older than the committed version, and note that it is done."""
        if row.cleanup_pending:
            version = row.served or Version(row.revision, fingerprint="")
            self._index.remove_older(row.key, version)
            self._content.remove_older(row.key, version)
            self._catalog.finish_cleanup(row.key, row.revision)

    def _split(self, document: Document) -> Pieces:
        pieces = split_document(
            document,
            content_limit=self._settings.content_limit,
            chunk_size=self._settings.chunk_size,
            overlap=self._settings.chunk_overlap,
        )
        if len(pieces.chunks) > self._settings.chunks_per_document:
            raise Refused(
                f"the document has {len(pieces.chunks):,} chunks; at most"
                f" {self._settings.chunks_per_document:,} are indexed: split it"
            )
        return pieces

    def _embed(self, pieces: Pieces) -> list[Vector]:
        vectors: list[Vector] = []
        texts = [f"{chunk.context}\n{chunk.text}".strip() for chunk in pieces.chunks]
        for batch in batches(texts, self._settings.embed_batch):
            some = self._embedder.embed_passages(batch)
            check_vectors(some, len(batch), self._embedder.dimension)
            vectors += some
        return vectors

    def _fingerprint(self, content_hash: str) -> str:
        """Changes with everything that makes parts, chunks or vectors come out differently."""
        settings = self._settings
        recipe = (
            content_hash,
            CHUNKER_VERSION,
            settings.content_limit,
            settings.chunk_size,
            settings.chunk_overlap,
            settings.frontmatter_limit,
            settings.keyword_length,
            self._embedder.model,
        )
        return digest_of(repr(recipe))


def _revision(row: CatalogRow | None) -> int:
    return row.revision if row else 0


def _indexed(
    row: CatalogRow, version: Version, pieces: Pieces, vectors: Iterable[Vector]
) -> list[IndexedChunk]:
    return [
        IndexedChunk(
            row.key, version, ordinal, chunk.part, chunk.section, row.domain, chunk.text, vector
        )
        for ordinal, (chunk, vector) in enumerate(zip(pieces.chunks, vectors, strict=True))
    ]
