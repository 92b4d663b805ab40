"""Makes the indexes agree with one object of the bucket, as it is now; the row is the commit.

What is written under a key carries the revision that its commit would give the row. All of a
revision that the row has reached, but for what it serves, is garbage: its writer's commit has
failed or will, whether the writer is dead or only slow. So every look at a key ends by removing
that, whoever wrote it; and nobody ever removes what a newer commit may come to serve.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from kb.admission import parse_within, split_within, too_large
from kb.catalog_row import failed_row, row_of, tombstone
from kb.chunking import CHUNKER_VERSION, Pieces
from kb.diagnosis import Expected
from kb.documents import CatalogRow, Document, Status, Version, digest_of
from kb.errors import Conflict, Refused, Unavailable
from kb.ports import Embedder, IndexedChunk, Vector, VectorIndex
from kb.settings import IngestSettings
from kb.stores.catalog_table import CatalogTable
from kb.stores.content_table import ContentTable, content_items
from kb.stores.dynamodb import Item, batches
from kb.stores.knowledge_bucket import KnowledgeBucket, StoredObject
from kb.vectors import check_vectors

logger = logging.getLogger(__name__)

ATTEMPTS = 5
"""Starts over after another writer was faster; then the message comes back later."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one look at a key came to."""

    key: str
    status: Status
    reason: str = ""
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

    def reconcile(self, key: str, *, anew: bool = False) -> Outcome:
        """Index the object as it is now, or remove what is left of it.

        `anew` writes its chunks, parts and row also where the catalog serves this content already.
        A document that cannot be indexed is an outcome, not an error. Raises Unavailable where
        something did not answer: the same call may work later, and until then the version
        served before stays. Raises Misconfigured where the index is not this system's.
        """
        if not self._is_prepared:
            self._index.prepare()
            self._is_prepared = True
        for _ in range(ATTEMPTS):
            # The row before the object: whoever commits after this read makes our commit fail, so
            # an object older than the committed one can never replace it.
            row = self._catalog.read(key)
            stored = self._bucket.read(key, self._settings.document_bytes)
            try:
                outcome = self._agree(key, row, stored, anew)
            except Conflict:
                logger.info("commit_conflict", extra={"key": key})
                if row := self._catalog.read(key):
                    self._clean_up(row)
                continue
            # If the object changed back to what was served before our commit, the one who looked
            # at it then saw nothing to do: it is ours to see that it is another one now.
            seen = stored.etag if stored else None
            if not outcome.changed or self._bucket.etag(key) == seen:
                return outcome
            logger.info("object_changed", extra={"key": key})
        raise Unavailable("catalog", "other writers kept being faster")

    def expected(self, key: str, stored: StoredObject) -> Expected:
        """What `reconcile` would make of the object; nothing is written or embedded.

        Raises Refused where it cannot be indexed.
        """
        document = self._document(stored)
        pieces = split_within(document, self._settings)
        version = Version(0, self._fingerprint(document.content_hash))
        self._items(key, version, document, pieces)
        row = row_of(key, version, document, pieces, stored.stored_at, self._settings.row_bytes)
        return Expected(row, len(pieces.chunks))

    def is_of_recipe(self, row: CatalogRow) -> bool:
        """Whether what the row serves, if anything, was cut as it would be now."""
        return row.served is None or row.served.fingerprint == self._fingerprint(row.content_hash)

    def overtake(self, key: str, revision: int) -> None:
        """Make the row reach this revision, and remove what it does not serve up to there.

        An attempt under way whose commit would reach it fails to commit, and starts over.
        """
        for _ in range(ATTEMPTS):
            row = self._catalog.read(key)
            if row is None:
                return
            new = row
            if row.revision < revision:
                changed_at = int(self._now() * 1000)
                new = replace(row, revision=revision, changed_at=changed_at, cleanup_pending=True)
            try:
                if new is not row:
                    self._catalog.commit(new, expected_revision=row.revision)
            except Conflict:
                logger.info("commit_conflict", extra={"key": key})
                continue
            self._clean_up(new)
            return
        raise Unavailable("catalog", "other writers kept being faster")

    def _agree(
        self, key: str, row: CatalogRow | None, stored: StoredObject | None, anew: bool
    ) -> Outcome:
        """Make the row say what the object is, then remove what the row does not serve."""
        try:
            if stored is None:
                expires_at = int(self._now() + self._settings.tombstone_ttl)
                new = tombstone(key, row, expires_at)
            else:
                new = self._indexed(key, row, stored, anew)
        except Refused as refused:
            new = failed_row(key, row, str(refused))
        if new is row and self._content.has_newer(key, row.revision):
            # Left by a writer that died, or by one about to commit what the object was before:
            # its commit must fail, so that nobody needs what it wrote.
            new = replace(row, revision=row.revision + 1, cleanup_pending=True)
        if new is not row:
            new = replace(new, changed_at=int(self._now() * 1000))
            self._catalog.commit(new, expected_revision=new.revision - 1)
        self._clean_up(new)
        return Outcome(key, new.status, new.reason, changed=new is not row)

    def _indexed(
        self, key: str, row: CatalogRow | None, stored: StoredObject, anew: bool
    ) -> CatalogRow:
        """The row for the object, its parts and chunks written; the one given if that says it."""
        document = self._document(stored)
        revision = row.revision + 1 if row else 1
        fingerprint = self._fingerprint(document.content_hash)
        kept = None
        if row and row.served and row.served.fingerprint == fingerprint and not anew:
            if row.status is not Status.FAILED:
                return row
            kept = row.served
        version = kept or Version(revision, fingerprint)
        pieces = split_within(document, self._settings)
        new = row_of(key, version, document, pieces, stored.stored_at, self._settings.row_bytes)
        if kept is None:
            items = self._items(key, version, document, pieces)
            vectors = self._embed(pieces)
            self._content.write(items)
            if vectors:
                self._index.write(_chunks(new, version, pieces, vectors))
                self._index.refresh()
        return replace(new, revision=revision)

    def _document(self, stored: StoredObject) -> Document:
        if stored.data is None:
            raise too_large(stored.size, self._settings)
        return parse_within(stored.data, self._settings)

    @staticmethod
    def _items(key: str, version: Version, document: Document, pieces: Pieces) -> list[Item]:
        metadata = document.frontmatter.metadata if document.frontmatter else {}
        return content_items(key, version, pieces.parts, pieces.outline, metadata)

    def _clean_up(self, row: CatalogRow) -> None:
        """Remove what is not served of the revisions up to the row's, and note that it is done."""
        self._index.remove_others(row.key, row.served, row.revision)
        self._content.remove_others(row.key, row.served, row.revision)
        if row.cleanup_pending:
            self._catalog.finish_cleanup(row.key, row.revision)

    def _embed(self, pieces: Pieces) -> list[Vector]:
        vectors: list[Vector] = []
        texts = [chunk.searched for chunk in pieces.chunks]
        for batch in batches(texts, self._settings.embed_batch):
            some = self._embedder.embed_passages(batch)
            check_vectors(some, len(batch), self._embedder.dimension)
            vectors += some
        return vectors

    def _fingerprint(self, content_hash: str) -> str:
        """Changes with everything that makes parts and chunks come out differently.

        Not with the embedding model: an index knows whose vectors it holds (kb.reindex).
        """
        settings = self._settings
        recipe = (
            content_hash,
            CHUNKER_VERSION,
            settings.content_limit,
            settings.chunk_size,
            settings.chunk_overlap,
            settings.frontmatter_limit,
            settings.keyword_length,
        )
        return digest_of(repr(recipe))


def _chunks(
    row: CatalogRow, version: Version, pieces: Pieces, vectors: Iterable[Vector]
) -> list[IndexedChunk]:
    return [
        IndexedChunk(
            row.key, version, ordinal, chunk.part, chunk.section, row.domain, chunk.searched, vector
        )
        for ordinal, (chunk, vector) in enumerate(zip(pieces.chunks, vectors, strict=True))
    ]
