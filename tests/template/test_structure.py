"""What holds for the template as a whole, and no linter reports."""

import json
from graphlib import CycleError, TopologicalSorter
from typing import Any

import pytest

INTERFACE = "AWS::CloudFormation::Interface"


def named_in(value: Any) -> set[str]:
    """Names that `value` refers to, in either branch of a condition."""
    match value:
        case {"Ref": str(name)}:
            return {name}
        case {"Fn::GetAtt": [name, _]}:
            return {name}
        case {"Fn::Sub": [text, names]}:
            return (named_in({"Fn::Sub": text}) - set(names)) | named_in(names)
        case {"Fn::Sub": str(text)}:
            return {piece.partition("}")[0].partition(".")[0] for piece in text.split("${")[1:]}
        case dict():
            return set().union(*map(named_in, value.values()))
        case list():
            return set().union(*map(named_in, value))
    return set()


def needs(template: dict[str, Any]) -> dict[str, set[str]]:
    """Of each resource, the resources that must be made before it."""
    resources = template["Resources"]
    waits = {
        name: {each["DependsOn"]}
        if isinstance(each.get("DependsOn"), str)
        else set(each.get("DependsOn", ()))
        for name, each in resources.items()
    }
    return {
        name: (named_in(each.get("Properties", {})) & resources.keys()) | waits[name]
        for name, each in resources.items()
    }


def test_no_resource_waits_for_itself(stack):
    order = list(TopologicalSorter(needs(stack.template)).static_order())
    assert set(order) == stack.template["Resources"].keys()
    assert order.index("IngestQueuePolicy") < order.index("KnowledgeBucket")


def test_a_cycle_through_a_policy_is_seen():
    looped = {
        "Bucket": {"Properties": {"Queue": {"Fn::GetAtt": ["Queue", "Arn"]}}},
        "Queue": {"DependsOn": "Policy"},
        "Policy": {"Properties": {"Source": {"Fn::Sub": "${Bucket.Arn}/*"}}},
    }
    with pytest.raises(CycleError):
        TopologicalSorter(needs({"Resources": looped})).prepare()


def test_every_reference_leads_somewhere(stack):
    known = stack.template["Resources"].keys() | stack.template["Parameters"].keys()
    named = named_in(stack.template["Resources"]) | named_in(stack.template["Outputs"])
    assert {name for name in named if not name.startswith("AWS::")} <= known


def test_no_resource_that_is_made_needs_one_that_is_not(deploy):
    bring_your_own = {
        "EmbeddingFunctionArn": "arn:aws:lambda:eu-west-1:123456789012:function:embedder",
        "OpenSearchEndpoint": "https://search.example",
    }
    for parameters in ({}, bring_your_own, {"SubnetIds": "subnet-1", "SecurityGroupIds": "sg-1"}):
        stack = deploy(**parameters)
        absent = stack.template["Resources"].keys() - stack.resources.keys()
        made = json.dumps([stack.properties(name) for name in stack.resources])
        assert [name for name in absent if name in made] == []


def test_every_parameter_has_a_description_a_default_and_a_place_on_the_screen(source):
    parameters = source["Parameters"]
    assert [name for name, each in parameters.items() if not each.get("Description")] == []
    assert [name for name, each in parameters.items() if "Default" not in each] == []
    groups = source["Metadata"][INTERFACE]["ParameterGroups"]
    shown = [name for group in groups for name in group["Parameters"]]
    assert sorted(shown) == sorted(parameters)


def test_every_parameter_is_used(source):
    used = named_in(source["Resources"]) | named_in(source["Globals"])
    used |= named_in(source["Conditions"])
    assert source["Parameters"].keys() - used == set()


def test_without_an_embedding_function_or_image_nothing_is_made(source):
    (assertion,) = source["Rules"]["EmbeddingIsGiven"]["Assertions"]
    assert assertion["Assert"] == {
        "Fn::Not": [
            {
                "Fn::And": [
                    {"Fn::Equals": [{"Ref": "EmbeddingFunctionArn"}, ""]},
                    {"Fn::Equals": [{"Ref": "EmbeddingImageUri"}, ""]},
                ]
            }
        ]
    }


def test_outputs_are_what_a_user_needs(stack):
    assert stack.outputs() == {
        "ApiUrl": "https://LookupApi.execute-api.eu-west-1.amazonaws.com/v1",
        "ApiKeyId": "LookupApiApiKey",
        "KnowledgeBucketName": "KnowledgeBucket",
        "IngestDeadLetterQueueUrl": "IngestDeadLetterQueue",
        "DashboardUrl": "https://eu-west-1.console.aws.amazon.com/cloudwatch/home"
        "?region=eu-west-1#dashboards/dashboard/Dashboard",
    }
