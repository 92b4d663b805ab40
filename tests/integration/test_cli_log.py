"""kb sql over the log of a running local server, and of a table named."""

import json
from collections.abc import Iterator

import pytest
from kb.cli import run
from kb.stores.dynamodb import to_item

from tests.conftest import System, markdown
from tests.served import answering, serving

GROUPED = (
    "SELECT relevance_level, COUNT(*) FROM tool_invocation"
    " WHERE tool_name='lookup_knowledge' GROUP BY relevance_level"
)
"""The question of the specification, as it stands."""


@pytest.fixture
def log(system: System) -> System:
    """Two PRECISE answers, one miss, and a row from before the two columns existed."""
    system.ingest("disk.md", markdown("Disk", "[disk full]", "# One\n\nText."))
    system.ask("disk full", session_id="s1")
    system.ask("disk full", session_id="s1")
    system.ask("zzzz")
    old = {"invocation_id": "old", "query": "q", "tool_name": "lookup_knowledge", "found": True}
    system.cloud.client("dynamodb").put_item(
        TableName=system.environment["INVOCATION_TABLE"], Item=to_item(old)
    )
    return system


@pytest.fixture
def local(log: System, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with serving(log, monkeypatch) as url:
        monkeypatch.setenv("KB_URL", url)
        # What the shell is set up for must not matter.
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        yield url


def test_question_of_the_specification_runs_as_it_stands(
    local: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sql", GROUPED]) == 0
    assert sorted(capsys.readouterr().out.splitlines()) == ["NULL\t2", "PRECISE\t2"]


def test_json_has_a_row_an_object_and_null_for_rows_without_the_columns(
    local: str, capsys: pytest.CaptureFixture[str]
) -> None:
    query = "SELECT relevance_level, dedup_reason, session_id FROM tool_invocation WHERE query='q'"
    assert run(["sql", query, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"relevance_level": None, "dedup_reason": None, "session_id": None}
    ]


def test_details_are_read_by_json_functions(local: str, capsys: pytest.CaptureFixture[str]) -> None:
    query = (
        "SELECT dedup_reason, json_extract(retrieval_details, '$.sources[0]') FROM tool_invocation"
        " WHERE session_id = 's1' ORDER BY dedup_reason"
    )
    assert run(["sql", query]) == 0
    assert capsys.readouterr().out == "NULL\tdisk.md\nDOC_ALREADY_RETRIEVED\tNULL\n"


def test_table_of_a_deployed_stack_is_read_with_the_shells_credentials(
    log: System, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KB_INVOCATION_TABLE", log.environment["INVOCATION_TABLE"])
    assert run(["sql", "SELECT COUNT(*) FROM tool_invocation"]) == 0
    assert capsys.readouterr().out == "4\n"


@pytest.mark.parametrize(
    ("options", "code", "line"),
    [
        (["--table", "none"], 1, "cannot be read: log did not answer (ResourceNotFoundException)"),
        (["--url", "http://127.0.0.1:9"], 1, "nothing answers at http://127.0.0.1:9"),
        (["--url", "http://api.example"], 2, "is no kb serve; name the log's table with --table"),
    ],
    ids=["no table", "no server", "no local server"],
)
def test_a_log_that_cannot_be_read_is_one_line(
    options: list[str],
    code: int,
    line: str,
    log: System,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KB_INVOCATION_TABLE", raising=False)
    assert run(["sql", "SELECT 1", *options]) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert line in captured.err


def test_an_api_on_this_machine_that_is_no_kb_serve_wants_the_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KB_INVOCATION_TABLE", raising=False)
    body = '{"error": {"code": "not_found", "message": "there is no such route"}}'
    with answering(404, body) as stub:
        assert run(["sql", "SELECT 1", "--url", stub.url]) == 2
    assert "name the log's table with --table" in capsys.readouterr().err


def test_missing_credentials_are_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    assert run(["sql", "SELECT 1", "--table", "t"]) == 1
    assert capsys.readouterr().err == (
        "kb: AWS cannot be asked (You must specify a region.); set AWS_PROFILE and AWS_REGION,"
        " or run aws configure\n"
    )
