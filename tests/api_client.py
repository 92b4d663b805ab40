"""Requests to the lookup handler, as API Gateway makes them."""

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kb.local.functions import Context, handler_of
from kb.wiring import LookupParts

EVENT = json.loads(
    (Path(__file__).parents[1] / "events/api_lookup.json").read_text(encoding="utf-8")
)


@dataclass(frozen=True, slots=True)
class HttpReply:
    """What the caller gets."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def error(self) -> tuple[int, str, str]:
        """Status, code and message; the body has nothing beside them but the request's id."""
        error = self.json["error"]
        assert error.keys() == {"code", "message", "requestId"}
        assert self.json.keys() == {"error"}
        return self.status, error["code"], error["message"]


class ApiClient:
    """The handler of functions/lookup over the given parts; one call at a time."""

    def __init__(self, parts: LookupParts) -> None:
        self.parts = parts
        self._handler = handler_of("lookup")
        self._handler.__globals__["lookup_parts"] = lambda: self.parts  # type: ignore[attr-defined]

    def call(
        self,
        method: str,
        path: str,
        *,
        caller: str | None = "caller",
        parameters: dict[str, str] | None = None,
        body: str | bytes | None = None,
    ) -> HttpReply:
        """`body` as bytes is sent as base64."""
        event = json.loads(json.dumps(EVENT)) | {
            "resource": path,
            "path": path,
            "httpMethod": method,
            "queryStringParameters": parameters,
            "multiValueQueryStringParameters": {k: [v] for k, v in (parameters or {}).items()},
            "body": base64.b64encode(body).decode() if isinstance(body, bytes) else body,
            "isBase64Encoded": isinstance(body, bytes),
        }
        event["headers"]["Origin"] = "https://console.example"
        event["multiValueHeaders"]["Origin"] = ["https://console.example"]
        event["requestContext"] |= {"path": f"/v1{path}", "httpMethod": method}
        event["requestContext"]["identity"]["apiKeyId"] = caller
        answer = self._handler(event, Context("lookup"))
        json.dumps(answer).encode()  # as Lambda does
        headers = {name: ", ".join(v) for name, v in answer["multiValueHeaders"].items()}
        return HttpReply(answer["statusCode"], headers, answer["body"])

    def get(self, path: str, caller: str = "caller", **parameters: str) -> HttpReply:
        return self.call("GET", path, caller=caller, parameters=parameters or None)

    def delete(self, path: str, caller: str = "caller", **parameters: str) -> HttpReply:
        return self.call("DELETE", path, caller=caller, parameters=parameters or None)

    def post(self, body: str | bytes | None, caller: str = "caller") -> HttpReply:
        return self.call("POST", "/lookup", caller=caller, body=body)

    def ask(self, query: str, caller: str = "caller", **fields: Any) -> Any:
        """The answer's JSON."""
        reply = self.post(json.dumps({"query": query, **fields}), caller)
        assert reply.status == 200, reply.text
        return reply.json
