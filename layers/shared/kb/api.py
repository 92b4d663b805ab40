"""HTTP in and out: request models, error bodies, and the JSON of every route."""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
)

from kb.answers import Question
from kb.documents import CatalogRow, Status
from kb.errors import InvalidInput, KbError, NotFound, TooLarge, Unavailable
from kb.stores.session_table import SessionContents

PAGE_ROWS = 100
"""Documents on one page of GET /documents."""
RETRY_AFTER_SECONDS = 5
"""When a caller may try again what did not answer."""


def _blank_is_absent(value: object) -> object:
    return None if isinstance(value, str) and not value.strip() else value


def _either(name: str) -> AliasChoices:
    """The name as it is and its camelCase spelling."""
    first, *rest = name.split("_")
    return AliasChoices(name, first + "".join(map(str.capitalize, rest)))


Text = Annotated[StrictStr | None, BeforeValidator(_blank_is_absent)]
Flag = Annotated[StrictBool | None, BeforeValidator(_blank_is_absent)]
Number = Annotated[Annotated[StrictInt, Field(ge=1)] | None, BeforeValidator(_blank_is_absent)]


class LookupRequest(BaseModel):
    """Body of POST /lookup."""

    model_config = ConfigDict(extra="forbid")

    query: StrictStr
    section_title: Text = Field(None, validation_alias=_either("section_title"))
    part: Number = None
    session_id: Text = Field(None, validation_alias=_either("session_id"))
    domain: Text = None
    force: Flag = None
    request_id: Text = Field(None, validation_alias=_either("request_id"))


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer."""

    status: int
    body: str
    content_type: str = "application/json; charset=utf-8"
    headers: Mapping[str, str] | None = None


def question_of(body: str | None, is_base64: bool, *, body_bytes: int, id_length: int) -> Question:
    """The question in a request's body. Raises InvalidInput or TooLarge.

    `id_length` is the most characters of a session or request id.
    """
    data = _bytes_of(body, is_base64)
    if len(data) > body_bytes:
        raise TooLarge(f"the body has {len(data):,} bytes; at most {body_bytes:,} are read")
    try:
        request = LookupRequest.model_validate_json(data)
    except ValidationError as error:
        raise _first_fault(error) from error
    for name in ("session_id", "request_id"):
        value = getattr(request, name)
        if value is not None:
            check_id(name, value, id_length)
    return Question(**{**request.model_dump(), "force": bool(request.force)})


def check_id(name: str, value: str, most: int) -> str:
    """The id if it has 1 to `most` characters, any. Raises InvalidInput."""
    if not value.strip():
        raise InvalidInput(name, "is missing or blank")
    if len(value) > most:
        raise InvalidInput(name, f"has {len(value):,} characters; at most {most} are taken")
    return value


def status_of(name: str) -> str:
    """A status to filter by; "" for none. Raises InvalidInput."""
    if name and name not in set(Status):
        raise InvalidInput("status", f"is none of {', '.join(Status)}")
    return name


def ok(value: object) -> Reply:
    """200 with compact JSON; text stays readable, since agents pay for every character."""
    return Reply(200, json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def error_reply(error: KbError | None, request_id: str) -> Reply:
    """The one table from errors to HTTP statuses; None is what nobody foresaw.

    The cause of the last two stands in the log only, under the request id.
    """
    match error:
        case InvalidInput():
            return _refusal(400, "invalid_input", str(error), request_id)
        case TooLarge():
            return _refusal(413, "too_large", str(error), request_id)
        case NotFound():
            return _refusal(404, "not_found", str(error), request_id)
        case Unavailable():
            sentence = f"{error.what} does not answer at the moment; the same call may work later"
            wait = {"Retry-After": str(RETRY_AFTER_SECONDS)}
            return _refusal(503, f"{error.what}_unavailable", sentence, request_id, wait)
        case None:
            sentence = "something failed that should not have"
            return _refusal(500, "internal_error", sentence, request_id)
        case _:
            sentence = "the service is set up wrongly; its owner finds the cause in its log"
            return _refusal(503, "misconfigured", sentence, request_id)


def described(row: CatalogRow) -> dict[str, Any]:
    """A document as GET /documents lists it."""
    return {
        "key": row.key,
        "title": row.title or None,
        "keywords": list(row.keywords),
        "summary": row.summary or None,
        "domain": row.domain or None,
        "status": row.status,
        "reason": row.reason or None,
        "updatedAt": row.updated_at or None,
    }


def session_as_json(session_id: str, contents: SessionContents) -> dict[str, Any]:
    """What a session has read, first-seen first."""
    documents = sorted(contents.documents.values(), key=lambda read: read.first_seen)
    return {
        "sessionId": session_id,
        "retrievedDomains": contents.domains,
        "documents": [
            {
                "source": read.document,
                "domain": read.domain,
                "partsRead": len(read.parts),
                "firstSeen": datetime.fromtimestamp(read.first_seen / 1e9, UTC).isoformat(),
            }
            for read in documents
        ],
    }


def _refusal(
    status: int,
    code: str,
    sentence: str,
    request_id: str,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    error = {"code": code, "message": sentence, "requestId": request_id}
    return Reply(status, json.dumps({"error": error}, ensure_ascii=False), headers=headers)


def _bytes_of(body: str | None, is_base64: bool) -> bytes:
    if body is None:
        raise InvalidInput("body", "is missing; send a JSON object with a query")
    try:
        return base64.b64decode(body, validate=True) if is_base64 else body.encode()
    except (binascii.Error, ValueError) as error:
        raise InvalidInput("body", "is not valid base64 or not valid text") from error


def _first_fault(error: ValidationError) -> InvalidInput:
    fault = error.errors(include_input=False, include_url=False)[0]
    field = ".".join(map(str, fault["loc"])) or "body"
    match fault["type"]:
        case "extra_forbidden":
            return InvalidInput(field, "is not a field of this request")
        case "json_invalid":
            return InvalidInput("body", f"is not valid JSON ({fault['msg']})")
        case "model_type" | "model_attributes_type":
            return InvalidInput("body", "is not a JSON object")
        case _:
            return InvalidInput(field, fault["msg"])
