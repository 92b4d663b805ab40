"""The documents of a folder as files, with the keys that they get in the bucket."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kb.documents import is_document

KEY_BYTES_MOST = 1024
"""S3's limit, in UTF-8."""


@dataclass(frozen=True, slots=True)
class MarkdownFile:
    """One file, or (`problem`) what keeps it or a folder from being read."""

    key: str
    path: Path
    problem: str = ""


def markdown_below(folder: Path) -> Iterator[MarkdownFile]:
    """Every document of the folder by path; hidden files and folders are left out.

    Keys are paths below the folder with `/`.
    """
    unreadable: list[OSError] = []
    for place, folders, names in os.walk(folder, onerror=unreadable.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if is_document(name) and not name.startswith("."):
                path = Path(place, name)
                yield markdown_file(path, path.relative_to(folder).as_posix())
    for error in unreadable:
        path = Path(error.filename)
        problem = f"the folder cannot be read ({error.strerror})"
        yield MarkdownFile(f"{path.relative_to(folder).as_posix()}/", path, problem)


def markdown_file(path: Path, key: str) -> MarkdownFile:
    """One file under a key, which S3 may not take."""
    try:
        length = len(key.encode())
    except UnicodeEncodeError:
        return MarkdownFile(key, path, "the file's name is not valid UTF-8")
    if length > KEY_BYTES_MOST:
        problem = f"its path has {length:,} bytes; S3 takes at most {KEY_BYTES_MOST:,}"
        return MarkdownFile(key, path, problem)
    return MarkdownFile(key, path)


def size_of(path: Path) -> int:
    """Bytes of a regular file. Raises OSError, also where it is something else."""
    if path.exists() and not path.is_file():
        raise OSError(0, "it is no regular file")
    return path.stat().st_size
