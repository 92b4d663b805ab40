"""A folder of Markdown, kept the same in the bucket."""

import os
from collections.abc import Callable, Iterator
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


Signature = tuple[int, ...]


class FolderSync:
    """Keys are paths below `folder` with `/`. Hidden files and folders are left out."""

    def __init__(self, folder: Path, s3: Any, bucket: str, sqs: Any, queue_url: str) -> None:
        self._folder = folder
        self._s3 = s3
        self._bucket = bucket
        self._sqs = sqs
        self._queue_url = queue_url
        self._seen: dict[str, Signature] = {}
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
        found: dict[str, Signature] = {}
        closed: list[OSError] = []
        for path in self._documents(closed.append):
            key = path.relative_to(self._folder).as_posix()
            found[key] = _signature(path)
            if self._seen.get(key) != found[key]:
                self._put(key, path, changes)
        # What lies below a folder that cannot be read may well be there.
        hidden = tuple(
            f"{Path(error.filename).relative_to(self._folder).as_posix()}/" for error in closed
        )
        for error, prefix in zip(closed, hidden, strict=True):
            found[prefix] = (error.errno or 0,)
            if self._seen.get(prefix) != found[prefix]:
                changes.warnings.append(f"{_shown(prefix)}: cannot be read ({error.strerror})")
        for key in sorted(self._stored - found.keys()):
            if not key.startswith(hidden):
                self._remove(key)
                changes.removed.append(key)
        self._seen = found
        return changes

    def _documents(self, on_error: Callable[[OSError], None]) -> Iterator[Path]:
        for folder, folders, files in os.walk(self._folder, onerror=on_error):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(files):
                if is_document(name) and not name.startswith("."):
                    yield Path(folder, name)

    def _put(self, key: str, path: Path, changes: Changes) -> None:
        try:
            if not path.is_file():
                reason = "is a link to nothing" if path.is_symlink() else "is no regular file"
                changes.warnings.append(f"{_shown(key)}: {reason}")
                return
            self._s3.put_object(Bucket=self._bucket, Key=key, Body=path.read_bytes())
        except OSError as error:
            changes.warnings.append(f"{_shown(key)}: cannot be read ({error.strerror})")
        except UnicodeEncodeError:
            changes.warnings.append(f"{_shown(key)}: the file's name is not valid UTF-8")
        except (BotoCoreError, ClientError) as error:
            changes.warnings.append(f"{_shown(key)}: the bucket does not take it ({error})")
        else:
            self._stored.add(key)
            changes.put.append(key)

    def _remove(self, key: str) -> None:
        self._stored.discard(key)
        self._s3.delete_object(Bucket=self._bucket, Key=key)
        announce_removal(self._sqs, self._queue_url, self._bucket, key)


def _signature(path: Path) -> Signature:
    """Differs when the file does, or when why it cannot be read does."""
    try:
        state = path.stat()
    except OSError as error:
        return (error.errno or 0,)
    return state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino


def _shown(key: str) -> str:
    return key.encode(errors="replace").decode()
