"""The bucket of documents, read as it is now."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from kb.errors import Unavailable

MISSING = frozenset({"NoSuchKey", "404", "NotFound"})


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object as it was when it was read."""

    data: bytes | None
    """None where it has more bytes than were asked for."""
    size: int
    """In bytes."""
    stored_at: str
    """ISO 8601, UTC."""
    etag: str
    """Another one wherever the content is another one."""


class KnowledgeBucket:
    """Methods raise Unavailable("bucket") when S3 does not answer."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def read(self, key: str, most: int) -> StoredObject | None:
        """The newest version, or None where there is none (deleted, or never there).

        Nothing of more than `most` bytes is loaded.
        """
        with _answering():
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=key)
            except ClientError as error:
                if _is_missing(error):
                    return None
                raise
            size = answer["ContentLength"]
            with closing(answer["Body"]) as body:
                data = body.read() if size <= most else None
            return StoredObject(data, size, answer["LastModified"].isoformat(), answer["ETag"])

    def list_keys(self) -> Iterator[str]:
        """Every object's key, page by page, by byte order."""
        with _answering():
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket)
            for page in pages:
                yield from (item["Key"] for item in page.get("Contents", ()))

    def etag(self, key: str) -> str | None:
        """That of the newest version, or None where there is none."""
        with _answering():
            try:
                answer = self._client.head_object(Bucket=self._bucket, Key=key)
            except ClientError as error:
                if _is_missing(error):
                    return None
                raise
            etag: str = answer["ETag"]
            return etag


@contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        raise Unavailable("bucket", error.response["Error"]["Code"]) from error
    except (BotoCoreError, OSError) as error:
        raise Unavailable("bucket", type(error).__name__) from error


def _is_missing(error: ClientError) -> bool:
    return error.response["Error"]["Code"] in MISSING
