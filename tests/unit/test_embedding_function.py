"""The embedding function's adapter over botocore's own client, with Lambda's answers stubbed."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
    ResponseStreamingError,
)
from botocore.response import StreamingBody
from botocore.stub import Stubber
from kb.errors import InvalidInput, KbError, Misconfigured, Refused, Unavailable
from kb.stores.embedding_function import EmbeddingFunction

FUNCTION = "arn:aws:lambda:eu-west-1:123456789012:function:kb-embedding:live"


def vector_of(number: int) -> list[float]:
    return [float(number), *[0.0] * 1023]


class Lambda:
    """Stubbed invocations of the function, in order."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.stubber = Stubber(client)
        self.embedder = EmbeddingFunction(client, function=FUNCTION)

    def answers(self, texts: list[str], answer: Any, **fields: Any) -> None:
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.stubber.add_response(
            "invoke",
            {"StatusCode": 200, "Payload": StreamingBody(io.BytesIO(data), len(data)), **fields},
            {"FunctionName": FUNCTION, "Payload": json.dumps({"texts": texts}).encode()},
        )

    def embeds(self, texts: list[str], truncated: tuple[int, ...] = ()) -> None:
        """Answer with the length of each text as its vector's first number."""
        vectors = [vector_of(len(text)) for text in texts]
        self.answers(
            texts, {"vectors": vectors, "model": "BAAI/bge-m3", "truncated": list(truncated)}
        )

    def refuses(self, message: str, texts: list[str], code: str = "invalid_input") -> None:
        self.answers(texts, {"error": {"code": code, "message": message}})

    def fails(self, code: str, status: int) -> None:
        self.stubber.add_client_error("invoke", code, "said so", status)

    def breaks(self, error: BotoCoreError, monkeypatch: pytest.MonkeyPatch) -> None:
        def invoke(**arguments: Any) -> None:
            raise error

        monkeypatch.setattr(self.client, "invoke", invoke)


@pytest.fixture(scope="module")
def client() -> Any:
    return boto3.client(
        "lambda",
        region_name="eu-west-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"total_max_attempts": 1}),
    )


@pytest.fixture
def function(client: Any) -> Iterator[Lambda]:
    one = Lambda(client)
    with one.stubber:
        yield one
        one.stubber.assert_no_pending_responses()


def error_of(function: Lambda, error: type[KbError]) -> str:
    with pytest.raises(error) as caught:
        function.embedder.embed_passages(["知识"])
    assert type(caught.value) is error
    return str(caught.value)


def test_it_names_the_model_and_its_dimension(function: Lambda) -> None:
    assert (function.embedder.model, function.embedder.dimension) == ("BAAI/bge-m3", 1024)


def test_a_question_is_one_call_of_one_text(function: Lambda) -> None:
    function.embeds(["怎么重置密码？"])
    assert function.embedder.embed_question("怎么重置密码？") == vector_of(7)


def test_no_passages_are_no_call(function: Lambda) -> None:
    assert function.embedder.embed_passages([]) == []


@pytest.mark.parametrize(
    ("count", "calls"), [(1, [1]), (64, [64]), (65, [64, 1]), (130, [64, 64, 2])]
)
def test_passages_go_64_a_call_and_keep_their_order(
    function: Lambda, count: int, calls: list[int]
) -> None:
    texts = ["x" * (index + 1) for index in range(count)]
    left = list(texts)
    for size in calls:
        function.embeds(left[:size])
        del left[:size]
    assert function.embedder.embed_passages(tuple(texts)) == [
        vector_of(index + 1) for index in range(count)
    ]


def test_truncated_passages_are_counted_in_the_log(
    function: Lambda, caplog: pytest.LogCaptureFixture
) -> None:
    function.embeds(["一", "二", "三"], truncated=(0, 2))
    with caplog.at_level(logging.INFO):
        vectors = function.embedder.embed_passages(["一", "二", "三"])
    assert vectors == [vector_of(1)] * 3
    logged = [
        (r.levelname, r.message, r.__dict__["count"], r.__dict__["of"]) for r in caplog.records
    ]
    assert logged == [("WARNING", "texts_truncated", 2, 3)]


def test_a_call_without_truncation_logs_nothing(
    function: Lambda, caplog: pytest.LogCaptureFixture
) -> None:
    function.embeds(["一"])
    with caplog.at_level(logging.INFO):
        function.embedder.embed_passages(["一"])
    assert caplog.records == []


def test_a_passage_that_cannot_be_embedded_is_its_writers_to_change(function: Lambda) -> None:
    function.refuses("texts[0] holds a NUL", ["知识"])
    assert error_of(function, Refused) == "a chunk cannot be embedded: texts[0] holds a NUL"


def test_a_question_that_cannot_be_embedded_is_its_askers_to_change(function: Lambda) -> None:
    function.refuses("texts[0] holds a lone surrogate", ["\ud83d"])
    with pytest.raises(InvalidInput) as caught:
        function.embedder.embed_question("\ud83d")
    assert (caught.value.field, caught.value.problem) == (
        "query",
        "is no text that can be embedded",
    )


@pytest.mark.parametrize(
    "code", ["RequestTooLargeException", "SerializedRequestEntityTooLargeException"]
)
def test_more_bytes_than_lambda_carries_are_no_outage(function: Lambda, code: str) -> None:
    function.fails(code, 413)
    assert error_of(function, Refused) == (
        "a chunk cannot be embedded: 27 bytes are too many for one call"
    )


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("TooManyRequestsException", 429),
        ("ServiceException", 500),
        ("ResourceNotReadyException", 502),
        ("ResourceConflictException", 409),
        ("EC2ThrottledException", 502),
        ("ExpiredTokenException", 403),
        ("InternalFailure", 503),
    ],
)
def test_what_may_pass_is_an_outage(function: Lambda, code: str, status: int) -> None:
    function.fails(code, status)
    assert error_of(function, Unavailable) == f"embedding did not answer ({code})"


@pytest.mark.parametrize(
    "code",
    [
        "AccessDeniedException",
        "InvalidParameterValueException",
        "ResourceNotFoundException",
        "ValidationException",
    ],
)
def test_what_will_not_pass_is_a_wrong_setting(function: Lambda, code: str) -> None:
    function.fails(code, 400)
    assert error_of(function, Misconfigured) == f"Lambda refuses {FUNCTION}: {code}"


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ReadTimeoutError(endpoint_url="https://lambda"), "ReadTimeoutError"),
        (ConnectTimeoutError(endpoint_url="https://lambda"), "ConnectTimeoutError"),
        (EndpointConnectionError(endpoint_url="https://lambda"), "EndpointConnectionError"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_no_answer_is_an_outage(
    function: Lambda, monkeypatch: pytest.MonkeyPatch, error: BotoCoreError, cause: str
) -> None:
    function.breaks(error, monkeypatch)
    assert error_of(function, Unavailable) == f"embedding did not answer ({cause})"


@pytest.mark.parametrize(
    "error", [NoCredentialsError(), ParamValidationError(report="FunctionName is empty")]
)
def test_a_call_that_cannot_be_made_is_a_wrong_setting(
    function: Lambda, monkeypatch: pytest.MonkeyPatch, error: BotoCoreError
) -> None:
    function.breaks(error, monkeypatch)
    assert error_of(function, Misconfigured) == f"{FUNCTION} cannot be called: {error}"


def test_an_answer_that_breaks_off_is_an_outage(
    function: Lambda, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(self: StreamingBody, amt: int | None = None) -> bytes:
        raise ResponseStreamingError(error="connection reset")

    function.embeds(["知识"])
    monkeypatch.setattr(StreamingBody, "read", read)
    assert error_of(function, Unavailable) == "embedding did not answer (ResponseStreamingError)"


def test_a_failed_function_is_an_outage(function: Lambda) -> None:
    failure = {"errorType": "Runtime.ExitError", "errorMessage": "signal: killed"}
    function.answers(["知识"], failure, FunctionError="Unhandled")
    assert error_of(function, Unavailable) == "embedding did not answer (function error Unhandled)"


def test_fewer_vectors_than_texts_are_no_answer(function: Lambda) -> None:
    answer = {"vectors": [], "model": "BAAI/bge-m3", "truncated": []}
    function.answers(["知识"], answer)
    assert error_of(function, Unavailable) == "embedding did not answer (0 vectors for 1 texts)"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            {"vectors": [[1.0]], "model": "other", "truncated": []},
            "the embedding function has model other, not BAAI/bge-m3",
        ),
        (
            {"vectors": [[1.0, 0.0]], "model": "BAAI/bge-m3", "truncated": []},
            "the embedding function gives vectors of 2 numbers, not 1024",
        ),
        (
            {"error": {"code": "unknown_model", "message": ""}},
            "the embedding function answers unknown_model",
        ),
        (b"null", f"{FUNCTION} answers in a form that no embedding function has"),
        (b"<html>", f"{FUNCTION} answers in a form that no embedding function has"),
        (
            {"vectors": [["1", None]], "model": "BAAI/bge-m3", "truncated": []},
            f"{FUNCTION} answers in a form that no embedding function has",
        ),
    ],
    ids=["another model", "another dimension", "another code", "null", "no JSON", "no numbers"],
)
def test_another_functions_answer_is_a_wrong_setting(
    function: Lambda, answer: Any, message: str
) -> None:
    function.answers(["知识"], answer)
    assert error_of(function, Misconfigured) == message
