"""API Gateway's events in, HTTP replies out; kb.routes says what each route does."""

import logging
import os
from collections.abc import Callable
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, CORSConfig, Response
from kb import api
from kb.errors import KbError, Misconfigured, NotFound
from kb.routes import ROUTES, Request
from kb.wiring import LookupParts, lookup_parts, warm_up

logger = logging.getLogger(__name__)
app = APIGatewayRestResolver(cors=CORSConfig(allow_origin="*"))


if "AWS_LAMBDA_INITIALIZATION_TYPE" in os.environ:
    warm_up()  # in Lambda before the first request, or before the snapshot


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one REST proxy event; whatever fails is answered in our JSON."""
    return app.resolve(event, context)


def _serve(action: Callable[[LookupParts, Request], api.Reply]) -> Callable[[], Response[str]]:
    def respond() -> Response[str]:
        event = app.current_event
        request = Request(
            caller=event.request_context.identity.api_key_id or "local",
            parameters=event.query_string_parameters or {},
            body=event.body,
            is_base64=bool(event.is_base64_encoded),
        )
        return _response(action(lookup_parts(), request))

    return respond


for (method, path), action in ROUTES.items():
    app.route(path, method=method)(_serve(action))


@app.not_found
def no_route(_: Exception) -> Response[str]:
    return _failed(NotFound("there is no such route or method"))


@app.exception_handler(KbError)
def refused(error: KbError) -> Response[str]:
    level = logging.ERROR if isinstance(error, Misconfigured) else logging.INFO
    logger.log(level, "request_refused", extra={"cause": str(error)})
    return _failed(error)


@app.exception_handler(Exception)
def failed(error: Exception) -> Response[str]:
    logger.error("request_failed", exc_info=error)
    return _failed(None)


def _failed(error: KbError | None) -> Response[str]:
    return _response(api.error_reply(error, app.current_event.request_context.request_id))


def _response(reply: api.Reply) -> Response[str]:
    return Response(reply.status, reply.content_type, reply.body, reply.headers)
