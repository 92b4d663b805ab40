"""What each route of the API does, whatever carries the request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kb import api
from kb.answers import as_json
from kb.health import health_of
from kb.wiring import LookupParts


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, its caller known."""

    caller: str
    parameters: Mapping[str, str]
    """Of the query string, decoded."""
    body: str | None
    is_base64: bool

    def parameter(self, name: str) -> str:
        return self.parameters.get(name, "").strip()


def lookup(parts: LookupParts, request: Request) -> api.Reply:
    question = api.question_of(
        request.body,
        request.is_base64,
        body_bytes=parts.settings.body_bytes,
        id_length=parts.settings.session_id_length,
    )
    return api.ok(as_json(parts.lookup.answer(question, request.caller)))


def documents(parts: LookupParts, request: Request) -> api.Reply:
    status = api.status_of(request.parameter("status"))
    rows, token = parts.documents.page(
        api.PAGE_ROWS, request.parameter("next"), status, request.parameter("domain")
    )
    return api.ok({"documents": [*map(api.described, rows)], "next": token or None})


def session(parts: LookupParts, request: Request) -> api.Reply:
    session_id = _session_id(parts, request)
    contents = parts.sessions(request.caller).read(session_id)
    return api.ok(api.session_as_json(session_id, contents))


def clear_session(parts: LookupParts, request: Request) -> api.Reply:
    session_id = _session_id(parts, request)
    parts.sessions(request.caller).clear_session(session_id)
    return api.ok({"sessionId": session_id, "cleared": True})


def health(parts: LookupParts, request: Request) -> api.Reply:
    return api.ok(health_of(parts))


ROUTES: Mapping[tuple[str, str], Callable[[LookupParts, Request], api.Reply]] = {
    ("POST", "/lookup"): lookup,
    ("GET", "/documents"): documents,
    ("GET", "/session"): session,
    ("DELETE", "/session"): clear_session,
    ("GET", "/health"): health,
}


def _session_id(parts: LookupParts, request: Request) -> str:
    return api.check_id(
        "id", request.parameters.get("id", ""), parts.settings.session_id_length
    )
