"""kb lookup and kb session, against the API as it is."""

import json
from collections.abc import Iterator

import pytest
from kb.cli import run

from tests.conftest import System, markdown
from tests.served import answering, serving

DISK = markdown(
    "磁盘告警处理",
    "[磁盘告警]",
    "# 处理\n\n清理旧日志。",
    version="1.10",
    author="运维组",
    lastUpdated="2026-01-02",
)
LONG = markdown("Long", "[long story]", f"# One\n\n{'first ' * 300}\n\n# Two\n\n{'second ' * 250}")
SHORT_MESSAGE = 400
"""Characters that a repeated question may cost at most, as in the acceptance lines."""


@pytest.fixture
def api(system: System, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    system.ingest("ops/disk.md", DISK)
    system.ingest("tales/long.md", LONG)
    monkeypatch.delenv("KB_API_KEY", raising=False)
    with serving(system, monkeypatch) as url:
        monkeypatch.setenv("KB_URL", url)
        yield url


def test_answer_is_printed_with_level_source_text_and_hint(
    api: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lookup", "磁盘告警", "--session", "s1"]) == 0
    assert capsys.readouterr().out == (
        "PRECISE\n"
        "\n"
        "ops/disk.md · 磁盘告警处理 · 处理 · part 1 of 1 · version 1.10 · 运维组 · 2026-01-02\n"
        "\n"
        "# 处理\n\n清理旧日志。\n"
        "\n"
        "Hint: 知识库中不存在比上述结果更精准的文档\n"
        "Read in this session: ops\n"
    )


def test_json_is_the_answer_of_the_api(api: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lookup", "磁盘告警", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["relevanceLevel"], answer["primary"]["content"]) == (
        "PRECISE",
        "# 处理\n\n清理旧日志。",
    )


def test_repeated_question_prints_the_message_and_no_text(
    api: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["lookup", "磁盘告警", "--session", "s1"])
    capsys.readouterr()
    assert run(["lookup", "磁盘告警", "--session", "s1"]) == 0
    out = capsys.readouterr().out
    assert "清理旧日志" not in out
    assert "Message: 本会话已返回过该内容" in out
    assert len(out) < SHORT_MESSAGE


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--force"], "first"),
        (["--request-id", "r1"], "first"),
        (["--part", "2"], "second"),
        (["--section", "two"], "second"),
    ],
    ids=["force", "request id", "part", "section"],
)
def test_options_choose_what_a_session_is_given_next(
    options: list[str], text: str, api: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["lookup", "long story", "--session", "s1", "--part", "1", "--request-id", "r1"])
    capsys.readouterr()
    first = ["--part", "1"] if text == "first" else []
    assert run(["lookup", "long story", "--session", "s1", *first, *options, "--json"]) == 0
    primary = json.loads(capsys.readouterr().out)["primary"]
    assert text in primary["content"]


def test_nothing_found_is_exit_code_3_with_the_message(
    api: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lookup", "磁盘告警", "--domain", "tales"]) == 3
    out = capsys.readouterr().out
    assert out.startswith("NOTHING FOUND\n\nMessage: ")
    assert "清理旧日志" not in out


def test_session_lists_what_was_read_and_clear_forgets_it(
    api: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["lookup", "磁盘告警", "--session", "对话 #1/2"])
    capsys.readouterr()
    assert run(["session", "对话 #1/2"]) == 0
    assert capsys.readouterr().out.startswith("ops\tops/disk.md\t1\t20")
    assert run(["session", "对话 #1/2", "--clear"]) == 0
    assert capsys.readouterr().out == "Cleared 对话 #1/2.\n"
    assert run(["session", "对话 #1/2"]) == 0
    assert capsys.readouterr().out == "对话 #1/2 has read nothing.\n"


def test_only_what_was_named_is_sent_and_the_key_in_its_header(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KB_API_KEY", "secret")
    with answering(200, '{"found": true, "relevanceLevel": "PRECISE"}') as stub:
        assert run(["lookup", "q", "--domain", "d", "--url", f"{stub.url}/prod/"]) == 0
    [(method, target, headers, body)] = stub.asked
    assert (method, target, headers["x-api-key"]) == ("POST", "/prod/lookup", "secret")
    assert json.loads(body) == {"query": "q", "domain": "d"}
    assert capsys.readouterr().out == "PRECISE\n"


@pytest.mark.parametrize("options", [["--session", "x" * 257], ["--part", "0"]])
def test_what_the_api_refuses_is_wrong_usage_in_one_line(
    options: list[str], api: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lookup", "q", *options]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert captured.err.startswith(("kb: session_id: ", "kb: part: "))


def test_text_of_a_document_cannot_drive_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    passage = {"content": "a\x1b[2Jb\tc\n\x07d", "source": "k\x1b\ney.md", "part": 1, "parts": 1}
    body = json.dumps({"found": True, "relevanceLevel": "REFERENCE", "supplement": passage})
    with answering(200, body) as stub:
        assert run(["lookup", "q", "--url", stub.url]) == 0
    assert capsys.readouterr().out == (
        "REFERENCE\n\nSee also: k ey.md · part 1 of 1\n\na[2Jb\tc\nd\n"
    )
