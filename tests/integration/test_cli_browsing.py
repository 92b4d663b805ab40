"""kb documents, document, domains and health; and how the API's failures are said."""

import json
from collections.abc import Iterator

import pytest
from kb import views
from kb.cli import run
from kb.errors import Unavailable

from tests.conftest import System, markdown
from tests.served import answering, serving

FAULTY = "---\ntitle: a: b\n---\n\n# Text\n\nstays.\n"


@pytest.fixture
def api(system: System, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    system.ingest(
        "ops/disk.md", markdown("Disk", "[disk full, quota]", "# One\n\nA.\n\n# Two\n\nB.")
    )
    system.ingest("ops/copy.md", markdown("Copy", "[disk full]", "# One\n\nC."))
    system.ingest("faulty.md", FAULTY)
    monkeypatch.delenv("KB_API_KEY", raising=False)
    with serving(system, monkeypatch) as url:
        monkeypatch.setenv("KB_URL", url)
        yield url


def test_documents_are_listed_by_key_with_status_and_reason(
    api: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["documents"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[:4] for row in rows] == [
        ["semantic_only", "faulty.md", "default", "Text"],
        ["indexed", "ops/copy.md", "ops", "Copy"],
        ["indexed", "ops/disk.md", "ops", "Disk"],
    ]
    assert [row[4] != "" for row in rows] == [True, False, False]
    assert "line 2, column 9" in rows[0][4]


def test_documents_of_all_pages_are_listed(
    api: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "PAGE_ROWS", 1)
    assert run(["documents", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["key"] for one in found] == ["faulty.md", "ops/copy.md", "ops/disk.md"]


@pytest.mark.parametrize(
    ("filters", "keys"),
    [
        (["--status", "semantic_only"], ["faulty.md"]),
        (["--domain", "ops"], ["ops/copy.md", "ops/disk.md"]),
        (["--status", "failed"], []),
    ],
)
def test_documents_are_filtered(
    filters: list[str], keys: list[str], api: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["documents", "--json", *filters]) == 0
    assert [one["key"] for one in json.loads(capsys.readouterr().out)] == keys


def test_document_is_shown_with_sections_and_collisions(
    api: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["document", "ops/disk.md"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["key: ops/disk.md", "title: Disk", "keywords: disk full, quota"]
    assert "  title Two  level 1  firstPart 1  lastPart 1" in lines
    assert "  keyword disk full  documents ops/copy.md" in lines


def test_unknown_document_is_exit_code_3_and_one_line(
    api: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["document", "ops/none.md"]) == 3
    assert capsys.readouterr().err == (
        "kb: no document has the key ops/none.md; kb documents lists them\n"
    )


def test_domains_are_counted(api: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["domains"]) == 0
    assert capsys.readouterr().out == "default\t1\tText\nops\t2\tCopy, Disk\n"


def test_health_says_what_works(api: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["health"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (lines[0], lines[-1]) == ("ok", "documents: 3")


def test_health_of_a_degraded_system_is_exit_code_1(
    system: System, api: str, capsys: pytest.CaptureFixture[str]
) -> None:
    system.embedder.failure = Unavailable("embedding")
    assert run(["health"]) == 1
    assert capsys.readouterr().out.startswith("degraded\n")


@pytest.mark.parametrize(
    ("status", "body", "code", "line"),
    [
        (400, '{"error": {"code": "invalid_input", "message": "domain: x"}}', 2, "domain: x"),
        (413, '{"error": {"code": "too_large", "message": "too much"}}', 2, "too much"),
        (403, '{"message": "Forbidden"}', 2, "wants another key (Forbidden); name it with"),
        (404, '{"error": {"code": "not_found", "message": "no route"}}', 1, "has no /domains"),
        (404, "<html>", 1, "status 404 and no JSON object; is --url the address of this API?"),
        (200, "[1]", 1, "status 200 and no JSON object"),
        (200, "", 1, "status 200 and no JSON object"),
        (301, "{}", 1, "answers with status 301"),
        (429, '{"message": "Too Many Requests"}', 1, "try again later"),
        (503, '{"error": {"code": "c", "message": "catalog does not answer"}}', 1, "catalog does"),
    ],
    ids=str,
)
def test_each_failure_of_the_api_is_one_line_with_its_exit_code(
    status: int, body: str, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(status, body, location="http://127.0.0.1:9/") as stub:
        assert run(["domains", "--url", stub.url]) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert line in captured.err


@pytest.mark.parametrize(
    ("url", "code", "line"),
    [
        ("http://127.0.0.1:9", 1, "nothing answers at http://127.0.0.1:9; start one with kb serve"),
        ("127.0.0.1:8000", 2, "is no address"),
        ("ftp://x", 2, "is no address"),
        ("http://[::1", 2, "is no address"),
        ("http://127.0.0.1:port", 2, "is no address"),
        ("http://.x", 1, "cannot be asked"),
    ],
)
def test_an_address_that_is_wrong_is_one_line(
    url: str, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["health", "--url", url]) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert line in captured.err


@pytest.mark.parametrize("key", ["钥匙", "a\nb"])
def test_a_key_that_no_header_can_hold_is_wrong_usage(
    key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["health", "--url", "http://127.0.0.1:9", "--api-key", key]) == 2
    assert capsys.readouterr().err == "kb: --api-key holds characters that no key has\n"


def test_a_proxy_is_not_asked_for_this_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with answering(200, '{"domains": []}') as stub:
        assert run(["domains", "--url", stub.url]) == 0
    assert len(stub.asked) == 1
