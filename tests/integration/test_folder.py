"""A folder and the bucket: what is taken, warned of once, and never deleted by mistake."""

import os
from pathlib import Path

import pytest
from kb.local.cloud import LocalCloud
from kb.local.folder import Changes, FolderSync


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    return tmp_path / "docs"


@pytest.fixture
def sync(folder: Path, cloud: LocalCloud) -> FolderSync:
    s3, sqs = cloud.client("s3"), cloud.client("sqs")
    return FolderSync(folder, s3, cloud.bucket, sqs, cloud.queue_url)


def stored(cloud: LocalCloud) -> list[str]:
    listed = cloud.client("s3").list_objects_v2(Bucket=cloud.bucket)
    return [item["Key"] for item in listed.get("Contents", [])]


def test_documents_are_put_and_the_rest_is_left_out(
    sync: FolderSync, folder: Path, cloud: LocalCloud
) -> None:
    for name in (
        "a.md",
        "B.MARKDOWN",
        "子/C++ 指南 100%.md",
        "notes.txt",
        ".hidden.md",
        ".git/x.md",
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("text", encoding="utf-8")
    changes = sync.sync()
    expected = ["B.MARKDOWN", "a.md", "子/C++ 指南 100%.md"]
    assert (sorted(changes.put), stored(cloud)) == (expected, expected)


def test_changed_file_is_put_again_and_a_deleted_one_removed(
    sync: FolderSync, folder: Path, cloud: LocalCloud
) -> None:
    (folder / "a.md").write_text("one")
    (folder / "b.md").write_text("one")
    sync.sync()
    (folder / "a.md").write_text("other")
    (folder / "b.md").unlink()
    assert (sync.sync(), sync.sync()) == (Changes(put=["a.md"], removed=["b.md"]), Changes())
    assert stored(cloud) == ["a.md"]


def test_atomically_replaced_file_of_equal_size_is_put_again(
    sync: FolderSync, folder: Path
) -> None:
    (folder / "a.md").write_text("one")
    sync.sync()
    old = (folder / "a.md").stat()
    (folder / "new").write_text("two")
    os.utime(folder / "new", ns=(old.st_atime_ns, old.st_mtime_ns))
    (folder / "new").rename(folder / "a.md")
    assert sync.sync().put == ["a.md"]


def test_what_cannot_be_taken_is_warned_of_once_and_the_rest_goes_on(
    sync: FolderSync, folder: Path
) -> None:
    (folder / "good.md").write_text("text")
    (folder / "link.md").symlink_to(folder / "nowhere.md")
    os.mkfifo(folder / "pipe.md")
    (Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.md"))).write_text("text")
    (folder / ("x" * 200) / ("y" * 200)).mkdir(parents=True)
    first, second = sync.sync(), sync.sync()
    assert (first.put, sorted(first.warnings), second) == (
        ["good.md"],
        [
            "caf?.md: the file's name is not valid UTF-8",
            "link.md: is a link to nothing",
            "pipe.md: is no regular file",
        ],
        Changes(),
    )


def test_file_that_was_warned_of_is_put_once_it_can_be_read(sync: FolderSync, folder: Path) -> None:
    (folder / "link.md").symlink_to(folder / "later.txt")
    sync.sync()
    (folder / "later.txt").write_text("text")
    assert sync.sync() == Changes(put=["link.md"])


def test_folder_that_vanishes_takes_nothing_with_it(
    sync: FolderSync, folder: Path, cloud: LocalCloud
) -> None:
    (folder / "a.md").write_text("text")
    sync.sync()
    folder.rename(folder.with_name("elsewhere"))
    first, second = sync.sync(), sync.sync()
    assert (first.warnings, second, stored(cloud)) == (
        [f"{folder} is gone; what it held stays served"],
        Changes(),
        ["a.md"],
    )


def test_renamed_folder_moves_its_documents(
    sync: FolderSync, folder: Path, cloud: LocalCloud
) -> None:
    (folder / "old").mkdir()
    (folder / "old" / "a.md").write_text("text")
    sync.sync()
    (folder / "old").rename(folder / "new")
    assert sync.sync() == Changes(put=["new/a.md"], removed=["old/a.md"])
    assert stored(cloud) == ["new/a.md"]


def test_documents_below_a_folder_that_cannot_be_read_stay(
    sync: FolderSync, folder: Path, cloud: LocalCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "closed").mkdir()
    (folder / "closed" / "a.md").write_text("text")
    (folder / "b.md").write_text("text")
    sync.sync()
    scandir = os.scandir

    def refusing(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    first, second = sync.sync(), sync.sync()
    assert (first, second, stored(cloud)) == (
        Changes(warnings=["closed/: cannot be read (Permission denied)"]),
        Changes(),
        ["b.md", "closed/a.md"],
    )
