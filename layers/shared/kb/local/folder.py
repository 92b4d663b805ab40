"""A folder of Markdown, kept the same in the bucket."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from kb.documents import is_document
from kb.local.deletions import announce_removal


@dataclass(slots=True)
class Changes:
    """What one look at the folder changed in the bucket, by key."""

    put: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """One a file that cannot be taken, once until it changes."""

    def __bool__(self) -> bool:
        return bool(self.put or self.removed or self.warnings)


class FolderSync:
    """Keys are paths below `folder` with `/`. Hidden files and folders are left out."""

    def __init__(self, folder: Path, s3: Any, bucket: str, sqs: Any, queue_url: str) -> None:
        self._folder = folder
        self._s3 = s3
        self._bucket = bucket
        self._sqs = sqs
        self._queue_url = queue_url
        self._seen: dict[str, tuple[int, ...]] = {}
        self._stored: set[str] = set()

    def sync(self) -> Changes:
        """Put what is new or changed since the last look, delete what is gone."""
        changes = Changes()
        if not self._folder.is_dir():
            # A folder that is unmounted or moved is no wish to delete everything.
            if self._seen:
                changes.warnings.append(f"{self._folder} is gone; what it held stays served")
            self._seen = {}
            return changes
        found: dict[str, tuple[int, ...]] = {}
        for path in self._documents():
            shown = str(path.relative_to(self._folder)).encode(errors="replace").decode()
            try:
                state = path.stat()
            except OSError as error:
                signature: tuple[int, ...] = (error.errno or 0,)
            else:
                signature = (state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino)
            key = path.relative_to(self._folder).as_posix()
            found[key] = signature
            if self._seen.get(key) == signature:
                continue
            try:
                self._s3.put_object(Bucket=self._bucket, Key=key, Body=path.read_bytes())
            except OSError as error:
                changes.warnings.append(f"{shown}: cannot be read ({error.strerror})")
            except UnicodeEncodeError:
                changes.warnings.append(f"{shown}: the file's name is not valid UTF-8")
            except (BotoCoreError, ClientError) as error:
                changes.warnings.append(f"{shown}: the bucket does not take it ({error})")
            else:
                self._stored.add(key)
                changes.put.append(key)
        for key in sorted(self._stored - found.keys()):
            self._remove(key)
            changes.removed.append(key)
        self._seen = found
        return changes

    def _documents(self) -> Iterator[Path]:
        for folder, folders, files in os.walk(self._folder):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(files):
                if is_document(name) and not name.startswith("."):
                    yield Path(folder, name)

    def _remove(self, key: str) -> None:
        self._stored.discard(key)
        self._s3.delete_object(Bucket=self._bucket, Key=key)
        announce_removal(self._sqs, self._queue_url, self._bucket, key)
