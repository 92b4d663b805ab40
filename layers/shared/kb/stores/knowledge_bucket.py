"""The bucket of documents, read as it is now."""

from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from kb.errors import Refused, Unavailable

MISSING = frozenset({"NoSuchKey", "404", "NotFound"})


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object's bytes and when they were stored (ISO 8601, UTC)."""

    data: bytes
    stored_at: str


class KnowledgeBucket:
    """Methods raise Unavailable("bucket") when S3 does not answer."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def read(self, key: str, most: int) -> StoredObject | None:
        """The newest version, or None where there is none (deleted, or never there).

        Raises Refused where it has more than `most` bytes; nothing larger is ever loaded.
        """
        try:
            answer = self._client.get_object(Bucket=self._bucket, Key=key)
            with answer["Body"] as body:
                if answer["ContentLength"] > most:
                    raise Refused(
                        f"the file has {answer['ContentLength']:,} bytes; at most {most:,} are"
                        " indexed: split it"
                    )
                return StoredObject(body.read(), answer["LastModified"].isoformat())
        except ClientError as error:
            if error.response["Error"]["Code"] in MISSING:
                return None
            raise Unavailable("bucket", error.response["Error"]["Code"]) from error
        except (BotoCoreError, OSError) as error:
            raise Unavailable("bucket", type(error).__name__) from error
