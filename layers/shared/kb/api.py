"""HTTP in and out: the question in a request, replies, and the one table of errors."""

import base64
import binascii
import codecs
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
from kb.errors import InvalidInput, KbError, NotFound, TooLarge, Unavailable

RETRY_AFTER_SECONDS = 5
"""When a caller may try again what did not answer."""
NAME_LENGTH_MOST = 1024
"""Characters of a section title or domain; headings and keys are shorter."""
PART_MOST = 1_000_000
"""More parts no document has."""
ECHO_LENGTH_MOST = 64
"""Characters of an unknown field's name in an error."""


def _blank_is_absent(value: object) -> object:
    return None if isinstance(value, str) and not value.strip() else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _either(name: str) -> AliasChoices:
    """The name as it is and its camelCase spelling."""
    return AliasChoices(name, _camel(name))


Text = Annotated[StrictStr | None, BeforeValidator(_blank_is_absent)]
Name = Annotated[
    Annotated[StrictStr, Field(max_length=NAME_LENGTH_MOST)] | None,
    BeforeValidator(_blank_is_absent),
]
Flag = Annotated[StrictBool | None, BeforeValidator(_blank_is_absent)]
Number = Annotated[
    Annotated[StrictInt, Field(ge=1, le=PART_MOST)] | None, BeforeValidator(_blank_is_absent)
]


class LookupRequest(BaseModel):
    """Body of POST /lookup."""

    model_config = ConfigDict(extra="forbid")

    query: StrictStr
    section_title: Name = Field(None, validation_alias=_either("section_title"))
    part: Number = None
    session_id: Text = Field(None, validation_alias=_either("session_id"))
    domain: Name = None
    force: Flag = None
    request_id: Text = Field(None, validation_alias=_either("request_id"))


FIELDS = {_camel(name): name for name in LookupRequest.model_fields}
"""Names of fields by their camelCase spelling."""


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
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        request = LookupRequest.model_validate_json(data)
    except ValidationError as error:
        raise _first_fault(error) from error
    _refuse_repeated(name for name, _ in json.loads(data, object_pairs_hook=list))
    for name in ("session_id", "request_id"):
        value = getattr(request, name)
        if value is not None:
            check_id(name, value, id_length)
    domain = request.domain.strip() if request.domain else None
    values = request.model_dump() | {"force": bool(request.force), "domain": domain}
    return Question(**values)


def check_id(name: str, value: str, most: int) -> str:
    """The id if it has 1 to `most` characters, any. Raises InvalidInput."""
    if not value.strip():
        raise InvalidInput(name, "is missing or blank")
    if len(value) > most:
        raise InvalidInput(name, f"has {len(value):,} characters; at most {most} are taken")
    return value


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
            return _refusal(503, f"{error.what}_unavailable", sentence, request_id)
        case None:
            sentence = "something failed that should not have"
            return _refusal(500, "internal_error", sentence, request_id)
        case _:
            sentence = "the service is set up wrongly; its owner finds the cause in its log"
            return _refusal(503, "misconfigured", sentence, request_id)


def _refusal(status: int, code: str, sentence: str, request_id: str) -> Reply:
    error = {"code": code, "message": sentence, "requestId": request_id}
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)} if status == 503 else None
    return Reply(status, json.dumps({"error": error}, ensure_ascii=False), headers=headers)


def _bytes_of(body: str | None, is_base64: bool) -> bytes:
    if not body:
        raise InvalidInput("body", "is missing; send a JSON object with a query")
    try:
        return base64.b64decode(body, validate=True) if is_base64 else body.encode()
    except (binascii.Error, ValueError) as error:
        raise InvalidInput("body", "is not valid base64 or not valid text") from error


def _refuse_repeated(names: Iterable[str]) -> None:
    """A field given twice, in one spelling or both, may mean either of its values."""
    seen: set[str] = set()
    for name in names:
        field = FIELDS.get(name, name)
        if field in seen:
            raise InvalidInput(field, "is given twice")
        seen.add(field)


def _first_fault(error: ValidationError) -> InvalidInput:
    fault: dict[str, Any] = {**error.errors(include_input=False, include_url=False)[0]}
    field = ".".join(map(str, fault["loc"]))
    match fault["type"]:
        case "extra_forbidden":
            known = ", ".join(LookupRequest.model_fields)
            name = field[:ECHO_LENGTH_MOST] or '""'
            return InvalidInput(name, f"is no field; the fields are {known}")
        case "json_invalid":
            reason = fault["msg"].removeprefix("Invalid JSON: ")
            return InvalidInput("body", f"is not valid JSON ({reason})")
        case "model_type" | "model_attributes_type":
            return InvalidInput("body", "is not a JSON object")
        case "missing":
            return InvalidInput(field, "is missing")
        case _:
            return InvalidInput(FIELDS.get(field, field), fault["msg"])
