"""What the doctor finds between the stores, each kind broken by hand, and what repairs leave."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from kb.diagnosis import Finding, Kind
from kb.doctor import Doctor
from kb.documents import Status, Version
from kb.errors import Unavailable
from kb.grading import Level
from kb.ingest import Ingest
from kb.ports import IndexedChunk
from kb.stores.catalog_table import CatalogTable
from kb.stores.dynamodb import to_item
from kb.wiring import IngestParts, make_doctor

from tests.conftest import System, markdown

LONG = markdown("Long", "[long one]", "# A\n\n" + "Alpha beta gamma. " * 200)
SHORT = markdown("Short", "[short one]", "# B\n\nDelta.")
BINARY = b"\0\1\2\3" * 100
KEY = "guides/long one.md"


@pytest.fixture
def parts(system: System) -> IngestParts:
    return system.new_ingest()


@pytest.fixture
def doctor(system: System, parts: IngestParts) -> Doctor:
    return make_doctor(parts, system.clock.seconds)


def found(doctor: Doctor) -> list[tuple[str, Kind, str]]:
    _, examined = doctor.examine()
    return [(f.key, f.kind, f.detail) for one in examined for f in one.found]


def repaired(doctor: Doctor) -> list[Finding]:
    """What repairs left."""
    _, examined = doctor.examine(repair=True)
    return [finding for one in examined for finding in one.left]


def served(system: System, key: str = KEY) -> Version:
    row = system.new_ingest().catalog.read(key)
    assert row is not None
    assert row.served is not None
    return row.served


def chunk(key: str, revision: int, fingerprint: str = "lost") -> IndexedChunk:
    vector = [1.0] + [0.0] * 63
    return IndexedChunk(key, Version(revision, fingerprint), 0, 1, "", "guides", "text", vector)


def write(system: System, *chunks: IndexedChunk) -> None:
    system.index.write(chunks)
    system.index.refresh()


def remove_items(system: System, parts: IngestParts, key: str, keep: Callable[[str], bool]) -> None:
    dynamodb = system.cloud.client("dynamodb")
    table = parts.settings.content_table
    for page in dynamodb.get_paginator("scan").paginate(TableName=table):
        for item in page["Items"]:
            if item["key"]["S"] == key and not keep(item["item"]["S"]):
                dynamodb.delete_item(
                    TableName=table, Key={"key": item["key"], "item": item["item"]}
                )


def test_a_system_at_rest_is_in_order_whatever_its_documents_are(
    system: System, doctor: Doctor
) -> None:
    system.ingest(KEY, LONG)
    system.ingest(KEY, LONG.replace("Alpha", "Other"))
    system.ingest("twin.md", LONG)
    system.ingest("no frontmatter.md", "# Text\n\nText.")
    system.ingest("empty.md", markdown("Empty", "[empty]", ""))
    system.ingest("gone.md", SHORT)
    system.delete("gone.md")
    system.ingest("gone.md")
    system.put("notes.txt", "no document")
    total, examined = doctor.examine()
    assert total == 5
    assert [(one.key, one.found) for one in examined] == [
        (key, []) for key in ("empty.md", "gone.md", KEY, "no frontmatter.md", "twin.md")
    ]


def test_a_document_that_was_never_ingested_is_found_and_ingested(
    system: System, doctor: Doctor
) -> None:
    system.put(KEY, LONG)
    assert found(doctor) == [(KEY, Kind.NOT_INGESTED, "the bucket has it, the catalog has not")]
    assert repaired(doctor) == []
    assert system.ask("long one").level is Level.PRECISE


def test_a_document_back_after_its_removal_is_not_ingested_yet(
    system: System, doctor: Doctor
) -> None:
    system.ingest(KEY, LONG)
    system.delete(KEY)
    system.ingest(KEY)
    system.put(KEY, LONG)
    assert [kind for _, kind, _ in found(doctor)] == [Kind.NOT_INGESTED]
    assert repaired(doctor) == []


def test_a_change_that_was_never_ingested_is_found_and_ingested(
    system: System, doctor: Doctor
) -> None:
    system.ingest(KEY, SHORT)
    system.put(KEY, SHORT.replace("Delta", "Epsilon"))
    assert found(doctor) == [
        (KEY, Kind.OUTDATED, "the bucket has another content than the catalog")
    ]
    assert repaired(doctor) == []
    answer = system.ask("short one")
    assert answer.primary is not None
    assert "Epsilon" in answer.primary.content


def test_a_row_without_its_object_is_found_and_becomes_a_tombstone(
    system: System, doctor: Doctor, parts: IngestParts
) -> None:
    system.ingest(KEY, LONG)
    system.delete(KEY)
    assert found(doctor) == [(KEY, Kind.NO_OBJECT, "the catalog has it, the bucket has not")]
    assert repaired(doctor) == []
    row = parts.catalog.read(KEY)
    assert row is not None
    assert row.status is Status.DELETED
    assert list(system.index.versions()) == []


def test_lost_chunks_are_written_again_although_the_row_says_the_same_content(
    system: System, doctor: Doctor
) -> None:
    system.ingest(KEY, LONG)
    whole = sum(count for *_, count in system.index.versions(KEY))
    assert whole > 2
    system.index._remove(KEY, (*_identity(served(system)), 1))
    assert found(doctor) == [
        (KEY, Kind.CHUNKS_MISSING, f"{whole - 1} of {whole} are in the vector index")
    ]
    assert repaired(doctor) == []
    assert list(system.index.versions(KEY)) == [(KEY, served(system), whole)]


def _identity(version: Version) -> tuple[int, str]:
    return version.revision, version.fingerprint


def test_an_index_that_lost_everything_is_filled_again(system: System, doctor: Doctor) -> None:
    system.ingest(KEY, LONG)
    system.ingest("short.md", SHORT)
    for key in (KEY, "short.md"):
        system.index.remove_others(key, None, 9)
    assert [(key, kind) for key, kind, _ in found(doctor)] == [
        (KEY, Kind.CHUNKS_MISSING),
        ("short.md", Kind.CHUNKS_MISSING),
    ]
    assert repaired(doctor) == []
    assert {key for key, *_ in system.index.versions()} == {KEY, "short.md"}


def test_lost_parts_are_written_again(system: System, doctor: Doctor, parts: IngestParts) -> None:
    system.ingest(KEY, LONG)
    remove_items(system, parts, KEY, lambda item: not item.endswith("part#000002"))
    assert found(doctor) == [(KEY, Kind.PARTS_MISSING, "3 of 4 items are in the content table")]
    assert repaired(doctor) == []
    assert system.ask("long one", part=2).primary is not None


def test_a_row_that_ingest_would_write_otherwise_is_written_again(
    system: System, doctor: Doctor, parts: IngestParts
) -> None:
    system.ingest(KEY, SHORT)
    row = parts.catalog.read(KEY)
    assert row is not None
    wrong = replace(row, revision=row.revision + 1, keywords=("other",), title="Other")
    parts.catalog.commit(wrong, row.revision)
    assert found(doctor) == [(KEY, Kind.ROW_DIFFERS, "in title, keywords")]
    assert repaired(doctor) == []
    assert system.ask("short one").level is Level.PRECISE


def test_what_a_crash_left_is_removed_and_nothing_else(system: System, doctor: Doctor) -> None:
    system.ingest(KEY, SHORT)
    version = served(system)
    write(system, chunk(KEY, version.revision), chunk(KEY, 3), chunk(KEY, 3, "second"))
    assert found(doctor) == [
        (KEY, Kind.LEFT_OVER, "1 chunks of revision 1"),
        (KEY, Kind.LEFT_OVER, "1 chunks of revision 3, of an attempt that may be under way"),
        (KEY, Kind.LEFT_OVER, "1 chunks of revision 3, of an attempt that may be under way"),
    ]
    assert repaired(doctor) == []
    assert list(system.index.versions()) == [(KEY, version, 1)]


def test_what_no_row_and_no_object_stand_for_is_removed(
    system: System, doctor: Doctor, parts: IngestParts
) -> None:
    write(system, chunk("forgotten.md", 7), chunk("no document", 2))
    item = {"key": "forgotten.md", "item": "000000000007#lost#outline"}
    system.cloud.client("dynamodb").put_item(
        TableName=parts.settings.content_table, Item=to_item(item)
    )
    assert found(doctor) == [
        ("forgotten.md", Kind.LEFT_OVER, "1 chunks and 1 items of revision 7"),
        ("no document", Kind.LEFT_OVER, "1 chunks of revision 2"),
    ]
    assert repaired(doctor) == []
    assert (list(system.index.versions()), list(parts.content.versions())) == ([], [])


def test_an_attempt_under_way_starts_over_when_its_chunks_were_removed_as_left_over(
    system: System, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    system.ingest(KEY, SHORT)
    commit, left = CatalogTable.commit, []

    def doctor_first(self: CatalogTable, row: object, expected_revision: int) -> None:
        monkeypatch.setattr(CatalogTable, "commit", commit)
        left.extend(repaired(doctor))
        commit(self, row, expected_revision)  # type: ignore[arg-type]

    monkeypatch.setattr(CatalogTable, "commit", doctor_first)
    system.ingest(KEY, SHORT.replace("Delta", "Epsilon"))
    assert left == []
    assert found(doctor) == []
    assert list(system.index.versions()) == [(KEY, served(system), 1)]


def test_a_failed_document_is_left_to_its_writer(system: System, doctor: Doctor) -> None:
    outcome = system.ingest(KEY, BINARY)
    assert found(doctor) == [(KEY, Kind.FAILED, outcome.reason)]
    assert [finding.kind for finding in repaired(doctor)] == [Kind.FAILED]


def test_of_a_failed_document_the_version_served_must_be_whole_too(
    system: System, doctor: Doctor
) -> None:
    system.ingest(KEY, LONG)
    system.ingest(KEY, BINARY)
    assert [kind for _, kind, _ in found(doctor)] == [Kind.FAILED]
    system.index.remove_others(KEY, None, 9)
    assert [kind for _, kind, _ in found(doctor)] == [Kind.FAILED, Kind.CHUNKS_MISSING]


def test_another_failure_than_the_catalog_tells_of_is_looked_at_again(
    system: System, doctor: Doctor
) -> None:
    system.ingest(KEY, SHORT)
    system.put(KEY, BINARY)
    assert [kind for _, kind, _ in found(doctor)] == [Kind.OUTDATED]
    assert [finding.kind for finding in repaired(doctor)] == [Kind.FAILED]


def test_documents_of_other_sizes_are_found_and_cut_again(system: System) -> None:
    system.ingest(KEY, LONG)
    system.overrides["CHUNK_SIZE"] = "400"
    doctor = make_doctor(system.new_ingest(), system.clock.seconds)
    assert found(doctor) == [(KEY, Kind.OLD_RECIPE, "cut by another chunker, or into other sizes")]
    assert repaired(doctor) == []


def test_a_cleanup_that_is_only_noted_as_pending_is_noted_as_done(
    system: System, doctor: Doctor, parts: IngestParts
) -> None:
    system.ingest(KEY, SHORT)
    row = parts.catalog.read(KEY)
    assert row is not None
    again = replace(row, revision=row.revision + 1, cleanup_pending=True)
    parts.catalog.commit(again, row.revision)
    assert [kind for _, kind, _ in found(doctor)] == [Kind.CLEANUP_PENDING]
    assert repaired(doctor) == []
    assert parts.catalog.read(KEY) == replace(again, cleanup_pending=False)


def test_a_tombstone_long_past_its_time_is_removed(
    system: System, doctor: Doctor, parts: IngestParts
) -> None:
    system.ingest(KEY, SHORT)
    system.delete(KEY)
    system.ingest(KEY)
    system.clock.advance(9 * 86400)
    assert found(doctor) == []
    system.clock.advance(2 * 86400)
    assert found(doctor) == [(KEY, Kind.TOMBSTONE_OVERDUE, "by 4 days")]
    assert repaired(doctor) == []
    assert parts.catalog.read(KEY) is None


def test_a_document_ingested_after_it_was_listed_is_in_order(
    system: System, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    system.ingest(KEY, SHORT)
    expected = Ingest.expected

    def meanwhile(self: Ingest, key: str, stored: object) -> object:
        monkeypatch.setattr(Ingest, "expected", expected)
        system.ingest(KEY, LONG)
        return expected(self, key, stored)  # type: ignore[arg-type]

    monkeypatch.setattr(Ingest, "expected", meanwhile)
    write(system, chunk(KEY, 1))
    assert found(doctor) == []
    assert list(system.index.versions()) == [(KEY, served(system), 6)]


def test_a_store_that_does_not_answer_is_no_finding(system: System, doctor: Doctor) -> None:
    system.put(KEY, SHORT)
    system.embedder.failure = Unavailable("embedding")
    with pytest.raises(Unavailable):
        repaired(doctor)
    system.embedder.failure = None
    assert repaired(doctor) == []
