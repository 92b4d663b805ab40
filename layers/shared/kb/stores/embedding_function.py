"""The embedding function, called through Lambda: texts and vectors as JSON."""

import json
import logging
from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    ParamValidationError,
)
from pydantic import BaseModel, TypeAdapter, ValidationError

from kb.errors import InvalidInput, Misconfigured, Refused, Unavailable
from kb.ports import Vector

logger = logging.getLogger(__name__)

MODEL: Final = "BAAI/bge-m3"
DIMENSION: Final = 1024
MOST_TEXTS: Final = 64
"""In one call; the function's limit."""
TOO_LARGE: Final = {"RequestTooLargeException", "SerializedRequestEntityTooLargeException"}
WRONG_SETTING: Final = {
    "AccessDeniedException",
    "InvalidParameterValueException",
    "ResourceNotFoundException",
    "ValidationException",
}
"""No later call gets another answer, until someone changes the setting or the role."""


class _Vectors(BaseModel):
    vectors: list[list[float]]
    model: str
    truncated: list[int]


class _Fault(BaseModel):
    code: str
    message: str


class _Refusal(BaseModel):
    error: _Fault


_answer: Final = TypeAdapter[_Vectors | _Refusal](_Vectors | _Refusal)


class _BadInput(Exception):
    """The function, or Lambda before it, will never take these texts."""


class EmbeddingFunction:
    """An Embedder; `client` is boto3's for Lambda and has the timeouts and tries of its use.

    Methods raise Unavailable("embedding") where the function fails or does not answer, and
    Misconfigured where it is absent, forbidden or another model's.
    """

    def __init__(self, client: Any, *, function: str) -> None:
        self._client = client
        self._function = function

    @property
    def model(self) -> str:
        return MODEL

    @property
    def dimension(self) -> int:
        return DIMENSION

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order. Raises Refused where a text cannot be embedded."""
        vectors: list[Vector] = []
        try:
            for start in range(0, len(texts), MOST_TEXTS):
                vectors += self._embed(texts[start : start + MOST_TEXTS])
        except _BadInput as error:
            raise Refused(f"a chunk cannot be embedded: {error}") from error
        return vectors

    def embed_question(self, text: str) -> Vector:
        """The question's vector. Raises InvalidInput where it cannot be embedded."""
        try:
            return self._embed([text])[0]
        except _BadInput as error:
            raise InvalidInput("query", "is no text that can be embedded") from error

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        match self._read(self._invoke(json.dumps({"texts": list(texts)}).encode())):
            case _Refusal(error=_Fault(code="invalid_input", message=message)):
                raise _BadInput(message)
            case _Refusal(error=fault):
                raise Misconfigured(f"the embedding function answers {fault.code}")
            case _Vectors(model=model) if model != MODEL:
                raise Misconfigured(f"the embedding function has model {model}, not {MODEL}")
            case _Vectors(vectors=vectors, truncated=truncated):
                if len(vectors) != len(texts):
                    raise Unavailable("embedding", f"{len(vectors)} vectors for {len(texts)} texts")
                if wrong := {len(vector) for vector in vectors} - {DIMENSION}:
                    raise Misconfigured(
                        f"the embedding function gives vectors of {min(wrong)} numbers,"
                        f" not {DIMENSION}"
                    )
                if truncated:
                    logger.warning(
                        "texts_truncated", extra={"count": len(truncated), "of": len(texts)}
                    )
                return vectors

    def _invoke(self, payload: bytes) -> bytes:
        try:
            response = self._client.invoke(FunctionName=self._function, Payload=payload)
            # Not `with ... as body`: that is the raw stream, whose errors are not botocore's.
            with closing(response["Payload"]) as body:
                answer: bytes = body.read()
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code in TOO_LARGE:
                raise _BadInput(f"{len(payload):,} bytes are too many for one call") from error
            if code in WRONG_SETTING:
                raise Misconfigured(f"Lambda refuses {self._function}: {code}") from error
            raise Unavailable("embedding", code) from error
        except (NoCredentialsError, ParamValidationError) as error:
            raise Misconfigured(f"{self._function} cannot be called: {error}") from error
        except (BotoCoreError, OSError) as error:
            raise Unavailable("embedding", type(error).__name__) from error
        if "FunctionError" in response:
            raise Unavailable("embedding", f"function error {response['FunctionError']}")
        return answer

    def _read(self, answer: bytes) -> _Vectors | _Refusal:
        try:
            return _answer.validate_json(answer)
        except ValidationError as error:
            raise Misconfigured(
                f"{self._function} answers in a form that no embedding function has"
            ) from error
