"""Each action of the roles is needed: without it, something that works with it fails."""

import itertools
import json
import re
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import markdown
from tests.deploy.stack import Stack, actions_of, notification, sqs_record

KEY = "may/document.md"
KEYWORD = "MAY-DOCUMENT"
MEANING = "walruses yodel beneath turquoise chandeliers"
EVENTS = Path(__file__).parents[2] / "events"
DONE = "done"
VERSIONS = itertools.count(1)

UNDECIDED = {
    # MiniStack takes messages from a queue in nobody's name ...
    ("IngestRole", "Queue", "sqs:ReceiveMessage"),
    ("IngestRole", "Queue", "sqs:DeleteMessage"),
    ("IngestRole", "Queue", "sqs:GetQueueAttributes"),
    # ... and says of a missing key that it is missing also to who may not know that.
    ("IngestRole", "MissingDocuments", "s3:ListBucket"),
    # It writes logs in nobody's name, and knows no X-Ray.
    *(
        (role, sid, action)
        for role in ("IngestRole", "LookupRole")
        for sid, action in (
            ("Logs", "logs:CreateLogStream"),
            ("Logs", "logs:PutLogEvents"),
            ("Traces", "xray:PutTraceSegments"),
            ("Traces", "xray:PutTelemetryRecords"),
        )
    ),
}


# ------------------------------------------------------------------------------------ ingest does
def ingests_a_change(stack: Stack) -> str:
    stack.put(KEY, document(f"{MEANING} {next(VERSIONS)}"))
    return ingested(stack, KEY)


def ingests_what_is_there(stack: Stack) -> str:
    return ingested(stack, KEY)


def ingests_without_an_alias(stack: Stack) -> str:
    with stack.index.without_alias():
        told = ingested(stack, KEY)
    # Allowed to create the index, it learns that there is one.
    return DONE if "exists, but no alias" in told else told


def ingested(stack: Stack, key: str) -> str:
    return stack.ingest(key) or DONE


def delays_a_failed_message(stack: Stack) -> str:
    """A message of the real queue, about a document that cannot be read."""
    sqs, queue = stack.client("sqs"), stack.resources["IngestQueue"]
    body = json.dumps(notification(KEY))
    sqs.send_message(QueueUrl=queue, MessageBody=body)
    (message,) = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=1)["Messages"]
    record = sqs_record(message["MessageId"], body, message["ReceiptHandle"])
    started = time.time()
    with stack.without("IngestRole", "Documents", "s3:GetObject"):
        answer = stack.invoke("IngestFunction", {"Records": [record]})
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    assert answer["batchItemFailures"] == [{"itemIdentifier": message["MessageId"]}]
    told = [line["message"] for line in stack.log("ingest", started)]
    return "retry_not_delayed" if "retry_not_delayed" in told else DONE


# ------------------------------------------------------------------------------------ lookup does
def answers_by_keyword(stack: Stack) -> str:
    time.sleep(1.1)  # until the catalog is looked at again
    return outcome(stack.ask(KEYWORD))


def answers_by_meaning(stack: Stack) -> str:
    return outcome(stack.ask(MEANING))


def answers_by_meaning_past_an_orphan(stack: Stack) -> str:
    """A chunk of a version that the catalog in memory does not know is nearest to the question."""
    orphan = {
        "key": KEY,
        "revision": 1_000_000,
        "fingerprint": "orphan",
        "ordinal": 0,
        "part": 1,
        "section": "",
        "domain": "may",
        "text": MEANING,
        "vector": stack.vector_of(MEANING),
    }
    with stack.index.with_chunk(orphan):
        return outcome(stack.ask(MEANING))


def answers_in_a_session(stack: Stack) -> str:
    return outcome(stack.ask(KEYWORD, session_id=str(uuid.uuid4())))


def answers_in_an_expired_session(stack: Stack) -> str:
    session = str(uuid.uuid4())
    stack.ask(KEYWORD, session_id=session)
    table, name = stack.client("dynamodb"), stack.resources["SessionTable"]
    for item in table.scan(TableName=name)["Items"]:
        expired = item | {"expires_at": {"N": "1"}}
        table.put_item(TableName=name, Item=expired)
    return outcome(stack.ask(KEYWORD, session_id=session))


def clears_a_session(stack: Stack) -> str:
    session = str(uuid.uuid4())
    stack.ask(KEYWORD, session_id=session)
    return outcome(stack.call("DELETE", "/session", id=session))


def shows_a_document(stack: Stack) -> str:
    return outcome(stack.document(KEY))


def logs_a_question(stack: Stack) -> str:
    started = time.time()
    answered = outcome(stack.ask(KEYWORD))
    lost = [line for line in stack.log("lookup", started) if "not_logged" in line["message"]]
    return f"{answered} with its row in the function's log" if lost else answered


def newest_answers_without_an_alias(stack: Stack) -> str:
    started = time.time()
    with stack.index.without_alias():
        answered = newest_answers_by_meaning(stack)
    causes = " ".join(str(line.get("cause")) for line in stack.log("lookup", started))
    return DONE if "exists, but no alias" in causes else f"{answered} {causes}"


def newest_answers_by_meaning(stack: Stack) -> str:
    """By the newest code, which no alias stands for: a process of it can be ended at will."""
    event = json.loads((EVENTS / "api_lookup.json").read_text(encoding="utf-8"))
    answer = stack.invoke("LookupFunction", event | {"body": json.dumps({"query": MEANING})})
    return summary(answer["statusCode"], json.loads(answer["body"]))


def outcome(reply: Any) -> str:
    return summary(reply.status, reply.body)


def summary(status: int, body: dict[str, Any]) -> str:
    if status != 200:
        return f"{status} {body['error']['code']}"
    return f"without {body['degraded'][0]}" if body.get("degraded") else DONE


CASES: dict[tuple[str, str, str], tuple[Callable[[Stack], str], str]] = {
    ("IngestRole", "Queue", "sqs:ChangeMessageVisibility"): (
        delays_a_failed_message,
        "retry_not_delayed",
    ),
    ("IngestRole", "Documents", "s3:GetObject"): (
        ingests_a_change,
        r"bucket did not answer \(AccessDenied\)",
    ),
    **{
        ("IngestRole", "Catalog", action): (
            ingests_a_change,
            r"catalog did not answer \(AccessDeniedException\)",
        )
        for action in ("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
    },
    **{
        ("IngestRole", "Content", action): (
            ingests_a_change,
            r"content did not answer \(AccessDeniedException\)",
        )
        for action in ("dynamodb:Query", "dynamodb:BatchWriteItem")
    },
    ("IngestRole", "Embedding", "lambda:InvokeFunction"): (
        ingests_a_change,
        r"Lambda refuses arn:\S+:embedder: AccessDeniedException",
    ),
    ("IngestRole", "ReadAndWrite", "es:ESHttpGet"): (
        ingests_what_is_there,
        r"refuses to read the mapping of kb-chunks \(403: .*es:ESHttpGet",
    ),
    ("IngestRole", "ReadAndWrite", "es:ESHttpPost"): (
        ingests_a_change,
        r"refuses to write to kb-chunks \(403: .*es:ESHttpPost",
    ),
    ("IngestRole", "Create", "es:ESHttpPut"): (
        ingests_without_an_alias,
        r"refuses to create kb-chunks \(403: .*es:ESHttpPut",
    ),
    ("LookupRole", "Catalog", "dynamodb:GetItem"): (shows_a_document, "503 catalog_unavailable"),
    ("LookupRole", "Catalog", "dynamodb:BatchGetItem"): (
        answers_by_meaning_past_an_orphan,
        "503 semantic_unavailable",
    ),
    ("LookupRole", "Catalog", "dynamodb:Scan"): (
        newest_answers_by_meaning,
        "without keywords",
    ),
    ("LookupRole", "CatalogChanges", "dynamodb:Query"): (answers_by_keyword, "without keywords"),
    ("LookupRole", "Content", "dynamodb:BatchGetItem"): (
        answers_by_keyword,
        "503 content_unavailable",
    ),
    ("LookupRole", "Session", "dynamodb:Query"): (answers_in_a_session, "without session"),
    ("LookupRole", "Session", "dynamodb:UpdateItem"): (answers_in_a_session, "without session"),
    ("LookupRole", "Session", "dynamodb:PutItem"): (
        answers_in_an_expired_session,
        "without session",
    ),
    ("LookupRole", "Session", "dynamodb:BatchWriteItem"): (
        clears_a_session,
        "503 session_unavailable",
    ),
    ("LookupRole", "Log", "dynamodb:PutItem"): (
        logs_a_question,
        "done with its row in the function's log",
    ),
    ("LookupRole", "Embedding", "lambda:InvokeFunction"): (
        answers_by_meaning,
        "503 semantic_unavailable",
    ),
    ("LookupRole", "Check", "es:ESHttpGet"): (
        newest_answers_by_meaning,
        "503 semantic_unavailable",
    ),
    ("LookupRole", "Search", "es:ESHttpPost"): (answers_by_meaning, "503 semantic_unavailable"),
    ("LookupRole", "WeighWords", "es:ESHttpPost"): (answers_by_meaning, "503 semantic_unavailable"),
    ("LookupRole", "Create", "es:ESHttpPut"): (
        newest_answers_without_an_alias,
        r"503 semantic_unavailable .*refuses to create kb-chunks \(403: .*es:ESHttpPut",
    ),
}

AT_START = {
    ("IngestRole", "ReadAndWrite", "es:ESHttpGet"),
    ("IngestRole", "Create", "es:ESHttpPut"),
    ("LookupRole", "Catalog", "dynamodb:Scan"),
    ("LookupRole", "Check", "es:ESHttpGet"),
    ("LookupRole", "Create", "es:ESHttpPut"),
}
"""Needed until it has once worked in a process."""


@pytest.fixture(scope="module")
def quiet(stack: Stack) -> Iterator[Stack]:
    """The document is there, and nothing is taken from the queue."""
    stack.put(KEY, document(MEANING))
    stack.until_indexed(KEY)
    with stack.quiet():
        yield stack


@pytest.mark.parametrize(("role", "sid", "action"), CASES, ids=[" ".join(case) for case in CASES])
def test_without_this_permission_something_fails_that_works_with_it(
    quiet: Stack, role: str, sid: str, action: str
) -> None:
    operate, failure = CASES[role, sid, action]
    if (role, sid, action) in AT_START:
        quiet.start_anew(role.replace("Role", "Function"))
    with quiet.without(role, sid, action):
        refused = operate(quiet)
    assert operate(quiet) == DONE
    assert re.search(failure, refused)


def test_every_permission_is_tried_or_named_as_one_that_cannot_be_tried_here(stack: Stack) -> None:
    there = {
        (role, statement["Sid"], action)
        for role in ("IngestRole", "LookupRole")
        for policy in stack.policies(role).values()
        for statement in policy["Statement"]
        for action in actions_of(statement)
    }
    assert there == CASES.keys() | UNDECIDED
    assert not CASES.keys() & UNDECIDED


def document(body: str) -> str:
    return markdown("Permissions", f"[{KEYWORD}]", body)
