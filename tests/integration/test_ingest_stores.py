"""Catalog, parts and bucket on moto and on the tests' own memory: the same answers from both."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError
from kb.documents import CatalogRow, Outline, Part, Section, Status, Version
from kb.errors import Conflict, Refused, Unavailable
from kb.stores.catalog_table import CatalogTable
from kb.stores.content_table import ITEM_BYTES_MOST, ContentTable, content_items
from kb.stores.dynamodb import BATCH_ATTEMPTS, Throttled, read_all, write_all
from kb.stores.knowledge_bucket import KnowledgeBucket

from tests.memory_aws import MemoryDynamoDB, MemoryS3

OLD, NEW = Version(1, "a" * 32), Version(3, "b" * 32)
KEY = "目录/子 目录/运维+手册 (1)🐤.md"
OUTLINE = Outline(2, (Section("标题", 1, 1, 2),), {"name": "标题"}, ("d1", "d2"))
PARTS = (Part(1, "第一部分", "标题"), Part(2, "第二部分 🐤", ""))
METADATA = {"title": "T", "list": ["1.10", None], "nested": {"a": {"b": "c"}}}


@dataclass(frozen=True, slots=True)
class Stores:
    catalog: CatalogTable
    content: ContentTable
    bucket: KnowledgeBucket
    put: Callable[[str, bytes], Any]
    delete: Callable[[str], Any]


@pytest.fixture(params=["moto", "memory"])
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    if request.param == "memory":
        dynamodb, s3 = MemoryDynamoDB("catalog", "content"), MemoryS3()
        yield Stores(
            CatalogTable(dynamodb, "catalog"),
            ContentTable(dynamodb, "content"),
            KnowledgeBucket(s3, "bucket"),
            s3.put,
            s3.delete,
        )
        return
    cloud = request.getfixturevalue("cloud")
    dynamodb, s3 = cloud.client("dynamodb"), cloud.client("s3")
    yield Stores(
        CatalogTable(dynamodb, cloud.environment["CATALOG_TABLE"]),
        ContentTable(dynamodb, cloud.environment["CONTENT_TABLE"]),
        KnowledgeBucket(s3, cloud.bucket),
        lambda key, data: s3.put_object(Bucket=cloud.bucket, Key=key, Body=data),
        lambda key: s3.delete_object(Bucket=cloud.bucket, Key=key),
    )


def row(key: str = KEY, revision: int = 1, **fields: Any) -> CatalogRow:
    return CatalogRow(key, revision, Status.INDEXED, **{"changed_at": 1000, **fields})


FULL = CatalogRow(
    key=KEY,
    revision=7,
    status=Status.FAILED,
    changed_at=1_800_000_000_123,
    served=OLD,
    reason="第 3 行，第 4 列: not `name: value`",
    content_hash="c" * 64,
    title="标题",
    keywords=("磁盘告警", "disk full", "1.10"),
    summary="一句话",
    domain="目录",
    updated_at="2026-01-02",
    version="010",
    author="作者",
    parts=2,
    cleanup_pending=True,
    expires_at=1_800_000_999,
)


@pytest.mark.parametrize(
    "written", [FULL, row(), row(keywords=(), parts=0)], ids=["full", "a", "b"]
)
def test_row_is_read_as_it_was_committed(stores: Stores, written: CatalogRow) -> None:
    stores.catalog.commit(written, expected_revision=0)
    many = stores.catalog.read_many([KEY, "unknown"])
    assert (stores.catalog.read(KEY), many, stores.catalog.read("unknown")) == (
        written,
        {KEY: written},
        None,
    )


def test_first_commit_wins_and_the_other_conflicts(stores: Stores) -> None:
    stores.catalog.commit(row(title="first"), expected_revision=0)
    with pytest.raises(Conflict):
        stores.catalog.commit(row(title="second"), expected_revision=0)
    stores.catalog.commit(row(revision=2, title="third"), expected_revision=1)
    with pytest.raises(Conflict):
        stores.catalog.commit(row(revision=2, title="fourth"), expected_revision=1)
    assert stores.catalog.read(KEY) == row(revision=2, title="third")


def test_row_that_is_gone_conflicts_with_its_successor(stores: Stores) -> None:
    with pytest.raises(Conflict):
        stores.catalog.commit(row(revision=3), expected_revision=2)
    assert stores.catalog.read(KEY) is None


def test_commit_replaces_the_whole_row(stores: Stores) -> None:
    stores.catalog.commit(replace(FULL, revision=1), expected_revision=0)
    stores.catalog.commit(row(revision=2), expected_revision=1)
    assert stores.catalog.read(KEY) == row(revision=2)


def test_cleanup_is_noted_unless_the_row_moved_on(stores: Stores) -> None:
    stores.catalog.commit(row(cleanup_pending=True), expected_revision=0)
    stores.catalog.finish_cleanup(KEY, 2)
    stores.catalog.finish_cleanup("unknown", 1)
    moved_on = stores.catalog.read(KEY)
    stores.catalog.finish_cleanup(KEY, 1)
    assert (moved_on, stores.catalog.read(KEY), stores.catalog.read("unknown")) == (
        row(cleanup_pending=True),
        row(),
        None,
    )


def test_changes_are_listed_from_a_time_on_oldest_first(stores: Stores) -> None:
    rows = [row(f"{n}.md", changed_at=1000 * (9 - n)) for n in range(9)]
    for one in rows:
        stores.catalog.commit(one, expected_revision=0)
    found = list(stores.catalog.changed_since(4000))
    assert found == sorted(rows[:6], key=lambda one: one.changed_at)
    assert sorted(stores.catalog.load(), key=lambda one: one.key) == rows


def write(stores: Stores, key: str, version: Version) -> None:
    stores.content.write(content_items(key, version, PARTS, OUTLINE, METADATA))


def read(stores: Stores, key: str, version: Version) -> Any:
    """Everything a lookup can read of a version."""
    served = row(key, served=version)
    return (
        stores.content.read([(served, [1, 2, 3])]),
        stores.content.read_outline(key, version),
    )


def whole(key: str) -> Any:
    return {key: (OUTLINE, {1: PARTS[0], 2: PARTS[1]})}, (OUTLINE, METADATA)


NOTHING: Any = ({}, None)


def test_version_is_read_as_it_was_written_twice(stores: Stores) -> None:
    write(stores, KEY, OLD)
    write(stores, KEY, OLD)
    assert read(stores, KEY, OLD) == whole(KEY)
    assert read(stores, KEY, NEW) == NOTHING


def test_removal_spares_the_kept_version_newer_ones_and_other_documents(stores: Stores) -> None:
    between, beyond = Version(2, "f" * 32), Version(4, "0" * 32)
    twins = [Version(3, "a" * 32), Version(3, "c" * 32)]
    for version in (OLD, between, NEW, beyond, *twins):
        write(stores, KEY, version)
    write(stores, KEY + "x", OLD)
    stores.content.remove_others(KEY, NEW, 3)
    assert [read(stores, KEY, v) for v in (OLD, between, *twins)] == [NOTHING] * 4
    assert [read(stores, KEY, v) for v in (NEW, beyond)] == [whole(KEY)] * 2
    assert read(stores, KEY + "x", OLD) == whole(KEY + "x")


def test_attempts_newer_than_the_kept_version_go_up_to_the_revision(stores: Stores) -> None:
    lost, beyond = Version(5, "d" * 32), Version(6, "d" * 32)
    for version in (OLD, NEW, lost, beyond):
        write(stores, KEY, version)
    stores.content.remove_others(KEY, NEW, 5)
    left = [read(stores, KEY, v) for v in (OLD, NEW, lost, beyond)]
    assert left == [NOTHING, whole(KEY), NOTHING, whole(KEY)]


def test_removal_that_keeps_nothing_takes_all_up_to_the_revision(stores: Stores) -> None:
    write(stores, KEY, OLD)
    write(stores, KEY, NEW)
    stores.content.remove_others(KEY, None, 2)
    assert [read(stores, KEY, v) for v in (OLD, NEW)] == [NOTHING, whole(KEY)]
    stores.content.remove_others(KEY, None, 3)
    assert read(stores, KEY, NEW) == NOTHING


def test_newer_items_are_those_of_a_higher_revision_of_this_document(stores: Stores) -> None:
    write(stores, KEY, NEW)
    write(stores, KEY + "x", Version(9, "e" * 32))
    found = [stores.content.has_newer(KEY, revision) for revision in (1, 2, 3, 4)]
    assert found == [True, True, False, False]
    assert not stores.content.has_newer("unknown", 0)


RANDOM = Random(1)  # noqa: S311 - no secret


def noise(length: int) -> str:
    """Text that no compression makes much shorter."""
    return "".join(map(chr, RANDOM.choices(range(0x4E00, 0x9FA5), k=length)))


@pytest.mark.parametrize(
    ("outline", "metadata", "text", "reason"),
    [
        pytest.param(
            Outline(1, tuple(Section(noise(60), 1, 1, 1) for _ in range(10_000))),
            {},
            "",
            r"the list of the document's sections takes [\d,]+ bytes; at most 380,000",
            id="sections",
        ),
        pytest.param(
            OUTLINE,
            {"a": noise(300_000)},
            "",
            r"the document's frontmatter takes [\d,]+ bytes; at most 380,000",
            id="frontmatter",
        ),
        pytest.param(
            OUTLINE, {}, "文" * 130_000, "part 1 takes 390,000 bytes; at most 380,000", id="part"
        ),
    ],
)
def test_what_no_item_can_hold_is_refused_by_its_name(
    outline: Outline, metadata: dict[str, object], text: str, reason: str
) -> None:
    assert ITEM_BYTES_MOST == 380_000
    with pytest.raises(Refused, match=reason):
        content_items(KEY, OLD, [Part(1, text, "")], outline, metadata)


def test_object_is_read_whole_or_only_measured(stores: Stores) -> None:
    stores.put(KEY, "文字".encode())
    found, large = stores.bucket.read(KEY, 6), stores.bucket.read(KEY, 5)
    assert found is not None
    assert (found.data, found.size, found.etag) == ("文字".encode(), 6, stores.bucket.etag(KEY))
    assert datetime.fromisoformat(found.stored_at).utcoffset() is not None
    assert large == replace(found, data=None)


def test_etag_differs_with_the_content_and_is_the_same_again_with_it(stores: Stores) -> None:
    etags = []
    for data in (b"one", b"two", b"one"):
        stores.put(KEY, data)
        etags.append(stores.bucket.etag(KEY))
    assert (etags[0] == etags[2], etags[0] == etags[1]) == (True, False)


def test_deleted_object_is_like_one_that_never_was(stores: Stores) -> None:
    stores.put(KEY, b"x")
    stores.delete(KEY)
    found = [(stores.bucket.read(key, 9), stores.bucket.etag(key)) for key in (KEY, "never.md")]
    assert found == [(None, None)] * 2


class FailingClient:
    """Every call fails the same way."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def fail(*_: object, **__: object) -> Any:
            raise self._error

        return fail


FAULTS = {
    "throttled": (
        ClientError({"Error": {"Code": "ThrottlingException"}}, "x"),
        "ThrottlingException",
    ),
    "timed out": (ConnectTimeoutError(endpoint_url="x"), "ConnectTimeoutError"),
}


@pytest.mark.parametrize(("error", "cause"), FAULTS.values(), ids=FAULTS)
def test_outage_is_unavailable_under_the_stores_own_name(error: Exception, cause: str) -> None:
    client = FailingClient(error)
    catalog = CatalogTable(client, "t")
    content = ContentTable(client, "t")
    bucket = KnowledgeBucket(client, "b")
    calls: list[tuple[str, Callable[[], Any]]] = [
        ("catalog", lambda: catalog.read("k")),
        ("catalog", lambda: catalog.read_many(["k"])),
        ("catalog", lambda: catalog.commit(row(), 0)),
        ("catalog", lambda: catalog.finish_cleanup("k", 1)),
        ("catalog", lambda: list(catalog.load())),
        ("catalog", lambda: list(catalog.changed_since(0))),
        ("content", lambda: content.write(content_items("k", OLD, PARTS, OUTLINE, {}))),
        ("content", lambda: content.read([(row(served=OLD), [1])])),
        ("content", lambda: content.read_outline("k", OLD)),
        ("content", lambda: content.remove_others("k", OLD, 1)),
        ("content", lambda: content.has_newer("k", 1)),
        ("bucket", lambda: bucket.read("k", 1)),
        ("bucket", lambda: bucket.etag("k")),
    ]
    for what, call in calls:
        with pytest.raises(Unavailable) as raised:
            call()
        assert str(raised.value) == f"{what} did not answer ({cause})"


class Stuttering:
    """Leaves the last request or key of every batch unprocessed, `times` times."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.done: list[int] = []
        self.sizes: list[int] = []

    def _take(self, asked: list[int]) -> list[int]:
        self.sizes.append(len(asked))
        left = asked[-1:] if self.times else []
        self.times -= bool(left)
        self.done += asked[: len(asked) - len(left)]
        return left

    def batch_write_item(self, *, RequestItems: Any) -> Any:
        left = self._take(RequestItems["t"])
        return {"UnprocessedItems": {"t": left} if left else {}}

    def batch_get_item(self, *, RequestItems: Any) -> Any:
        asked = RequestItems["t"]["Keys"]
        left = self._take(asked)
        found = asked[: len(asked) - len(left)]
        return {
            "Responses": {"t": found},
            "UnprocessedKeys": {"t": {"Keys": left}} if left else {},
        }


def test_what_a_batch_leaves_is_asked_again_after_growing_pauses() -> None:
    pauses: list[float] = []
    writing, reading = Stuttering(3), Stuttering(2)
    requests: Any = list(range(60))
    write_all(writing, "t", requests, sleep=pauses.append)
    found: Any = read_all(reading, "t", requests, sleep=pauses.append)
    assert (sorted(writing.done), sorted(found)) == (requests, requests)
    assert (writing.sizes, reading.sizes) == ([25, 1, 1, 1, 25, 10], [60, 1, 1])
    assert all(0.025 * 2**n <= pause <= 0.05 * 2**n for n, pause in enumerate(pauses[:3]))
    assert len(pauses) == 5


def test_batch_that_stays_unprocessed_is_an_outage() -> None:
    forever: Any = Stuttering(99)
    with pytest.raises(Throttled):
        write_all(forever, "t", [{}], sleep=lambda _: None)
    with pytest.raises(Throttled):
        read_all(forever, "t", [{}], sleep=lambda _: None)
    assert len(forever.sizes) == 2 * BATCH_ATTEMPTS
