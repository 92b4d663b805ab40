"""`sam local start-api`: the API's routes over HTTP, each in a function in a container."""

# ruff: noqa: S310, S603 -- the command is the SAM CLI, the addresses are its own

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from http.client import HTTPMessage
from typing import Any
from urllib.error import HTTPError, URLError

import pytest

from tests.conftest import markdown
from tests.sam_local.cloud import ROOT, Cloud
from tests.sam_local.conftest import Sam, notification

KEY = "start-api/退款.md"
TEXT = markdown("退款", "[START-API-1]", "三天之内退款。", lastUpdated="2025-01-02")
STARTED_WITHIN = 180
"""Seconds; the image is built before the first request is taken."""


@pytest.fixture(scope="module")
def url(running: Cloud, sam: Sam, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the API, whose catalog has one document of these tests."""
    running.stack.client("s3").put_object(Bucket=running.stack.bucket, Key=KEY, Body=TEXT.encode())
    event = tmp_path_factory.mktemp("events") / "created.json"
    event.write_text(json.dumps(notification(KEY)), encoding="utf-8")
    assert sam.invoke("IngestFunction", event) == {"batchItemFailures": []}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with sam.log.open("ab") as log:
        process = subprocess.Popen(
            sam.command("start-api", "--host", "127.0.0.1", "--port", str(port)),
            cwd=ROOT,
            env=sam.environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        give_up = time.monotonic() + STARTED_WITHIN
        while not answers(url):
            assert process.poll() is None, sam.log.read_text(errors="replace")[-3000:]
            assert time.monotonic() < give_up, sam.log.read_text(errors="replace")[-3000:]
            time.sleep(0.5)
        yield url
    finally:
        # It removes its warm containers on the way out.
        os.kill(process.pid, signal.SIGTERM)
        process.wait(60)


def answers(url: str) -> bool:
    try:
        urllib.request.urlopen(f"{url}/no-such-route", timeout=60).close()
    except HTTPError:
        return True
    except URLError:
        return False
    return True


def ask(url: str, path: str, body: Any = None, method: str | None = None) -> tuple[int, Any]:
    """Status and JSON."""
    status, _, text = request(url, path, body, method)
    return status, json.loads(text)


def request(
    url: str, path: str, body: Any = None, method: str | None = None
) -> tuple[int, HTTPMessage, str]:
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(
        f"{url}{path}", data, {"content-type": "application/json"}, method=method
    )
    try:
        with urllib.request.urlopen(asked, timeout=120) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def test_a_question_is_answered_once_in_a_session(url: str) -> None:
    question = {"query": "START-API-1", "session_id": "start-api"}
    first = ask(url, "/lookup", question)
    second = ask(url, "/lookup", question)
    session = ask(url, "/session?id=start-api")
    cleared = ask(url, "/session?id=start-api", method="DELETE")
    identity = first[1].pop("invocationId")
    assert first == (
        200,
        {
            "found": True,
            "primary": {
                "content": "三天之内退款。",
                "source": KEY,
                "title": "退款",
                "section": None,
                "part": 1,
                "parts": 1,
                "matchType": "exact_L0",
                "updatedAt": "2025-01-02",
                "version": None,
                "author": None,
                "confidence": "high",
                "truncated": False,
                "availableSections": [],
            },
            "supplement": None,
            "relevanceLevel": "PRECISE",
            "completenessHint": "知识库中不存在比上述结果更精准的文档",
            "retrievedDomainsThisSession": ["start-api"],
            "message": None,
            "degraded": [],
        },
    )
    assert len(identity) == 36
    assert (second[0], second[1]["primary"], second[1]["relevanceLevel"]) == (200, None, "PRECISE")
    assert second[1]["message"]
    assert [read["source"] for read in session[1]["documents"]] == [KEY]
    assert cleared == (200, {"sessionId": "start-api", "cleared": True})


def test_every_part_of_the_system_answers_from_a_container(url: str) -> None:
    status, health = ask(url, "/health")
    assert status == 200
    assert (health["status"], set(health["parts"].values())) == ("ok", {"ok"})


def test_a_document_is_found_by_its_meaning_too(url: str) -> None:
    status, answer = ask(url, "/lookup", {"query": "三天之内退款", "domain": "start-api"})
    assert (status, answer["supplement"]["source"]) == (200, KEY)
    assert (answer["supplement"]["matchType"], answer["degraded"]) == ("semantic_L1", [])


def test_the_prompt_is_markdown(url: str) -> None:
    status, headers, text = request(url, "/prompts/executor?language=en")
    assert (status, headers["content-type"]) == (200, "text/markdown; charset=utf-8")
    assert text == (ROOT / "layers/shared/kb/prompts/executor.en.md").read_text(encoding="utf-8")


def test_a_bad_request_names_its_field(url: str) -> None:
    status, answer = ask(url, "/lookup", {"query": "START-API-1", "part": 0})
    assert (status, answer["error"]["code"]) == (400, "invalid_input")
    assert answer["error"]["message"].startswith("part: ")
