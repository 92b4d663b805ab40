"""Fetching the model's files from a server, which may send something else."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fetch
import pytest
from conftest import CONTAINER

FILES = {"/r1/onnx/model.onnx": b"graph", "/r1/tokenizer.json": bytes(range(256)) * 9000}


class Server(BaseHTTPRequestHandler):
    """Serves FILES; a path below /flaky breaks off once before it works, below /short always."""

    failed: set[str]

    def do_GET(self) -> None:
        mode, _, rest = self.path[1:].partition("/")
        data = FILES.get(f"/{rest}" if mode in {"flaky", "short"} else self.path)
        if data is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        breaks = mode == "short" or (mode == "flaky" and self.path not in self.failed)
        self.failed.add(self.path)
        self.wfile.write(data[:-1] if breaks else data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(fetch.time, "sleep", lambda seconds: None)
    Server.failed = set()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def checksums(tmp_path: Path) -> Path:
    file = tmp_path / "some.sha256"
    lines = [f"{hashlib.sha256(data).hexdigest()}  {path[4:]}" for path, data in FILES.items()]
    file.write_text("# of revision r1\n\n" + "\n".join(lines) + "\n", "utf-8")
    return file


@pytest.mark.parametrize("revision", ["r1", "flaky/r1"])
def test_files_are_fetched_side_by_side(
    url: str, checksums: Path, tmp_path: Path, revision: str
) -> None:
    fetch.fetch(f"{url}/{revision}", checksums, tmp_path / "model")
    got = {file.name: file.read_bytes() for file in (tmp_path / "model").iterdir()}
    assert got == {path.rpartition("/")[2]: data for path, data in FILES.items()}


def test_another_file_than_wanted_stops_the_build(
    url: str, checksums: Path, tmp_path: Path
) -> None:
    other = checksums.read_text("utf-8").replace(hashlib.sha256(b"graph").hexdigest(), "0" * 64)
    checksums.write_text(other, "utf-8")
    digest = hashlib.sha256(b"graph").hexdigest()
    with pytest.raises(SystemExit, match=f"onnx/model.onnx: its SHA-256 is {digest}, not 0{{64}}"):
        fetch.fetch(f"{url}/r1", checksums, tmp_path / "model")


@pytest.mark.parametrize(
    ("place", "reason"),
    [("/r2", "404"), ("/short/r1", "1 bytes are missing"), ("0/r1", "onnx/model.onnx: ")],
    ids=["absent", "broken off", "no server"],
)
def test_what_cannot_be_fetched_stops_the_build(
    url: str, checksums: Path, tmp_path: Path, place: str, reason: str
) -> None:
    at = url + place if place[0] == "/" else "http://127.0.0.1:1/r1"
    with pytest.raises(SystemExit, match=reason):
        fetch.fetch(at, checksums, tmp_path / "model")


def test_printed_checksums_are_what_fetch_reads(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fetch.print_checksums(f"{url}/r1", ["onnx/model.onnx", "tokenizer.json"])
    printed = tmp_path / "printed.sha256"
    printed.write_text(capsys.readouterr().out, "utf-8")
    fetch.fetch(f"{url}/r1", printed, tmp_path / "model")
    assert sorted(file.name for file in (tmp_path / "model").iterdir()) == [
        "model.onnx",
        "tokenizer.json",
    ]


def test_the_models_checksums_name_the_four_files_that_the_export_has() -> None:
    digests = fetch.read_checksums(CONTAINER / "model.sha256")
    assert list(digests) == [
        "onnx/model.onnx",
        "onnx/model.onnx_data",
        "onnx/Constant_7_attr__value",
        "tokenizer.json",
    ]
    assert digests["onnx/Constant_7_attr__value"] == hashlib.sha256(bytes(65_552)).hexdigest()
