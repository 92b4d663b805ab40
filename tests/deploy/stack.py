"""The deployed stack as its users, its owner and its AWS account see it."""

import io
import json
import time
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

import boto3
import urllib3

from tests.deploy.index import Index
from tests.deploy.ministack import MiniStack

T = TypeVar("T")
EMBEDDER = "embedder"
PATIENCE = 180
"""Seconds until a wait is given up; what is waited for takes a few, or tens where all is cold."""
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "lambda.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
    ],
}


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def code(self) -> str:
        """Of an error."""
        return str(self.body["error"]["code"])


def until(look: Callable[[], T], is_there: Callable[[T], object] = bool, pause: float = 0.1) -> T:
    """What `look` sees once it is there. Raises AssertionError with the last sight otherwise."""
    give_up = time.monotonic() + PATIENCE
    while not is_there(seen := look()):
        if time.monotonic() > give_up:
            raise AssertionError(f"still not there after {PATIENCE} s: {str(seen)[:2000]}")
        time.sleep(pause)
    return seen


def make_function(cloud: MiniStack, name: str, source: Path | str) -> str:
    """A function of one file without layers, and its role; the ARN."""
    iam, functions = cloud_client(cloud, "iam"), cloud_client(cloud, "lambda")
    role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]
    made = functions.create_function(
        FunctionName=name,
        Role=role["Arn"],
        Runtime="python3.13",
        Handler="app.handler",
        Code={"ZipFile": zipped(source)},
        Timeout=30,
    )
    return str(made["FunctionArn"])


def zipped(source: Path | str) -> bytes:
    """A function's code of one file, app.py."""
    text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("app.py", text)
    return data.getvalue()


def cloud_client(cloud: MiniStack, service: str) -> Any:
    return boto3.client(
        service,
        endpoint_url=cloud.endpoint,
        verify=str(cloud.certificate),
        region_name=cloud.environment["AWS_REGION"],
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )


@dataclass
class Stack:
    """One stack; `name` is the one that it was deployed under.

    `on_change` is called whenever policies changed.
    """

    cloud: MiniStack
    name: str
    index: Index
    on_change: Callable[[], None]
    outputs: dict[str, str] = field(init=False)
    resources: dict[str, str] = field(init=False)
    """Physical id by logical id."""
    key: str = field(init=False)
    """The API key that the stack made."""

    def __post_init__(self) -> None:
        self._clients: dict[str, Any] = {}
        self._http = urllib3.PoolManager(ca_certs=str(self.cloud.certificate), retries=False)
        self.read()

    def read(self) -> None:
        """Look anew at what the stack is made of, and mend what MiniStack makes wrong of it."""
        formation = self.client("cloudformation")
        (found,) = formation.describe_stacks(StackName=self.name)["Stacks"]
        self.outputs = {each["OutputKey"]: each["OutputValue"] for each in found["Outputs"]}
        listed = formation.describe_stack_resources(StackName=self.name)["StackResources"]
        self.resources = {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in listed}
        answer = self.client("apigateway").get_api_key(
            apiKey=self.outputs["ApiKeyId"], includeValue=True
        )
        self.key = answer["value"]
        # The template's number arrives there as a string, which the poller cannot compare.
        self._event_source(ScalingConfig={"MaximumConcurrency": 3})

    def _event_source(self, **changes: object) -> None:
        functions = self.client("lambda")
        (mapping,) = functions.list_event_source_mappings()["EventSourceMappings"]
        functions.update_event_source_mapping(UUID=mapping["UUID"], **changes)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Nothing is taken from the queue."""
        self._event_source(Enabled=False)
        try:
            yield
        finally:
            self._event_source(Enabled=True)

    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = cloud_client(self.cloud, service)
        return self._clients[service]

    # ------------------------------------------------------------------------------- documents
    @property
    def bucket(self) -> str:
        return self.outputs["KnowledgeBucketName"]

    def put(self, key: str, text: str | bytes) -> None:
        data = text.encode() if isinstance(text, str) else text
        self.client("s3").put_object(Bucket=self.bucket, Key=key, Body=data)

    def delete(self, key: str) -> None:
        self.client("s3").delete_object(Bucket=self.bucket, Key=key)

    def rename(self, old: str, new: str) -> None:
        """As `aws s3 mv` does it."""
        source = {"Bucket": self.bucket, "Key": old}
        self.client("s3").copy_object(Bucket=self.bucket, Key=new, CopySource=source)
        self.delete(old)

    # --------------------------------------------------------------------------------- the API
    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        api_key: str | None = "",
        **parameters: str,
    ) -> Reply:
        """`api_key` "" is the stack's own, None is none."""
        query = "&".join(f"{name}={quote(value, '')}" for name, value in parameters.items())
        gateway = self.resources["LookupApi"]
        url = f"{self.cloud.endpoint}/_aws/execute-api/{gateway}/v1{path}?{query}"
        headers = {} if api_key is None else {"x-api-key": api_key or self.key}
        sent = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        answer = self._http.request(method, url.rstrip("?"), body=sent, headers=headers)
        text = answer.data.decode()
        is_json = "json" in answer.headers.get("content-type", "")
        return Reply(answer.status, json.loads(text) if is_json else text, answer.headers)

    def ask(self, query: str, api_key: str = "", **fields: object) -> Reply:
        return self.call("POST", "/lookup", {"query": query, **fields}, api_key)

    def documents(self, domain: str = "") -> dict[str, dict[str, Any]]:
        """By key, what GET /documents says of them, all pages of it."""
        found: dict[str, dict[str, Any]] = {}
        token = ""
        while True:
            page = self.call("GET", "/documents", domain=domain, next=token)
            assert page.status == 200, page
            found |= {each["key"]: each for each in page.body["documents"]}
            token = page.body["next"]
            if not token:
                return found

    def document(self, key: str) -> Reply:
        return self.call("GET", "/document", key=key)

    def until_indexed(self, *keys: str) -> None:
        """Wait until these documents, and all others of their domains, are indexed."""
        domains = {key.partition("/")[0] for key in keys}

        def statuses() -> dict[str, str]:
            listed = [row for domain in domains for row in self.documents(domain).values()]
            return {row["key"]: row["status"] for row in listed}

        pause = len(keys) / 100  # looking takes time from those who work
        until(statuses, lambda seen: all(seen.get(key) == "indexed" for key in keys), pause)

    def until_gone(self, key: str) -> None:
        domain = key.partition("/")[0]
        until(lambda: self.documents(domain), lambda listed: key not in listed)

    # ------------------------------------------------------------------------------- functions
    def invoke(self, function: str, event: object) -> Any:
        """The answer of the function with this logical id. Raises FunctionFailed."""
        answer = self.client("lambda").invoke(
            FunctionName=self.resources[function], Payload=json.dumps(event).encode()
        )
        body = json.loads(answer["Payload"].read())
        if "FunctionError" in answer:
            raise FunctionFailed(str(body["errorMessage"]))
        return body

    def vector_of(self, text: str) -> list[float]:
        """As the embedding function has it."""
        payload = json.dumps({"texts": [text]}).encode()
        answer = self.client("lambda").invoke(FunctionName=EMBEDDER, Payload=payload)
        (vector,) = json.loads(answer["Payload"].read())["vectors"]
        return list(vector)

    def ingest(self, key: str) -> str:
        """Have the function look at this key at once; "", or what its log says it failed of."""
        started = time.time()
        message = sqs_record(str(uuid.uuid4()), json.dumps(notification(key)))
        if not self.invoke("IngestFunction", {"Records": [message]})["batchItemFailures"]:
            return ""
        return " ".join(line["cause"] for line in self.log("ingest", started) if "key" in line)

    def start_anew(self, function: str, **variables: str) -> None:
        """End the function's processes; the next call starts one, with these variables changed."""
        functions = self.client("lambda")
        name = self.resources[function]
        there = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
        functions.update_function_configuration(
            FunctionName=name, Environment={"Variables": there | variables}
        )

    def log(self, function: str, since: float) -> list[dict[str, Any]]:
        """What the function, such as "lookup", logged since that time (time.time), as JSON."""
        answer = self.client("logs").get_paginator("filter_log_events")
        pages = answer.paginate(
            logGroupName=f"/aws/lambda/{self.name}-{function}", startTime=int(since * 1000)
        )
        lines = [event["message"] for page in pages for event in page["events"]]
        return [json.loads(line) for line in lines if line.startswith("{")]

    @contextmanager
    def updated(self, **parameters: str) -> Iterator[None]:
        """The same template is deployed with other values of these parameters."""
        (there,) = self.client("cloudformation").describe_stacks(StackName=self.name)["Stacks"]
        before = {each["ParameterKey"]: each["ParameterValue"] for each in there["Parameters"]}
        self._update(before | parameters)
        try:
            yield
        finally:
            self._update(before)

    def _update(self, parameters: Mapping[str, str]) -> None:
        given = {**parameters, "CodeFingerprint": uuid.uuid4().hex}
        formation = self.client("cloudformation")
        formation.update_stack(
            StackName=self.name,
            UsePreviousTemplate=True,
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
            Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in given.items()],
        )
        formation.get_waiter("stack_update_complete").wait(
            StackName=self.name, WaiterConfig={"Delay": 1, "MaxAttempts": PATIENCE}
        )
        # A new fingerprint moves the alias. MiniStack translates the template without parameters.
        functions, lookup = self.client("lambda"), self.resources["LookupFunction"]
        version = functions.publish_version(FunctionName=lookup)["Version"]
        functions.update_alias(FunctionName=lookup, Name="live", FunctionVersion=version)
        self.read()
        self.on_change()

    # -------------------------------------------------------------------------------- policies
    def policies(self, role: str) -> dict[str, dict[str, Any]]:
        """Documents of the policies inside the role with this logical id, by name."""
        iam, name = self.client("iam"), self.resources[role]
        return {
            policy: iam.get_role_policy(RoleName=name, PolicyName=policy)["PolicyDocument"]
            for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]
        }

    @contextmanager
    def without(self, role: str, sid: str, action: str) -> Iterator[None]:
        """The role may not do this action of this statement."""
        with self.changed(role, lambda statement: without_action(statement, sid, action)):
            yield

    @contextmanager
    def changed(
        self, role: str, change: Callable[[dict[str, Any]], Iterable[dict[str, Any]]]
    ) -> Iterator[None]:
        """Each statement of the role is those that `change` makes of it."""
        iam, name = self.client("iam"), self.resources[role]
        before = self.policies(role)
        for policy, document in before.items():
            statements = [new for old in document["Statement"] for new in change(old)]
            iam.put_role_policy(
                RoleName=name,
                PolicyName=policy,
                PolicyDocument=json.dumps(document | {"Statement": statements}),
            )
        self.on_change()
        try:
            yield
        finally:
            for policy, document in before.items():
                iam.put_role_policy(
                    RoleName=name, PolicyName=policy, PolicyDocument=json.dumps(document)
                )
            self.on_change()


class FunctionFailed(Exception):
    """A function raised; its message."""


def without_action(statement: dict[str, Any], sid: str, action: str) -> Iterator[dict[str, Any]]:
    if statement["Sid"] != sid:
        yield statement
    elif left := [each for each in actions_of(statement) if each != action]:
        yield statement | {"Action": left}


def actions_of(statement: Mapping[str, Any]) -> list[str]:
    actions = statement["Action"]
    return [actions] if isinstance(actions, str) else list(actions)


def notification(*keys: str) -> dict[str, Any]:
    """What S3 says of these keys."""
    return {"Records": [{"s3": {"object": {"key": quote_plus(key)}}} for key in keys]}


def sqs_record(identifier: str, body: str, receipt: str = "unknown") -> dict[str, Any]:
    """A message as the event source hands it to the function."""
    return {
        "messageId": identifier,
        "receiptHandle": receipt,
        "body": body,
        "attributes": {"ApproximateReceiveCount": "1"},
        "eventSource": "aws:sqs",
    }
