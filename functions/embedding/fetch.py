"""Build step: fetches a model's files and checks each one's SHA-256.

fetch.py URL CHECKSUMS FOLDER     the files that CHECKSUMS names, below URL, into FOLDER
fetch.py --checksums URL PATH...  the checksums of those files, as such a file has them
"""

import hashlib
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

ATTEMPTS = 3
TIMEOUT = 60
"""Seconds without a byte."""
BLOCK = 1 << 20


def read_checksums(file: Path) -> dict[str, str]:
    """Path -> SHA-256, of lines as sha256sum writes them; # begins a comment."""
    lines = (line.split() for line in file.read_text("utf-8").splitlines())
    return {path: digest for digest, path in (line for line in lines if line and line[0] != "#")}


def fetch(url: str, checksums: Path, folder: Path) -> None:
    """Fetch every file into `folder`, without its path. Exits where one is another than wanted."""
    folder.mkdir()
    for path, wanted in read_checksums(checksums).items():
        got = _download(f"{url}/{path}", folder / Path(path).name)
        if got != wanted:
            sys.exit(f"{path}: its SHA-256 is {got}, not {wanted} as {checksums} has it")
        print(f"{path}: {got}")


def print_checksums(url: str, paths: Sequence[str]) -> None:
    """Fetch the files, keep none, and print what `fetch` checks them with."""
    for path in paths:
        print(f"{_download(f'{url}/{path}', Path('/dev/null'))}  {path}")


def _download(url: str, file: Path) -> str:
    """Write what `url` has to `file`; returns its SHA-256. Exits where it cannot be fetched."""
    for attempt in range(ATTEMPTS):
        time.sleep(attempt)
        digest = hashlib.sha256()
        try:
            with file.open("wb") as out:
                for block in _blocks(url):
                    digest.update(block)
                    out.write(block)
            return digest.hexdigest()
        except urllib.error.HTTPError as error:
            error.close()
            failure = str(error)
        except OSError as error:  # the rest of urllib's, and connections that break off
            failure = str(error)
    sys.exit(f"{url}: {failure}")


def _blocks(url: str) -> Iterator[bytes]:
    with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:  # noqa: S310 - a build argument
        left = int(answer.headers["Content-Length"])
        while block := answer.read(BLOCK):
            left -= len(block)
            yield block
    if left:
        raise urllib.error.URLError(f"{left} bytes are missing")


if __name__ == "__main__":
    if sys.argv[1] == "--checksums":
        print_checksums(sys.argv[2], sys.argv[3:])
    else:
        fetch(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
