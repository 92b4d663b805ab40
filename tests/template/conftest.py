"""The template as CloudFormation gets it: translated by SAM's translator, references resolved."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import pytest
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

ROOT = Path(__file__).parents[2]
ABSENT = object()
PSEUDO = {
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": "eu-west-1",
    "AWS::StackName": "kb",
    "AWS::URLSuffix": "amazonaws.com",
    "AWS::NoValue": ABSENT,
}


def read_source() -> dict[str, Any]:
    source: dict[str, Any] = yaml_parse((ROOT / "template.yaml").read_text(encoding="utf-8"))
    return source


@dataclass
class Stack:
    """What CloudFormation would make for these parameters.

    `resources` keeps the intrinsic functions; `properties` resolves them, with `Name` for a
    reference to a resource and `Name.Attribute` for an attribute of it.
    """

    template: dict[str, Any]
    parameters: dict[str, str]
    resources: dict[str, dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        self.resources = {
            name: resource
            for name, resource in self.template["Resources"].items()
            if self._holds(resource.get("Condition"))
        }

    def properties(self, name: str) -> dict[str, Any]:
        resolved: dict[str, Any] = self.resolve(self.resources[name].get("Properties", {}))
        return resolved

    def of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        """Properties of all resources of this type, by logical id."""
        return {
            name: self.properties(name)
            for name, resource in self.resources.items()
            if resource["Type"] == kind
        }

    def environment(self, function: str) -> dict[str, str]:
        variables: dict[str, str] = self.properties(function)["Environment"]["Variables"]
        return variables

    def outputs(self) -> dict[str, str]:
        return {name: self.resolve(out["Value"]) for name, out in self.template["Outputs"].items()}

    def resolve(self, value: Any) -> Any:
        match value:
            case {"Ref": name}:
                return PSEUDO.get(name, self.parameters.get(name, name))
            case {"Fn::GetAtt": [name, attribute]}:
                return f"{name}.{attribute}"
            case {"Fn::GetAtt": str(path)}:
                return path
            case {"Fn::Sub": [text, names]}:
                return self._substitute(text, self.resolve(names))
            case {"Fn::Sub": text}:
                return self._substitute(text, {})
            case {"Fn::If": [condition, yes, no]}:
                return self.resolve(yes if self._holds(condition) else no)
            case {"Fn::Join": [separator, parts]}:
                parts = self.resolve(parts)
                return separator.join(parts.split(",") if isinstance(parts, str) else parts)
            case {"Fn::Split": [separator, text]}:
                return self.resolve(text).split(separator)
            case {"Fn::Select": [index, parts]}:
                parts = self.resolve(parts)
                return (parts.split(",") if isinstance(parts, str) else parts)[int(index)]
            case dict():
                pairs = ((key, self.resolve(item)) for key, item in value.items())
                return {key: item for key, item in pairs if item is not ABSENT}
            case list():
                return [item for item in map(self.resolve, value) if item is not ABSENT]
        return value

    def _substitute(self, text: str, names: dict[str, Any]) -> str:
        pieces = text.split("${")
        done = pieces[0]
        for piece in pieces[1:]:
            name, _, rest = piece.partition("}")
            done += str(names.get(name, self.resolve({"Ref": name}))) + rest
        return done

    def _holds(self, condition: Any) -> bool:
        match condition:
            case None:
                return True
            case str():
                return self._holds(self.template["Conditions"][condition])
            case {"Condition": name}:
                return self._holds(name)
            case {"Fn::Not": [other]}:
                return not self._holds(other)
            case {"Fn::Or": others}:
                return any(map(self._holds, others))
            case {"Fn::And": others}:
                return all(map(self._holds, others))
            case {"Fn::Equals": [left, right]}:
                return str(self.resolve(left)) == str(self.resolve(right))
        raise AssertionError(f"unknown condition {condition}")


@cache
def translate(parameters: tuple[tuple[str, str], ...]) -> Stack:
    source = read_source()
    for resource in source["Resources"].values():
        for uri in {"CodeUri", "ContentUri"} & resource.get("Properties", {}).keys():
            resource["Properties"][uri] = f"s3://artifacts/{resource['Properties'][uri]}"
    defaults = {name: str(each["Default"]) for name, each in source["Parameters"].items()}
    assert dict(parameters).keys() <= defaults.keys()
    session = boto3.Session(region_name=PSEUDO["AWS::Region"])
    translated = Translator({}, Parser(), boto_session=session).translate(
        source, parameter_values={"AWS::Region": PSEUDO["AWS::Region"], **dict(parameters)}
    )
    return Stack(translated, defaults | dict(parameters))


@pytest.fixture(scope="session")
def deploy() -> Callable[..., Stack]:
    """deploy(Parameter="value", ...): the stack that is made from these parameters."""
    return lambda **parameters: translate(tuple(sorted(parameters.items())))


@pytest.fixture(scope="session")
def stack(deploy: Callable[..., Stack]) -> Stack:
    """The stack that is made from the default parameters."""
    return deploy()


@pytest.fixture(scope="session")
def source() -> dict[str, Any]:
    """template.yaml as it is written."""
    return read_source()
