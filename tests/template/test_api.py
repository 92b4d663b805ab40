"""The API asks for a key, and speaks our JSON also where no function is reached."""

import json

import pytest
from kb.routes import ROUTES as ANSWERED

ROUTES = {
    "/lookup": {"post"},
    "/documents": {"get"},
    "/document": {"get"},
    "/session": {"get", "delete"},
    "/domains": {"get"},
    "/health": {"get"},
    "/prompts/executor": {"get"},
}

REFUSALS = {
    "DEFAULT_4XX": (None, "bad_request"),
    "DEFAULT_5XX": (None, "internal_error"),
    "MISSING_AUTHENTICATION_TOKEN": ("404", "not_found"),
    "INVALID_API_KEY": ("403", "forbidden"),
    "REQUEST_TOO_LARGE": ("413", "too_large"),
    "THROTTLED": ("429", "too_many_requests"),
    "QUOTA_EXCEEDED": ("429", "quota_exceeded"),
    "INTEGRATION_TIMEOUT": ("503", "service_unavailable"),
    "INTEGRATION_FAILURE": ("503", "service_unavailable"),
}

ORIGIN = "gatewayresponse.header.Access-Control-Allow-Origin"


@pytest.fixture
def body(stack):
    return stack.properties("LookupApi")["Body"]


def test_every_route_is_declared_and_no_other(body):
    declared = {path: set(methods) - {"options"} for path, methods in body["paths"].items()}
    assert declared == ROUTES


def test_every_declared_route_is_answered_and_every_answer_can_be_asked_for():
    declared = {(verb.upper(), path) for path, verbs in ROUTES.items() for verb in verbs}
    assert declared == ANSWERED.keys()


def test_every_call_goes_to_the_alias_and_asks_for_a_key(body):
    for path, methods in ROUTES.items():
        for method in methods:
            call = body["paths"][path][method]
            integration = call["x-amazon-apigateway-integration"]
            assert call["security"] == [{"api_key": []}]
            assert integration["type"] == "aws_proxy"
            assert "/LookupFunctionAliaslive/" in integration["uri"]


def test_preflight_asks_for_no_key_and_reaches_no_function(body):
    for path in ROUTES:
        preflight = body["paths"][path]["options"]
        integration = preflight["x-amazon-apigateway-integration"]
        assert "security" not in preflight
        assert integration["type"] == "mock"
        assert integration["responses"]["default"]["responseParameters"] == {
            "method.response.header.Access-Control-Allow-Origin": "'*'",
            "method.response.header.Access-Control-Allow-Methods": "'GET,POST,DELETE,OPTIONS'",
            "method.response.header.Access-Control-Allow-Headers": "'content-type,x-api-key'",
            "method.response.header.Access-Control-Max-Age": "'600'",
        }


def test_no_key_is_asked_for_where_the_template_did_not_say_so(body):
    assert "security" not in body
    assert body["components"]["securitySchemes"] == {
        "api_key": {"type": "apiKey", "name": "x-api-key", "in": "header"}
    }


def test_these_refusals_are_ours(body):
    assert body["x-amazon-apigateway-gateway-responses"].keys() == REFUSALS.keys()


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_refusal_of_the_gateway_is_our_json_and_readable_in_a_browser(body, kind):
    refusal = body["x-amazon-apigateway-gateway-responses"][kind]
    status, code = REFUSALS[kind]
    assert refusal.get("statusCode") == status
    assert refusal["responseParameters"][ORIGIN] == "'*'"
    answer = json.loads(refusal["responseTemplates"]["application/json"])
    assert answer["error"].pop("message")
    assert answer == {"error": {"code": code, "requestId": "$context.requestId"}}


@pytest.mark.parametrize(
    ("kind", "seconds"),
    [("THROTTLED", "'1'"), ("INTEGRATION_TIMEOUT", "'5'"), ("INTEGRATION_FAILURE", "'5'")],
)
def test_what_may_work_later_says_when(body, kind, seconds):
    headers = body["x-amazon-apigateway-gateway-responses"][kind]["responseParameters"]
    assert headers == {ORIGIN: "'*'", "gatewayresponse.header.Retry-After": seconds}


def test_one_key_one_plan_with_the_limits_asked_for(deploy):
    stack = deploy(ApiRate="7", ApiBurst="8", ApiQuota="9")
    assert stack.of_type("AWS::ApiGateway::UsagePlan") == {
        "LookupApiUsagePlan": {
            "ApiStages": [{"ApiId": "LookupApi", "Stage": "LookupApiv1Stage"}],
            "Throttle": {"RateLimit": "7", "BurstLimit": "8"},
            "Quota": {"Limit": "9", "Period": "DAY"},
        }
    }
    assert stack.properties("LookupApiUsagePlanKey") == {
        "KeyId": "LookupApiApiKey",
        "KeyType": "API_KEY",
        "UsagePlanId": "LookupApiUsagePlan",
    }


def test_there_is_one_stage_and_it_is_traced(stack):
    (stage,) = stack.of_type("AWS::ApiGateway::Stage").values()
    assert (stage["StageName"], stage["TracingEnabled"]) == ("v1", True)


def test_api_gateway_may_call_the_alias_for_each_declared_route(stack):
    may = {
        each["SourceArn"].partition("/*/")[2]
        for each in stack.of_type("AWS::Lambda::Permission").values()
        if each["Principal"] == "apigateway.amazonaws.com"
        and each["FunctionName"] == "LookupFunctionAliaslive"
    }
    assert may == {f"{verb.upper()}{path}" for path, verbs in ROUTES.items() for verb in verbs}
