"""kb upload: what differs is put, by hash, and each document's status is waited for."""

import hashlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from kb.cli import run
from kb.commands import bucket_sync
from kb.commands.bucket_sync import Bucket
from kb.commands.markdown_files import markdown_below

from tests.conftest import System, markdown
from tests.served import ingesting, serving

GOOD = markdown("Disk", "[disk alarm]", "# One\n\nText.")
FAULTY = "---\ntitle: a: b\n---\n\nText.\n"
BINARY = b"\x00\x01\x02\x03" * 100


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    (docs / "sub").mkdir(parents=True)
    (docs / "disk.md").write_text(GOOD)
    (docs / "sub" / "C++ 指南 100%.md").write_text(FAULTY)
    return docs


@pytest.fixture
def api(system: System, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The system with its queue worked off; the shell has its bucket and nothing more."""
    for name in ("KB_URL", "KB_API_KEY", "KB_CATALOG_TABLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KB_BUCKET", system.cloud.bucket)
    with serving(system, monkeypatch) as url, ingesting(system, monkeypatch):
        yield url


def stored(system: System) -> dict[str, bytes]:
    s3 = system.cloud.client("s3")
    listed = s3.list_objects_v2(Bucket=system.cloud.bucket).get("Contents", [])
    return {
        one["Key"]: s3.get_object(Bucket=system.cloud.bucket, Key=one["Key"])["Body"].read()
        for one in listed
    }


def puts(system: System) -> int:
    s3 = system.cloud.client("s3")
    return len(s3.list_object_versions(Bucket=system.cloud.bucket).get("Versions", []))


def statuses(system: System, url: str, source: str) -> list[str]:
    """The options that say where statuses are asked for."""
    return ["--url", url] if source == "api" else ["--table", system.environment["CATALOG_TABLE"]]


@pytest.mark.parametrize("source", ["api", "table"])
def test_folder_is_put_and_every_status_printed(
    source: str, folder: Path, system: System, api: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["upload", str(folder), *statuses(system, api, source)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines[:2]) == ["stored         disk.md", "stored         sub/C++ 指南 100%.md"]
    assert lines[2] == "2 put"
    assert sorted(line.partition("frontmatter")[0] for line in lines[3:5]) == [
        "indexed        disk.md",
        "semantic_only  sub/C++ 指南 100%.md  ",
    ]
    assert lines[5:] == ["1 indexed, 1 semantic_only"]
    assert stored(system) == {"disk.md": GOOD.encode(), "sub/C++ 指南 100%.md": FAULTY.encode()}


@pytest.mark.parametrize("source", ["api", "table"])
def test_again_nothing_is_put_and_only_what_needs_its_writer_is_printed(
    source: str, folder: Path, system: System, api: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["upload", str(folder), *statuses(system, api, source)])
    capsys.readouterr()
    assert run(["upload", str(folder), *statuses(system, api, source)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (lines[0], lines[-1]) == ("2 unchanged", "1 indexed, 1 semantic_only")
    assert [line.split()[0] for line in lines[1:-1]] == ["semantic_only"]
    assert puts(system) == 2


def test_a_changed_document_is_waited_for_until_its_new_content_is_indexed(
    folder: Path, system: System, api: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["upload", str(folder), "--url", api])
    (folder / "disk.md").write_text(GOOD.replace("Text.", "New text."))
    assert run(["upload", str(folder), "--url", api]) == 0
    assert puts(system) == 3
    answer = system.ask("disk alarm")
    assert answer.primary is not None
    assert answer.primary.content == "# One\n\nNew text."


def test_bytes_that_decode_to_the_same_text_are_put_and_not_waited_for_in_vain(
    folder: Path, system: System, api: str
) -> None:
    run(["upload", str(folder), "--url", api])
    (folder / "disk.md").write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert run(["upload", str(folder), "--url", api, "--wait", "20"]) == 0
    assert puts(system) == 3


@pytest.mark.parametrize("source", ["api", "table"])
def test_a_document_that_cannot_be_indexed_is_exit_code_4_also_when_it_fails_again(
    source: str, folder: Path, system: System, api: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "photo.md").write_bytes(BINARY)
    assert run(["upload", str(folder), *statuses(system, api, source)]) == 4
    (folder / "photo.md").write_bytes(BINARY + BINARY)
    assert run(["upload", str(folder), *statuses(system, api, source), "--wait", "20"]) == 4
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "1 failed, 1 indexed, 1 semantic_only"


def test_documents_of_the_bucket_alone_are_removed_only_where_asked(
    folder: Path, system: System, api: str, capsys: pytest.CaptureFixture[str]
) -> None:
    system.ingest("old.md", markdown("Old", "[old thing]", "Text."))
    system.put("notes.txt", "not a document")
    assert run(["upload", str(folder), "--url", api]) == 0
    assert "2 put, 1 only in the bucket (--delete removes)" in capsys.readouterr().out
    assert "old.md" in stored(system)


def test_a_kb_serve_is_uploaded_to_by_its_address_alone(
    folder: Path,
    system: System,
    api: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system.ingest("old.md", markdown("Old", "[old thing]", "Text."))
    with monkeypatch.context() as shell:
        shell.delenv("KB_BUCKET")
        shell.delenv("AWS_ENDPOINT_URL")
        assert run(["upload", str(folder), "--url", api, "--delete"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "2 put, 1 removed" in lines
    assert "deleted        old.md" in lines
    assert lines[-1] == "1 deleted, 1 indexed, 1 semantic_only"
    assert system.ask("old thing").found is False


def test_without_a_place_to_ask_nothing_is_waited_for(
    folder: Path, system: System, api: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["upload", str(folder)]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "2 put",
        "Name --url or --table to see what becomes of them.",
    ]


def test_what_cannot_be_read_is_said_and_its_old_version_stays(
    folder: Path, system: System, api: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["upload", str(folder), "--url", api])
    (folder / "disk.md").unlink()
    (folder / "disk.md").symlink_to("nowhere")
    capsys.readouterr()
    assert run(["upload", str(folder), "--url", api, "--delete"]) == 4
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "not read       disk.md  it cannot be read (No such file or directory)",
        "1 unchanged, 1 not read",
    ]
    assert "disk.md" in stored(system)


def test_an_unreadable_folder_keeps_what_the_bucket_holds_below_it(
    folder: Path, system: System, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(["upload", str(folder), "--url", api])
    scandir = os.scandir

    def refused(path: Any) -> Any:
        if str(path).endswith("sub"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    assert run(["upload", str(folder), "--url", api, "--delete"]) == 4
    assert sorted(stored(system)) == ["disk.md", "sub/C++ 指南 100%.md"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nowhere", "--bucket", "b"], "nowhere is no folder"),
        (["."], "no bucket is named; name it with --bucket or KB_BUCKET"),
        ([".", "--bucket", "b"], "holds no document"),
    ],
)
def test_what_is_missing_is_wrong_usage(
    arguments: list[str],
    line: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("KB_URL", "KB_BUCKET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    assert run(["upload", *arguments, "--delete"]) == 2
    assert line in capsys.readouterr().err


def test_a_bucket_that_is_not_there_is_one_line(
    folder: Path, api: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["upload", str(folder), "--bucket", "no-such-bucket"]) == 1
    captured = capsys.readouterr()
    assert captured.err == (
        "kb: s3://no-such-bucket/: NoSuchBucket, The specified bucket does not exist\n"
    )


def test_patience_ends_where_ingest_says_nothing(
    folder: Path,
    system: System,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = ["--bucket", system.cloud.bucket, "--table", system.environment["CATALOG_TABLE"]]
    assert run(["upload", str(folder), *options, "--wait", "0.1"]) == 1
    assert capsys.readouterr().err == (
        "kb: 2 documents after 0.1 s: ingest has not said what became of them; kb documents shows"
        " it later\n"
    )


def test_interrupted_and_started_again_it_goes_on(
    folder: Path,
    system: System,
    api: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(40):
        (folder / f"{number}.md").write_text(
            markdown(f"T{number}", f"[topic no {number}]", "Text.")
        )
    put, done = Bucket.put, []

    def until_ctrl_c(self: Bucket, file: Any) -> Any:
        if len(done) >= 10:
            raise KeyboardInterrupt
        done.append(file.key)
        return put(self, file)

    monkeypatch.setattr(Bucket, "put", until_ctrl_c)
    monkeypatch.setattr(bucket_sync, "PARALLEL", 1)
    assert run(["upload", str(folder), "--url", api]) == 130
    assert capsys.readouterr().out.splitlines()[-1] == "Interrupted; started again, it goes on."
    monkeypatch.setattr(Bucket, "put", put)
    assert run(["upload", str(folder), "--url", api]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "32 put, 10 unchanged" in lines
    assert lines[-1] == "41 indexed, 1 semantic_only"
    assert puts(system) == 42


def test_an_etag_that_is_no_hash_is_settled_by_the_metadata(folder: Path) -> None:
    client = boto3.client("s3")
    (folder / "sub" / "C++ 指南 100%.md").unlink()
    data = GOOD.encode()
    item = {"Key": "disk.md", "Size": len(data), "ETag": '"kms"', "LastModified": datetime.now(UTC)}
    listed = {"Contents": [item]}
    same = {"Metadata": {"sha256": hashlib.sha256(data).hexdigest()}}
    for head, expected in ((same, []), ({"Metadata": {}}, ["disk.md"])):
        with Stubber(client) as stubber:
            stubber.add_response("list_objects_v2", listed)
            stubber.add_response("head_object", head)
            plan = Bucket(client, "b").plan(list(markdown_below(folder)))
        assert [file.key for file in plan.put] == expected
