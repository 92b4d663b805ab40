"""A folder and a bucket compared by hash, and what differs put or removed, many at once."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from kb.commands.api_client import CannotAsk
from kb.commands.markdown_files import MarkdownFile, size_of
from kb.documents import is_document

T = TypeVar("T")

PARALLEL = 16
"""Calls to S3 at once."""
HASH = "sha256"
"""Metadata of every object put here: an ETag is no hash where the bucket encrypts with KMS."""


@dataclass(slots=True)
class Plan:
    """What must happen so that the bucket holds the folder's documents."""

    put: list[MarkdownFile] = field(default_factory=list)
    same: dict[str, datetime] = field(default_factory=dict)
    """When those that need nothing were stored, by key."""
    extra: list[str] = field(default_factory=list)
    """Documents of the bucket that the folder does not have."""
    unread: list[MarkdownFile] = field(default_factory=list)
    """What cannot be read; whatever the bucket holds of it stays."""


class Bucket:
    """Methods raise CannotAsk where S3 refuses or does not answer."""

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self._name = name

    def plan(self, files: Sequence[MarkdownFile]) -> Plan:
        """Compare every document of the folder with the bucket."""
        stored = self._stored()
        plan = Plan()
        compare = {file.key: partial(self._compared, file, stored.get(file.key)) for file in files}
        states = dict(at_once(compare))
        for file in files:
            match states[file.key]:
                case MarkdownFile() as unread:
                    plan.unread.append(unread)
                case True:
                    plan.same[file.key] = stored[file.key]["LastModified"]
                case False:
                    plan.put.append(file)
        kept = {file.key for file in files}
        # An unread folder stands for all that is below it.
        folders = tuple(file.key for file in plan.unread if file.key.endswith("/"))
        plan.extra = [
            key for key in sorted(stored) if key not in kept and not key.startswith(folders)
        ]
        return plan

    def put(self, file: MarkdownFile) -> datetime | None:
        """Store one document; when it was, by S3's clock. None where it is there no longer."""
        try:
            data = file.path.read_bytes()
        except OSError:
            return None
        with self._asking(file.key):
            answer = self._client.put_object(
                Bucket=self._name,
                Key=file.key,
                Body=data,
                ContentType="text/markdown",
                Metadata={HASH: hashlib.sha256(data).hexdigest()},
            )
        date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        return parsedate_to_datetime(date) if date else datetime.now(UTC).replace(microsecond=0)

    def remove(self, key: str) -> None:
        with self._asking(key):
            self._client.delete_object(Bucket=self._name, Key=key)

    def _stored(self) -> Mapping[str, Mapping[str, Any]]:
        """Every document of the bucket as S3 lists it."""
        with self._asking(""):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._name)
            found = (item for page in pages for item in page.get("Contents", ()))
            return {item["Key"]: item for item in found if is_document(item["Key"])}

    def _compared(
        self, file: MarkdownFile, stored: Mapping[str, Any] | None
    ) -> bool | MarkdownFile:
        """Whether the bucket holds the file's bytes; the file with its problem if it has one."""
        if file.problem:
            return file
        try:
            if stored is None or stored["Size"] != size_of(file.path):
                # Opened all the same: whether it can be read is to be known before a deletion.
                file.path.open("rb").close()
                return False
            data = file.path.read_bytes()
        except OSError as error:
            return MarkdownFile(file.key, file.path, f"it cannot be read ({error.strerror})")
        if stored["ETag"].strip('"') == hashlib.md5(data, usedforsecurity=False).hexdigest():
            return True
        with self._asking(file.key):
            head = self._client.head_object(Bucket=self._name, Key=file.key)
        return bool(head["Metadata"].get(HASH) == hashlib.sha256(data).hexdigest())

    @contextmanager
    def _asking(self, key: str) -> Iterator[None]:
        where = f"s3://{self._name}/{key}"
        try:
            yield
        except ClientError as error:
            told = error.response["Error"]
            message = told.get("Message", "").rstrip(".")
            raise CannotAsk(f"{where}: {told['Code']}, {message}") from error
        except BotoCoreError as error:
            way_out = "check the AWS credentials and the network, then start again: it goes on"
            raise CannotAsk(f"{where}: {str(error).rstrip('.')}; {way_out}") from error


def at_once(jobs: Mapping[str, Callable[[], T]]) -> Iterator[tuple[str, T]]:
    """Do the jobs, many at the same time; each key with its result as soon as it is done.

    Where one fails, or the caller stops asking, what has not begun is not done.
    """
    pool = ThreadPoolExecutor(PARALLEL)
    try:
        keys = {pool.submit(job): key for key, job in jobs.items()}
        for done in as_completed(keys):
            yield keys[done], done.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
