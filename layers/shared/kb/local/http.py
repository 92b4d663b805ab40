"""HTTP on 127.0.0.1, each request taken to the lookup handler as API Gateway does."""

import base64
import json
import socket
import threading
import uuid
from collections.abc import Mapping
from typing import Any

from werkzeug.datastructures import Headers
from werkzeug.serving import BaseWSGIServer, make_server
from werkzeug.wrappers import Request, Response

from kb.local import CLOUD_PATH, DOCTOR_PATH
from kb.local.cloud import QuietRequests
from kb.local.examination import examined
from kb.local.functions import Context, Handler

BODY_MOST = 10 * 1024 * 1024
"""Bytes of a body that API Gateway passes on."""


class Gateway:
    """One call at a time: Powertools keeps the current event on a class, as one Lambda does.

    `cloud` is what GET /local/cloud answers.
    """

    def __init__(self, handler: Handler, cloud: Mapping[str, str]) -> None:
        self._handler = handler
        self._cloud = json.dumps(dict(cloud))
        self._lock = threading.Lock()

    def call(
        self,
        method: str,
        path: str,
        *,
        parameters: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body that a request gets. Header x-api-key names the caller."""
        event = _event(method, path, dict(parameters or {}), dict(headers or {}), body)
        with self._lock:
            answer = self._handler(event, Context("lookup"))
        several = answer.get("multiValueHeaders") or {}
        out = {name: ", ".join(values) for name, values in several.items()}
        text: str = answer.get("body") or ""
        data = base64.b64decode(text) if answer.get("isBase64Encoded") else text.encode()
        return answer["statusCode"], out | (answer.get("headers") or {}), data

    def serve(self, listener: socket.socket) -> BaseWSGIServer:
        """A server on a listening socket of 127.0.0.1, not yet serving."""
        host, port = listener.getsockname()
        return make_server(
            host,
            port,
            self._respond,
            threaded=True,
            request_handler=QuietRequests,
            fd=listener.fileno(),
        )

    def _respond(self, environ: Any, start_response: Any) -> Any:
        request = Request(environ)
        request.max_content_length = BODY_MOST
        if (request.method, request.path) == ("GET", CLOUD_PATH):
            return Response(self._cloud, mimetype="application/json")(environ, start_response)
        if (request.method, request.path) == ("POST", DOCTOR_PATH):
            lines = examined(repair="fix" in request.args)
            return Response(lines, mimetype="application/x-ndjson")(environ, start_response)
        status, headers, data = self.call(
            request.method,
            request.path,
            parameters=request.args.to_dict(),
            headers=dict(request.headers.items()),
            body=request.get_data(),
        )
        return Response(data, status, Headers(headers))(environ, start_response)


def _event(
    method: str,
    path: str,
    parameters: dict[str, str],
    headers: dict[str, str],
    body: bytes | None,
) -> dict[str, Any]:
    """A REST API's proxy event, format 1.0."""
    text, is_base64 = None, False
    if body:
        try:
            text = body.decode()
        except UnicodeDecodeError:
            text, is_base64 = base64.b64encode(body).decode(), True
    key = next((value for name, value in headers.items() if name.lower() == "x-api-key"), "local")
    return {
        "resource": path,
        "path": path,
        "httpMethod": method,
        "headers": headers,
        "multiValueHeaders": {name: [value] for name, value in headers.items()},
        "queryStringParameters": parameters or None,
        "multiValueQueryStringParameters": {n: [v] for n, v in parameters.items()} or None,
        "pathParameters": None,
        "stageVariables": None,
        "requestContext": {
            "requestId": str(uuid.uuid4()),
            "stage": "local",
            "path": path,
            "httpMethod": method,
            "identity": {"apiKeyId": key, "sourceIp": "127.0.0.1"},
        },
        "body": text,
        "isBase64Encoded": is_base64,
    }
