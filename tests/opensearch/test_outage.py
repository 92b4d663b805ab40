"""What happens to callers while the node is gone, and after it came back."""

# ruff: noqa: S603 -- the command is this repository's own

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from kb.documents import Version
from kb.errors import KbError, Unavailable
from kb.ports import IndexedChunk
from kb.stores.opensearch_index import OpenSearchIndex, connect
from opensearchpy import OpenSearch

NODE = Path(__file__).with_name("node.py")
VERSION = Version(1, "f")
HERE = (1.0, 0.0)


def chunks(key: str, count: int) -> list[IndexedChunk]:
    return [IndexedChunk(key, VERSION, at, 1, "", "default", "text", HERE) for at in range(count)]


def command(action: str, node: Path) -> None:
    subprocess.run([sys.executable, NODE, action, node], check=True)


@pytest.fixture
def node() -> Iterator[Path]:
    """The node's directory; it runs again after the test."""
    directory = os.environ.get("OPENSEARCH_TEST_NODE")
    if not directory:
        pytest.skip("OPENSEARCH_TEST_NODE is not set")
    yield Path(directory)
    command("start", Path(directory))


@pytest.fixture
def index(node: Path, client: OpenSearch, name: str) -> OpenSearchIndex:
    """An index with one document of three chunks, over a client that waits two seconds."""
    hasty = connect(os.environ["OPENSEARCH_TEST_ENDPOINT"], region="", timeout=2)
    index = OpenSearchIndex(hasty, index=name, model="m", dimension=2, patience=60)
    index.prepare()
    index.write(chunks("kept", 3))
    index.refresh()
    return index


def failure(call: object, *arguments: object) -> str:
    """The outcome of a call as a word."""
    try:
        call(*arguments)  # type: ignore[operator]
    except Unavailable as error:
        return error.what
    except KbError as error:
        return repr(error)
    return "answered"


def outcomes(index: OpenSearchIndex) -> list[str]:
    return [
        failure(index.prepare),
        failure(index.write, chunks("lost", 1)),
        failure(index.refresh),
        failure(index.search, HERE, 10),
        failure(index.remove_others, "kept", VERSION, 1),
    ]


def test_node_stopped_in_the_middle_of_a_write_is_unavailable_and_recovers(
    index: OpenSearchIndex, node: Path
) -> None:
    written: list[str] = []

    def write_until_it_fails() -> None:
        while not written or written[-1] == "answered":
            written.append(failure(index.write, chunks("interrupted", 200)))

    writer = Thread(target=write_until_it_fails)
    writer.start()
    command("stop", node)
    writer.join()
    while_gone = outcomes(index)
    command("start", node)
    index.remove_others("interrupted", None, 1)
    kept = [(hit.key, hit.ordinal) for hit in index.search(HERE, 10)]
    index.write(chunks("after", 1))
    index.refresh()
    found = [(hit.key, hit.ordinal) for hit in index.search(HERE, 10)]
    assert set(written) == {"answered", "vectors"}
    assert while_gone == ["vectors"] * 5
    assert kept == [("kept", 0), ("kept", 1), ("kept", 2)]
    assert found == [("after", 0), *kept]


def test_node_that_does_not_answer_in_time_is_unavailable_and_recovers(
    index: OpenSearchIndex, node: Path
) -> None:
    process = int((node / "pid").read_text())
    os.kill(process, signal.SIGSTOP)
    try:
        search = failure(index.search, HERE, 10)
        write = failure(index.write, chunks("late", 1))
    finally:
        os.kill(process, signal.SIGCONT)
    index.refresh()
    index.remove_others("late", None, 1)  # the node got the request, and may have done it
    assert (search, write) == ("vectors", "vectors")
    assert [hit.key for hit in index.search(HERE, 10)] == ["kept"] * 3
