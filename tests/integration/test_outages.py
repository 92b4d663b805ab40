"""What is down is said, never taken for "nothing found", and marks nothing that was not given."""

import json
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from kb.deadline import Timeouts
from kb.errors import Misconfigured, Unavailable

from tests.api_client import ApiClient
from tests.conftest import System, markdown
from tests.wire import (
    Fault,
    Wire,
    answered,
    connect_timeout,
    first_reply_lost,
    read_timeout,
    refused,
)

BODY = "alpha beta gamma delta"
FAULTS: dict[str, Fault] = {
    "no connection": connect_timeout,
    "no answer": read_timeout,
    "throttled": refused("ProvisionedThroughputExceededException"),
    "not allowed": refused("AccessDeniedException"),
    "its own error": refused("InternalServerError", 500),
}
each_fault = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)


@pytest.fixture
def full(wire: Wire, system: System) -> System:
    """`磁盘告警` is one document's keyword, `alpha beta` another's; `alpha gamma` no one's."""
    system.ingest("ops/disk.md", markdown("磁盘", "[磁盘告警]", "清理旧日志。"))
    system.ingest("a/one.md", markdown("alpha", "[alpha beta]", BODY))
    return system


def warm(system: System, api: ApiClient) -> None:
    """Load the catalog, and let it be time to look at it again."""
    assert api.ask("磁盘告警")["primary"] is not None
    system.clock.advance(2)


def unavailable(what: str) -> tuple[int, str, str]:
    message = f"{what} does not answer at the moment; the same call may work later"
    return 503, f"{what}_unavailable", message


SEMANTIC_FAULTS = [
    Unavailable("embedding"),
    Unavailable("vectors"),
    Misconfigured("the index was made for another model"),
]


@pytest.fixture(params=["embedder", "index", "preparing"])
def break_semantic(request: pytest.FixtureRequest, full: System) -> Callable[[Exception], None]:
    """Makes one half of L1 fail."""

    def fail(error: Exception) -> None:
        def raising(*_: Any, **__: Any) -> Any:
            raise error

        match request.param:
            case "embedder":
                full.embedder.failure = error
            case "index":
                full.index.search = raising  # type: ignore[method-assign]
            case _:
                full.index.prepare = raising  # type: ignore[method-assign]

    return fail


@pytest.mark.parametrize("error", SEMANTIC_FAULTS, ids=lambda error: type(error).__name__)
def test_semantic_down_leaves_a_strong_match_precise_and_unharmed(
    full: System, api: ApiClient, break_semantic: Callable[[Exception], None], error: Exception
) -> None:
    break_semantic(error)
    answer = api.ask("磁盘告警", session_id="s1")
    assert (answer["relevanceLevel"], answer["degraded"]) == ("PRECISE", [])
    assert answer["primary"]["content"] == "清理旧日志。"


@pytest.mark.parametrize("error", SEMANTIC_FAULTS, ids=lambda error: type(error).__name__)
def test_semantic_down_leaves_a_weak_match_as_reference(
    full: System, api: ApiClient, break_semantic: Callable[[Exception], None], error: Exception
) -> None:
    break_semantic(error)
    answer = api.ask("alpha beta gamma delta epsilon", session_id="s1")
    assert (answer["found"], answer["relevanceLevel"]) == (True, "REFERENCE")
    assert (answer["primary"]["content"], answer["primary"]["confidence"]) == (BODY, "low")
    assert answer["degraded"] == ["semantic"]
    (row,) = api.parts.log.read_all()
    details = json.loads(row.retrieval_details)
    assert (details["l1_top_similarity"], details["degraded"]) == (None, ["semantic"])


@pytest.mark.parametrize("error", SEMANTIC_FAULTS, ids=lambda error: type(error).__name__)
def test_semantic_down_without_a_match_is_503_and_never_not_found(
    full: System, api: ApiClient, break_semantic: Callable[[Exception], None], error: Exception
) -> None:
    break_semantic(error)
    reply = api.post('{"query": "alpha gamma", "session_id": "s1"}')
    assert reply.error == unavailable("semantic")
    assert reply.headers["Retry-After"] == "5"
    (row,) = api.parts.log.read_all()
    assert (row.found, row.relevance_level, row.dedup_reason) == (False, None, None)
    assert json.loads(row.retrieval_details)["error"] == "semantic_unavailable"
    assert api.get("/session", id="s1").json["documents"] == []


@pytest.mark.parametrize(
    "vector",
    [[], [1.0], [float("nan")] * 64, [0.0] * 64, [1.0] * 64],
    ids=["none", "too short", "not a number", "no direction", "too long"],
)
def test_vector_that_is_none_is_an_outage_of_the_embedder(
    full: System, api: ApiClient, vector: list[float]
) -> None:
    full.embedder.embed_question = lambda _: vector  # type: ignore[method-assign]
    assert api.post('{"query": "alpha gamma"}').error == unavailable("semantic")
    assert api.ask("alpha beta gamma delta epsilon")["degraded"] == ["semantic"]


@each_fault
def test_catalog_down_from_the_start_leaves_l1(
    wire: Wire, full: System, api: ApiClient, fault: Fault
) -> None:
    wire.fail("CatalogTable", fault)
    answer = api.ask("alpha " + BODY, session_id="s1")
    assert (answer["degraded"], answer["relevanceLevel"]) == (["keywords"], "HIGHLY_RELEVANT")
    assert answer["primary"] is None
    assert answer["supplement"]["content"] == BODY
    assert answer["supplement"]["source"] == "a/one.md"
    wire.heal()
    after = api.ask("alpha beta", session_id="s1")
    assert (after["primary"], after["degraded"]) == (None, [])


def test_document_read_while_its_row_was_unknown_is_not_taken_for_changed(
    wire: Wire, full: System, api: ApiClient
) -> None:
    full.ingest("a/two.md", markdown("omega", "[omega]", f"sigma tau\n\n{'x' * 1990}"))
    wire.fail("CatalogTable", connect_timeout)
    first = api.ask("omega sigma tau", session_id="s1")
    wire.heal()
    second = api.ask("omega", session_id="s1", part=2)
    assert (first["supplement"]["part"], second["primary"]["part"]) == (1, 2)
    (row,) = (r for r in api.parts.log.read_all() if r.invocation_id == second["invocationId"])
    assert row.dedup_reason is None


@each_fault
def test_catalog_down_later_leaves_the_one_in_memory(
    wire: Wire, full: System, api: ApiClient, fault: Fault
) -> None:
    warm(full, api)
    wire.fail("CatalogTable", fault)
    answer = api.ask("磁盘告警", session_id="s1")
    assert (answer["degraded"], answer["relevanceLevel"]) == (["keywords"], "PRECISE")
    assert answer["primary"]["content"] == "清理旧日志。"


@pytest.mark.parametrize("is_warm", [False, True], ids=["from the start", "later"])
def test_catalog_down_and_nothing_by_meaning_is_503_and_never_not_found(
    wire: Wire, full: System, api: ApiClient, is_warm: bool
) -> None:
    if is_warm:
        warm(full, api)
    wire.fail("CatalogTable", connect_timeout)
    reply = api.post('{"query": "qqqq wwww"}')
    assert reply.error == unavailable("catalog")
    assert reply.headers["Retry-After"] == "5"


def test_catalog_down_and_a_version_it_does_not_know_is_never_not_found(
    wire: Wire, full: System, api: ApiClient
) -> None:
    warm(full, api)
    full.ingest("b/new.md", markdown("new", "[omega]", "sigma tau upsilon phi"))
    wire.fail("CatalogTable", connect_timeout)
    reply = api.post('{"query": "new sigma tau upsilon phi"}')
    assert reply.error == unavailable("semantic")
    known = api.ask(f"alpha {BODY}")
    assert (known["primary"]["source"], known["degraded"]) == ("a/one.md", ["keywords"])


@each_fault
def test_session_down_is_answered_without_memory(
    wire: Wire, full: System, api: ApiClient, fault: Fault
) -> None:
    api.ask("磁盘告警", session_id="s1")
    wire.fail("SessionTable", fault)
    answers = [api.ask("磁盘告警", session_id="s1") for _ in range(2)]
    for answer in answers:
        assert answer["degraded"] == ["session"]
        assert answer["primary"]["content"] == "清理旧日志。"
        assert answer["retrievedDomainsThisSession"] == ["ops"]


@each_fault
def test_mark_that_fails_is_given_all_the_same(
    wire: Wire, full: System, api: ApiClient, fault: Fault
) -> None:
    wire.fail("UpdateItem SessionTable", fault)
    answer = api.ask("磁盘告警", session_id="s1")
    wire.heal()
    again = api.ask("磁盘告警", session_id="s1")
    assert (answer["degraded"], again["degraded"]) == (["session"], [])
    assert answer["primary"] == again["primary"]


def test_mark_whose_reply_is_lost_is_given_once(wire: Wire, full: System, api: ApiClient) -> None:
    wire.fail("UpdateItem SessionTable", first_reply_lost())
    answer = api.ask("磁盘告警", session_id="s1")
    assert wire.names.count("UpdateItem SessionTable") == 2
    assert (answer["degraded"], answer["primary"]["content"]) == ([], "清理旧日志。")
    assert api.ask("磁盘告警", session_id="s1")["primary"] is None


@each_fault
def test_content_down_is_503_and_marks_nothing(
    wire: Wire, full: System, api: ApiClient, fault: Fault
) -> None:
    wire.fail("ContentTable", fault)
    reply = api.post('{"query": "磁盘告警", "session_id": "s1", "request_id": "r1"}')
    assert reply.error == unavailable("content")
    assert reply.headers["Retry-After"] == "5"
    wire.heal()
    assert api.get("/session", id="s1").json["documents"] == []
    answer = api.ask("磁盘告警", session_id="s1", request_id="r1")
    assert answer["primary"]["content"] == "清理旧日志。"


def test_batch_that_stays_unprocessed_is_content_down(
    wire: Wire, full: System, api: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kb.stores.dynamodb._back_off", lambda *_: None)
    wire.fail("BatchGetItem ContentTable", unprocessed)
    assert api.post('{"query": "磁盘告警"}').error == unavailable("content")


def unprocessed(request: AWSPreparedRequest) -> AWSResponse:
    left = json.loads(request.body)["RequestItems"]
    return answered({"Responses": {}, "UnprocessedKeys": left})


@each_fault
def test_log_down_is_answered_as_usual_and_the_row_goes_to_the_functions_own_log(
    wire: Wire,
    full: System,
    api: ApiClient,
    fault: Fault,
    caplog: pytest.LogCaptureFixture,
) -> None:
    wire.fail("InvocationTable", fault)
    answer = api.ask("磁盘告警", session_id="s1")
    assert (answer["degraded"], answer["primary"]["content"]) == ([], "清理旧日志。")
    (record,) = (r for r in caplog.records if r.getMessage() == "invocation_not_logged")
    assert record.levelno == logging.ERROR
    row = record.__dict__["row"]
    assert (row["invocation_id"], row["query"], row["relevance_level"]) == (
        answer["invocationId"],
        "磁盘告警",
        "PRECISE",
    )


def test_everything_down_is_503_and_kept_in_the_functions_own_log(
    wire: Wire, full: System, api: ApiClient, caplog: pytest.LogCaptureFixture
) -> None:
    wire.fail("Table", connect_timeout)
    reply = api.post('{"query": "磁盘告警", "session_id": "s1"}')
    assert reply.status == 503
    (record,) = (r for r in caplog.records if r.getMessage() == "invocation_not_logged")
    details = json.loads(record.__dict__["row"]["retrieval_details"])
    assert details["degraded"] == ["keywords", "session"]


def test_embedder_that_hangs_is_waited_for_no_longer_than_later_steps_allow(
    full: System, api: ApiClient
) -> None:
    warm(full, api)
    released = threading.Event()
    full.embedder.embed_question = lambda _: released.wait()  # type: ignore[assignment,method-assign,return-value]
    waits_a_second = Timeouts(answer=1000, question=0, table=333)
    api.parts.lookup._timeouts = waits_a_second
    weak = api.ask("alpha beta gamma delta epsilon")
    none = api.post('{"query": "alpha gamma"}')
    released.set()
    assert (weak["primary"]["content"], weak["degraded"]) == (BODY, ["semantic"])
    assert none.error == unavailable("semantic")


@pytest.mark.parametrize(
    ("table", "method", "path", "parameters", "what"),
    [
        ("CatalogTable", "GET", "/documents", None, "catalog"),
        ("CatalogTable", "GET", "/domains", None, "catalog"),
        ("CatalogTable", "GET", "/document", {"key": "ops/disk.md"}, "catalog"),
        ("ContentTable", "GET", "/document", {"key": "ops/disk.md"}, "content"),
        ("SessionTable", "GET", "/session", {"id": "s1"}, "session"),
        ("SessionTable", "DELETE", "/session", {"id": "s1"}, "session"),
    ],
)
def test_other_routes_say_what_is_down(
    wire: Wire,
    full: System,
    api: ApiClient,
    table: str,
    method: str,
    path: str,
    parameters: dict[str, str] | None,
    what: str,
) -> None:
    wire.fail(table, connect_timeout)
    reply = api.call(method, path, parameters=parameters)
    assert reply.error == unavailable(what)
    assert reply.headers["Retry-After"] == "5"


def test_health_says_which_parts_answer(wire: Wire, full: System, api: ApiClient) -> None:
    whole = api.get("/health").json
    assert whole == {
        "status": "ok",
        "parts": dict.fromkeys(["keywords", "embedding", "vectors", "content", "session"], "ok"),
        "documents": 2,
    }
    full.clock.advance(2)
    full.embedder.failure = Unavailable("embedding")
    full.index.prepare = raise_misconfigured  # type: ignore[method-assign]
    wire.fail("Table", connect_timeout)
    reply = api.get("/health")
    assert reply.status == 200
    assert reply.json == {
        "status": "degraded",
        "parts": {
            "keywords": "does not answer",
            "embedding": "does not answer",
            "vectors": "is set up wrongly",
            "content": "does not answer",
            "session": "does not answer",
        },
        "documents": 2,
    }


def raise_misconfigured() -> None:
    raise Misconfigured("the index was made for another model")
