"""Somebody is told when documents, questions or the index are in trouble."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

ALARMS = {
    "IngestDeadLetterDepthAlarm": ("ApproximateNumberOfMessagesVisible", "Maximum", ">", 0),
    "IngestDeadLetterAgeAlarm": ("ApproximateAgeOfOldestMessage", "Maximum", ">", 864000),
    "IngestQueueAgeAlarm": ("ApproximateAgeOfOldestMessage", "Maximum", ">", 900),
    "IngestErrorsAlarm": ("Errors", "Sum", ">", 0),
    "FailedEventsAlarm": ("ApproximateNumberOfMessagesVisible", "Maximum", ">", 0),
    "LookupErrorsAlarm": ("5XXError", "Sum", ">", 5),
    "LookupFunctionErrorsAlarm": ("Errors", "Sum", ">", 0),
    "DocumentsFailedAlarm": ("DocumentsFailed", "Sum", ">", 0),
    "InvocationsNotLoggedAlarm": ("InvocationsNotLogged", "Sum", ">", 0),
    "SemanticSearchesFailedAlarm": ("SemanticSearchesFailed", "Sum", ">", 5),
    "LookupSlowAlarm": ("Latency", "p99", ">", "3000"),
    "DomainRedAlarm": ("ClusterStatus.red", "Maximum", ">", 0),
    "DomainDiskAlarm": ("FreeStorageSpace", "Minimum", "<", 2048),
}

WATCHED = {
    "IngestDeadLetterDepthAlarm": {"QueueName": "IngestDeadLetterQueue.QueueName"},
    "IngestDeadLetterAgeAlarm": {"QueueName": "IngestDeadLetterQueue.QueueName"},
    "IngestQueueAgeAlarm": {"QueueName": "IngestQueue.QueueName"},
    "IngestErrorsAlarm": {"FunctionName": "IngestFunction"},
    "FailedEventsAlarm": {"QueueName": "FailedEventsQueue.QueueName"},
    "LookupErrorsAlarm": {"ApiName": "kb-lookup", "Stage": "v1"},
    "LookupFunctionErrorsAlarm": {"FunctionName": "LookupFunction"},
    "LookupSlowAlarm": {"ApiName": "kb-lookup", "Stage": "v1"},
    "DomainRedAlarm": {"DomainName": "OpenSearchDomain", "ClientId": "123456789012"},
    "DomainDiskAlarm": {"DomainName": "OpenSearchDomain", "ClientId": "123456789012"},
}

COUNTED = {
    "DocumentsFailed": (
        "IngestLogs",
        '{ ($.message = "document_ingested" && $.status = "failed")'
        ' || $.message = "ingest_crashed" }',
    ),
    "InvocationsNotLogged": ("LookupLogs", '{ $.message = "invocation_not_logged" }'),
    "SemanticSearchesFailed": ("LookupLogs", '{ $.message = "semantic search failed" }'),
}

SIGNS = {"GreaterThanThreshold": ">", "LessThanThreshold": "<"}


def test_these_things_raise_an_alarm(stack):
    alarms = stack.of_type("AWS::CloudWatch::Alarm")
    assert {
        name: (
            each["MetricName"],
            each.get("Statistic") or each.get("ExtendedStatistic"),
            SIGNS[each["ComparisonOperator"]],
            each["Threshold"],
        )
        for name, each in alarms.items()
    } == ALARMS


def test_each_alarm_watches_what_it_names(stack):
    assert {
        name: {each["Name"]: each["Value"] for each in alarm["Dimensions"]}
        for name, alarm in stack.of_type("AWS::CloudWatch::Alarm").items()
        if alarm["Namespace"].startswith("AWS/")
    } == WATCHED
    assert stack.properties("LookupApi")["Name"] == WATCHED["LookupErrorsAlarm"]["ApiName"]


def test_failures_that_only_the_functions_know_are_counted_from_their_logs(stack):
    filters = stack.of_type("AWS::Logs::MetricFilter")
    assert {
        name: (each["LogGroupName"], each["FilterPattern"]) for name, each in filters.items()
    } == COUNTED
    own = {
        (each["Namespace"], each["MetricName"])
        for each in stack.of_type("AWS::CloudWatch::Alarm").values()
        if not each["Namespace"].startswith("AWS/")
    }
    counted = {
        (each["MetricNamespace"], each["MetricName"])
        for each in (found["MetricTransformations"][0] for found in filters.values())
    }
    assert own == counted == {("kb/kb", name) for name in COUNTED}


def test_what_is_counted_is_what_the_functions_say():
    folders = (ROOT / "functions", ROOT / "layers" / "shared" / "kb")
    code = "".join(
        path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py")
    )
    counted = " ".join(pattern for _, pattern in COUNTED.values())
    events = re.findall(r'message = "([^"]+)"', counted)
    assert len(events) == 4
    assert [event for event in events if f'"{event}"' not in code] == []


def test_quiet_is_no_alarm_and_every_alarm_says_what_it_means(stack):
    for alarm in stack.of_type("AWS::CloudWatch::Alarm").values():
        assert alarm["TreatMissingData"] == "notBreaching"
        assert alarm["AlarmDescription"].endswith(".")


def test_alarms_go_to_the_address_given_and_nowhere_without_one(deploy):
    told = deploy(AlarmEmail="owner@example.com")
    assert told.properties("AlarmTopic") == {
        "Subscription": [{"Protocol": "email", "Endpoint": "owner@example.com"}]
    }
    for stack, actions in ((told, ["AlarmTopic"]), (deploy(), [])):
        alarms = stack.of_type("AWS::CloudWatch::Alarm").values()
        assert [each["AlarmActions"] for each in alarms] == [actions] * len(ALARMS)
        assert [each["OKActions"] for each in alarms] == [actions] * len(ALARMS)


def test_an_existing_domain_is_watched_by_its_owner(deploy):
    stack = deploy(OpenSearchEndpoint="https://search.example")
    alarms = stack.of_type("AWS::CloudWatch::Alarm")
    assert ALARMS.keys() - alarms.keys() == {"DomainRedAlarm", "DomainDiskAlarm"}


@pytest.mark.parametrize(
    ("arn", "name"),
    [
        ("", "EmbeddingFunction"),
        ("arn:aws:lambda:eu-west-1:123456789012:function:embedder", "embedder"),
        ("arn:aws:lambda:eu-west-1:123456789012:function:embedder:live", "embedder"),
    ],
    ids=["made", "existing", "alias"],
)
def test_the_dashboard_is_json_and_shows_the_embedding_function_that_is_used(deploy, arn, name):
    widgets = json.loads(deploy(EmbeddingFunctionArn=arn).properties("Dashboard")["DashboardBody"])[
        "widgets"
    ]
    titles = [each["properties"]["title"] for each in widgets]
    assert titles == [
        "Requests and failures",
        "Latency of requests (ms)",
        "Lookup function",
        "Documents waiting",
        "Ingest function",
        "Embedding function",
    ]
    assert widgets[5]["properties"]["metrics"][0] == [
        "AWS/Lambda",
        "Invocations",
        "FunctionName",
        name,
    ]


def test_no_two_charts_overlap(stack):
    widgets = json.loads(stack.properties("Dashboard")["DashboardBody"])["widgets"]
    places = [(each["x"], each["y"]) for each in widgets]
    assert len(set(places)) == len(widgets)
    assert {(each["width"], each["height"]) for each in widgets} == {(8, 6)}
    assert all(x % 8 == 0 and y % 6 == 0 and x < 24 for x, y in places)
