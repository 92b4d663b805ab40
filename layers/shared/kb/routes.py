"""What each route of the API does, whatever carries the request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from kb import api, views
from kb.answers import as_json
from kb.documents import Outline
from kb.errors import InvalidInput, NotFound, Unavailable
from kb.health import health_of
from kb.wiring import LookupParts

ATTEMPTS = 2
"""Tries where a document changes between its row and its outline."""
KEY_BYTES_MOST = 1024
"""Of an S3 object."""
LANGUAGES = ("zh", "en")


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, its caller known."""

    caller: str
    parameters: Mapping[str, str]
    """Of the query string, decoded."""
    body: str | None
    is_base64: bool

    def parameter(self, name: str) -> str:
        """As it was sent; "" where it was not. Raises InvalidInput where it is no text."""
        value = self.parameters.get(name) or ""
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(name, "is not valid text") from error
        return value


def lookup(parts: LookupParts, request: Request) -> api.Reply:
    question = api.question_of(
        request.body,
        request.is_base64,
        body_bytes=parts.settings.body_bytes,
        id_length=parts.settings.session_id_length,
    )
    return api.ok(as_json(parts.lookup.answer(question, request.caller)))


def documents(parts: LookupParts, request: Request) -> api.Reply:
    status = views.status_of(request.parameter("status").strip())
    domain, token = request.parameter("domain").strip(), request.parameter("next").strip()
    parts.catalog.refresh()
    page = views.document_page(parts.catalog, parts.documents, status, domain, token)
    return api.ok(page)


def document(parts: LookupParts, request: Request) -> api.Reply:
    key = request.parameter("key")
    if not key:
        raise InvalidInput("key", "is missing or blank")
    if len(key.encode()) > KEY_BYTES_MOST:
        raise InvalidInput("key", f"has more than {KEY_BYTES_MOST:,} bytes, which no key has")
    parts.catalog.refresh()
    return api.ok(_document(parts, key))


def domains(parts: LookupParts, request: Request) -> api.Reply:
    parts.catalog.refresh()
    return api.ok(views.domains(parts.catalog))


def session(parts: LookupParts, request: Request) -> api.Reply:
    session_id = _session_id(parts, request)
    contents = parts.sessions(request.caller).read(session_id)
    return api.ok(views.session(session_id, contents))


def clear_session(parts: LookupParts, request: Request) -> api.Reply:
    session_id = _session_id(parts, request)
    parts.sessions(request.caller).clear_session(session_id)
    return api.ok({"sessionId": session_id, "cleared": True})


def health(parts: LookupParts, request: Request) -> api.Reply:
    return api.ok(health_of(parts))


def executor_prompt(parts: LookupParts, request: Request) -> api.Reply:
    language = request.parameter("language").strip() or parts.settings.language
    if language not in LANGUAGES:
        raise InvalidInput("language", f"is none of {', '.join(LANGUAGES)}")
    prompt = files("kb").joinpath("prompts", f"executor.{language}.md")
    return api.Reply(200, prompt.read_text("utf-8"), "text/markdown; charset=utf-8")


ROUTES: Mapping[tuple[str, str], Callable[[LookupParts, Request], api.Reply]] = {
    ("POST", "/lookup"): lookup,
    ("GET", "/documents"): documents,
    ("GET", "/document"): document,
    ("GET", "/domains"): domains,
    ("GET", "/session"): session,
    ("DELETE", "/session"): clear_session,
    ("GET", "/health"): health,
    ("GET", "/prompts/executor"): executor_prompt,
}


def _document(parts: LookupParts, key: str) -> dict[str, Any]:
    for _ in range(ATTEMPTS):
        row = parts.documents.read(key)
        if row is None:
            raise NotFound("no document has this key")
        if row.served is None:
            return views.document(row, Outline(0), {}, parts.catalog)
        if found := parts.content.read_outline(key, row.served):
            return views.document(row, *found, parts.catalog)
    raise Unavailable("content", "the document keeps changing")


def _session_id(parts: LookupParts, request: Request) -> str:
    return api.check_id("id", request.parameter("id"), parts.settings.session_id_length)
