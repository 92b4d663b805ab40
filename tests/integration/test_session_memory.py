"""A session's memory: marks once, for one request, as long as the session, whatever the ids."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from kb.errors import Unavailable
from kb.stores.session_table import ReadDocument, SessionContents, SessionMemory

from tests.conftest import System
from tests.wire import Wire, connect_timeout, first_reply_lost


@pytest.fixture
def memory(wire: Wire, system: System) -> SessionMemory:
    return system.new_lookup().sessions("caller")


def test_what_was_marked_is_read_whole(memory: SessionMemory, system: System) -> None:
    before = system.clock.nanoseconds
    assert memory.mark_retrieved("s1", "ops", "a.md", "digest 1", "hash 1", "request")
    assert memory.mark_retrieved("s1", "ops", "a.md", "digest 2", "hash 2")
    contents = memory.read("s1")
    (read,) = contents.documents.values()
    assert read == ReadDocument(
        "a.md", "ops", frozenset({"digest 1", "digest 2"}), read.answers, "hash 2", read.first_seen
    )
    assert before < read.first_seen < before + 100
    assert contents.digests == {"digest 1", "digest 2"}
    assert contents.delivered_to("request") == {"digest 1"}
    assert contents.delivered_to("another") == frozenset()
    assert memory.read("s2") == SessionContents({})


def test_second_mark_of_a_text_is_refused(memory: SessionMemory) -> None:
    marks = [
        memory.mark_retrieved("s1", "ops", "a.md", part, "hash", request)
        for part, request in [("d1", ""), ("d1", ""), ("d1", "r1"), ("d2", "r1"), ("d2", "r2")]
    ]
    assert marks == [True, False, False, True, False]
    assert memory.mark_retrieved("s1", "ops", "a.md", "d2", "hash", "r1") is True
    assert memory.mark_retrieved("s1", "ops", "b.md", "d1") is True
    assert memory.mark_retrieved("s2", "ops", "a.md", "d1") is True


@pytest.mark.parametrize("request_id", ["", "r1"])
def test_of_32_parallel_marks_one_wins_or_all_of_one_request(
    memory: SessionMemory, request_id: str
) -> None:
    with ThreadPoolExecutor(32) as threads:
        marks = list(
            threads.map(
                lambda _: memory.mark_retrieved("s1", "ops", "a.md", "d1", "h", request_id),
                range(32),
            )
        )
    assert marks.count(True) == (32 if request_id else 1)
    assert memory.read("s1").documents["a.md"].parts == {"d1"}


def test_mark_whose_reply_is_lost_is_still_won(
    wire: Wire, memory: SessionMemory, system: System
) -> None:
    wire.fail("UpdateItem", first_reply_lost())
    assert memory.mark_retrieved("s1", "ops", "a.md", "d1", "h", "invocation 1") is True
    assert wire.names == ["UpdateItem SessionTable"] * 2
    assert memory.mark_retrieved("s1", "ops", "a.md", "d1", "h", "invocation 2") is False


def test_expired_item_that_dynamodb_kept_is_as_if_it_were_gone(
    memory: SessionMemory, system: System
) -> None:
    memory.mark_retrieved("s1", "old", "a.md", "d1")
    memory.mark_retrieved("s1", "old", "a.md", "d2")
    system.clock.advance(86400)
    assert memory.read("s1") == SessionContents({})
    assert memory.retrieved_domains("s1") == []
    first = system.clock.nanoseconds
    assert memory.mark_retrieved("s1", "new", "a.md", "d1") is True
    assert memory.mark_retrieved("s1", "new", "a.md", "d1") is False
    read = memory.read("s1").documents["a.md"]
    assert (read.domain, read.parts, read.first_seen > first) == ("new", {"d1"}, True)


def test_of_32_parallel_marks_on_an_expired_item_one_wins(
    memory: SessionMemory, system: System
) -> None:
    memory.mark_retrieved("s1", "ops", "a.md", "d1")
    system.clock.advance(90000)
    with ThreadPoolExecutor(32) as threads:
        marks = list(
            threads.map(lambda n: memory.mark_retrieved("s1", "o", "a.md", f"d{n % 4}"), range(32))
        )
    assert marks.count(True) == 4
    assert memory.read("s1").documents["a.md"].parts == {"d0", "d1", "d2", "d3"}


def test_reading_on_keeps_a_document_remembered(memory: SessionMemory, system: System) -> None:
    memory.mark_retrieved("s1", "ops", "a.md", "d1")
    memory.mark_retrieved("s1", "ops", "b.md", "d1")
    system.clock.advance(80000)
    memory.mark_retrieved("s1", "ops", "a.md", "d2")
    system.clock.advance(80000)
    assert memory.read("s1").documents.keys() == {"a.md"}
    assert memory.read("s1").digests == {"d1", "d2"}


def test_items_carry_the_time_at_which_dynamodb_deletes_them(
    memory: SessionMemory, system: System
) -> None:
    memory.mark_retrieved("s1", "ops", "a.md", "d1")
    table = system.environment["SESSION_TABLE"]
    (item,) = system.cloud.client("dynamodb").scan(TableName=table)["Items"]
    assert item["expires_at"] == {"N": str(int(system.clock.seconds()) + 86400)}
    assert item["session"]["S"] != "s1"
    assert len(item["session"]["S"]) == 64


@pytest.mark.parametrize("document", ["a.md", "目录/退款 #1.md", "x" * 1024, "😀\u0301.md"])
def test_document_key_is_any_text(memory: SessionMemory, document: str) -> None:
    assert memory.mark_retrieved("s1", "ops", document) is True
    assert memory.is_doc_retrieved("s1", document) is True


def test_session_larger_than_a_page_of_dynamodbs_is_read_whole(
    wire: Wire, memory: SessionMemory, system: System
) -> None:
    memory.mark_retrieved("s1", "ops", "a.md")
    dynamodb, table = system.cloud.client("dynamodb"), system.environment["SESSION_TABLE"]
    (item,) = dynamodb.scan(TableName=table)["Items"]
    for batch in range(20):
        keys = [f"{batch} {number} {'k' * 1000}" for number in range(25)]
        digests = {"SS": [f"{number:032}" for number in range(50)]}
        items = [item | {"item": {"S": k}, "document": {"S": k}, "parts": digests} for k in keys]
        requests = [{"PutRequest": {"Item": each}} for each in items]
        dynamodb.batch_write_item(RequestItems={table: requests})
    wire.calls.clear()
    assert len(memory.read("s1").documents) == 501
    assert wire.names == ["Query SessionTable"] * 2
    memory.clear_session("s1")
    assert memory.read("s1") == SessionContents({})


@pytest.mark.parametrize("operation", ["Query", "UpdateItem", "PutItem", "BatchWriteItem"])
def test_table_that_does_not_answer_is_session_unavailable(
    wire: Wire, memory: SessionMemory, system: System, operation: str
) -> None:
    memory.mark_retrieved("s1", "ops", "a.md", "d1")
    if operation == "PutItem":
        system.clock.advance(90000)
    wire.fail(operation, connect_timeout)
    calls = {
        "Query": lambda: memory.read("s1"),
        "UpdateItem": lambda: memory.mark_retrieved("s1", "ops", "b.md"),
        "PutItem": lambda: memory.mark_retrieved("s1", "ops", "a.md", "d1"),
        "BatchWriteItem": lambda: memory.clear_session("s1"),
    }
    with pytest.raises(Unavailable) as error:
        calls[operation]()
    assert error.value.what == "session"
