"""What the lookup function does before its first request in Lambda."""

import pytest
from kb import wiring
from kb.errors import Misconfigured
from kb.local.functions import Context, handler_of
from kb.wiring import LookupParts

from tests.api_client import EVENT
from tests.conftest import System, markdown
from tests.wire import Wire, connect_timeout

IN_LAMBDA = "AWS_LAMBDA_INITIALIZATION_TYPE"


@pytest.fixture
def parts(wire: Wire, system: System, monkeypatch: pytest.MonkeyPatch) -> LookupParts:
    system.ingest("ops/disk.md", markdown("磁盘", "[磁盘告警]", "清理旧日志。"))
    parts = system.new_lookup()
    monkeypatch.setattr(wiring, "lookup_parts", lambda: parts)
    wire.calls.clear()
    return parts


@pytest.mark.parametrize("start", ["on-demand", "provisioned-concurrency", "snap-start"])
def test_catalog_is_loaded_before_the_first_request_in_lambda(
    wire: Wire, parts: LookupParts, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    monkeypatch.setenv(IN_LAMBDA, start)
    handler_of("lookup")
    assert wire.names == ["Scan CatalogTable"]
    assert [row.key for row in parts.catalog.rows()] == ["ops/disk.md"]


def test_elsewhere_nothing_is_done_at_import(
    wire: Wire, parts: LookupParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(IN_LAMBDA, raising=False)
    handler_of("lookup")
    assert wire.names == []


def test_catalog_that_does_not_answer_then_is_loaded_by_the_first_request(
    wire: Wire,
    parts: LookupParts,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv(IN_LAMBDA, "on-demand")
    wire.fail("CatalogTable", connect_timeout)
    handler = handler_of("lookup")
    assert [record.getMessage() for record in caplog.records] == ["start_incomplete"]
    wire.heal()
    handler.__globals__["lookup_parts"] = lambda: parts  # type: ignore[attr-defined]
    answer = handler(EVENT | {"body": '{"query": "磁盘告警"}'}, Context("lookup"))
    assert (answer["statusCode"], '"relevanceLevel":"PRECISE"' in answer["body"]) == (200, True)


def test_wrong_settings_are_named_in_the_log_at_start(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def misconfigured() -> None:
        raise Misconfigured("CATALOG_TABLE: is missing; LANGUAGE: is none of zh, en")

    monkeypatch.setenv(IN_LAMBDA, "on-demand")
    monkeypatch.setattr(wiring, "lookup_parts", misconfigured)
    handler_of("lookup")
    (record,) = caplog.records
    assert (record.getMessage(), record.__dict__["cause"]) == (
        "start_incomplete",
        "CATALOG_TABLE: is missing; LANGUAGE: is none of zh, en",
    )
