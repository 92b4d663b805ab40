"""kb doctor: a line a finding, against a deployed stack's names and against kb serve."""

import json
from collections.abc import Iterator
from typing import Any

import kb.commands.aws
import kb.wiring
import pytest
from botocore.exceptions import ClientError
from kb.cli import run
from kb.errors import Unavailable
from kb.settings import IngestSettings, read_settings

from tests.conftest import System, markdown
from tests.served import ingesting, serving

GOOD = markdown("Disk", "[disk alarm]", "# One\n\nText.")
BINARY = b"\0\1\2\3" * 100
NOT_INGESTED = "not_ingested       new.md  the bucket has it, the catalog has not"


@pytest.fixture(autouse=True)
def shell(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KB_URL", "KB_STACK", "CATALOG_TABLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def deployed(system: System, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The shell has the ingest function's environment, whose index this process reaches."""
    asked: list[dict[str, str]] = []

    def parts_of(environment: dict[str, str]) -> kb.wiring.IngestParts:
        asked.append(dict(environment))
        settings = read_settings(IngestSettings, environment)
        return kb.wiring.make_ingest(settings, system.embedder, system.index, system.clock.seconds)

    monkeypatch.setattr(kb.wiring, "ingest_parts_of", parts_of)
    opensearch = {"VECTOR_INDEX": "opensearch", "OPENSEARCH_ENDPOINT": "http://127.0.0.1:1"}
    for name, value in (system.environment | opensearch).items():
        monkeypatch.setenv(name, value)
    return asked


def test_a_system_in_order_is_one_line_and_exit_code_0(
    system: System, deployed: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    system.ingest("disk.md", GOOD)
    assert run(["doctor"]) == 0
    assert capsys.readouterr().out == "1 document: all in order\n"


def test_each_finding_is_a_line_and_exit_code_4(
    system: System, deployed: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    system.ingest("disk.md", GOOD)
    system.put("new.md", GOOD)
    reason = system.ingest("photo.md", BINARY).reason
    assert run(["doctor"]) == 4
    assert capsys.readouterr().out.splitlines() == [
        NOT_INGESTED,
        f"failed             photo.md  {reason}",
        "3 documents: 1 failed, 1 not_ingested",
    ]


def test_fix_says_of_each_finding_whether_it_is_repaired(
    system: System, deployed: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    system.put("new.md", GOOD)
    assert run(["doctor", "--fix"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"repaired  {NOT_INGESTED}",
        "1 document: 1 not_ingested; 1 repaired, 0 left",
    ]
    system.put("new.md", BINARY)
    assert run(["doctor", "--fix"]) == 4
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[:-1]] == [
        ["repaired", "outdated"],
        ["left", "failed"],
    ]
    assert lines[-1] == "1 document: 1 failed, 1 outdated; 1 repaired, 1 left"


def test_json_holds_the_same(
    system: System, deployed: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    system.put("new.md", GOOD)
    finding = {
        "key": "new.md",
        "kind": "not_ingested",
        "detail": "the bucket has it, the catalog has not",
    }
    assert run(["doctor", "--json"]) == 4
    assert json.loads(capsys.readouterr().out) == {"documents": 1, "findings": [finding]}
    assert run(["doctor", "--json", "--fix"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "documents": 1,
        "findings": [finding | {"repaired": True}],
    }


def test_a_key_that_would_move_the_cursor_stays_on_its_line(
    system: System, deployed: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    system.put("a\x1b[2Jb.md", GOOD)
    assert run(["doctor"]) == 4
    first, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("not_ingested       a[2Jb.md  ")


def test_what_does_not_answer_is_exit_code_1_and_going_on_is_possible(
    system: System, deployed: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    system.put("new.md", GOOD)
    system.embedder.failure = Unavailable("embedding")
    assert run(["doctor", "--fix"]) == 1
    assert capsys.readouterr().err == "kb: embedding did not answer\n"
    system.embedder.failure = None
    assert run(["doctor", "--fix"]) == 0


def test_a_stack_is_read_by_its_ingest_functions_environment(
    system: System, deployed: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = system.environment | {
        "VECTOR_INDEX": "opensearch",
        "OPENSEARCH_ENDPOINT": "https://search.example",
    }
    monkeypatch.setattr(kb.commands.aws, "client", lambda *_: _Deployed(environment))
    monkeypatch.delenv("CATALOG_TABLE")
    assert run(["doctor", "--stack", "kb"]) == 0
    [asked] = deployed
    assert {name: asked[name] for name in environment} == environment


class _Deployed:
    """CloudFormation and Lambda, of one stack."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment

    def describe_stack_resource(self, *, StackName: str, LogicalResourceId: str) -> Any:
        if StackName != "kb":
            told = {"Code": "ValidationError", "Message": f"Stack '{StackName}' does not exist"}
            raise ClientError({"Error": told}, "DescribeStackResource")
        return {"StackResourceDetail": {"PhysicalResourceId": f"{StackName}-{LogicalResourceId}-1"}}

    def get_function_configuration(self, *, FunctionName: str) -> Any:
        assert FunctionName == "kb-IngestFunction-1"
        return {"Environment": {"Variables": self._environment}}


def test_a_stack_that_is_not_there_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kb.commands.aws, "client", lambda *_: _Deployed({}))
    assert run(["doctor", "--stack", "nowhere"]) == 1
    told = "stack nowhere: ValidationError, Stack 'nowhere' does not exist"
    assert capsys.readouterr().err == f"kb: {told}\n"


@pytest.fixture
def served(system: System, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with serving(system, monkeypatch) as url, ingesting(system, monkeypatch):
        yield url


def test_kb_serve_compares_the_vectors_in_its_memory_and_repairs(
    system: System, served: str, capsys: pytest.CaptureFixture[str]
) -> None:
    system.ingest("disk.md", GOOD)
    assert run(["doctor", "--url", served]) == 0
    system.index.remove_others("disk.md", None, 9)
    line = "chunks_missing     disk.md  0 of 1 are in the vector index"
    assert run(["doctor", "--url", served]) == 4
    assert run(["doctor", "--url", served, "--fix"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "1 document: all in order",
        line,
        "1 document: 1 chunks_missing",
        f"repaired  {line}",
        "1 document: 1 chunks_missing; 1 repaired, 0 left",
    ]


def test_what_kb_serve_cannot_do_is_said_in_one_line(
    system: System, served: str, capsys: pytest.CaptureFixture[str]
) -> None:
    system.ingest("disk.md", GOOD)
    system.index.remove_others("disk.md", None, 9)
    system.embedder.failure = Unavailable("embedding")
    assert run(["doctor", "--url", served, "--fix"]) == 1
    assert capsys.readouterr().err == "kb: embedding did not answer\n"


@pytest.mark.parametrize(
    ("arguments", "environment", "told"),
    [
        ([], {}, "name a stack with --stack or KB_STACK, or a kb serve with --url"),
        ([], {"CATALOG_TABLE": "t", "VECTOR_INDEX": "embedded"}, "name it with --url"),
        (["--url", "https://api.example"], {}, "is no kb serve; name a deployed stack"),
    ],
    ids=["nothing", "memory of another process", "no kb serve"],
)
def test_what_cannot_be_looked_at_is_wrong_usage(
    arguments: list[str],
    environment: dict[str, str],
    told: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert run(["doctor", *arguments]) == 2
    assert told in capsys.readouterr().err
