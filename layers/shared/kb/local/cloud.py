"""AWS on this machine: moto behind 127.0.0.1, with what template.yaml declares."""

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import yaml
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

REGION = "us-east-1"


class MotoServer:
    """S3, SQS and DynamoDB on 127.0.0.1, gone with the process. `close` ends its thread."""

    def __init__(self) -> None:
        self._server = make_server(
            "127.0.0.1", 0, _one_at_a_time(), threaded=True, request_handler=QuietRequests
        )
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._session = boto3.Session("local", "local", region_name=REGION)
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        """A boto3 client of this server, one a service."""
        if service not in self._clients:
            self._clients[service] = self._session.client(service, endpoint_url=self.endpoint)
        return self._clients[service]

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class LocalCloud:
    """The tables, the queue and the bucket of one stack, made from the template."""

    def __init__(self, server: MotoServer, template: Path, stack: str = "kb") -> None:
        self.client = server.client
        self._endpoint = server.endpoint
        self._resources = _resources_of(template)
        self._stack = stack
        self._make_tables()
        self.queue_url = self._make_queue()
        self.bucket = self._make_bucket()

    @property
    def environment(self) -> dict[str, str]:
        """What a function needs to run against this cloud with the embedded model and index."""
        return {
            "AWS_ENDPOINT_URL": self._endpoint,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "CATALOG_TABLE": self._name("CatalogTable"),
            "CONTENT_TABLE": self._name("ContentTable"),
            "SESSION_TABLE": self._name("SessionTable"),
            "INVOCATION_TABLE": self._name("InvocationTable"),
            "KNOWLEDGE_BUCKET": self.bucket,
            "INGEST_QUEUE_URL": self.queue_url,
            "EMBEDDER": "embedded",
            "VECTOR_INDEX": "embedded",
            # moto answers one call at a time, and on a busy machine slowly; that is no outage.
            "TABLE_TIMEOUT": "60",
            "READ_TIMEOUT": "60",
            "ANSWER_TIMEOUT": "600",
        }

    def enter(self) -> None:
        """Make this process see this cloud only, whatever account the shell is set up for."""
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            del os.environ[name]
        os.environ.update(self.environment)
        os.environ["AWS_CONFIG_FILE"] = os.devnull
        os.environ["NO_PROXY"] = f"127.0.0.1,{os.environ.get('NO_PROXY', '')}".rstrip(",")

    def _name(self, resource: str) -> str:
        return f"{self._stack}-{resource}"

    def _of_type(self, kind: str) -> Iterable[tuple[str, dict[str, Any]]]:
        for name, resource in self._resources.items():
            if resource["Type"] == kind:
                yield name, resource.get("Properties", {})

    def _make_tables(self) -> None:
        dynamodb = self.client("dynamodb")
        for name, declared in self._of_type("AWS::DynamoDB::Table"):
            table = self._name(name)
            wanted = {
                "AttributeDefinitions",
                "BillingMode",
                "GlobalSecondaryIndexes",
                "KeySchema",
                "StreamSpecification",
            }
            properties = {key: declared[key] for key in declared.keys() & wanted}
            if stream := properties.get("StreamSpecification"):
                # CloudFormation implies what the API wants said.
                properties["StreamSpecification"] = {**stream, "StreamEnabled": True}
            dynamodb.create_table(TableName=table, **properties)
            if ttl := declared.get("TimeToLiveSpecification"):
                dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=ttl)

    def _make_queue(self) -> str:
        sqs = self.client("sqs")
        declared = self._resources["IngestQueue"]["Properties"]
        attributes = {"VisibilityTimeout": str(declared["VisibilityTimeout"])}
        url: str = sqs.create_queue(QueueName=self._name("IngestQueue"), Attributes=attributes)[
            "QueueUrl"
        ]
        return url

    def _make_bucket(self) -> str:
        s3, sqs = self.client("s3"), self.client("sqs")
        bucket = f"{self._stack}-knowledge".lower()
        s3.create_bucket(Bucket=bucket)
        declared = self._resources["KnowledgeBucket"]["Properties"]
        s3.put_bucket_versioning(
            Bucket=bucket, VersioningConfiguration=declared["VersioningConfiguration"]
        )
        arn = sqs.get_queue_attributes(QueueUrl=self.queue_url, AttributeNames=["QueueArn"])
        wanted = declared["NotificationConfiguration"]["QueueConfigurations"]
        s3.put_bucket_notification_configuration(
            Bucket=bucket,
            NotificationConfiguration={
                "QueueConfigurations": [
                    {
                        "QueueArn": arn["Attributes"]["QueueArn"],
                        "Events": [one["Event"] for one in wanted],
                    }
                ]
            },
        )
        return bucket


@cache
def _resources_of(template: Path) -> Mapping[str, dict[str, Any]]:
    """Read once a process: parsing it takes half the time of making a stack."""
    resources: dict[str, dict[str, Any]]
    resources = yaml.load(template.read_text(encoding="utf-8"), _Loader)["Resources"]  # noqa: S506
    return resources


def _one_at_a_time() -> Callable[..., Any]:
    """moto's tables and queues are not made for threads: a conditional write could tear."""
    application = DomainDispatcherApplication(create_backend_app)
    lock = threading.Lock()

    def serve(environ: Any, start_response: Any) -> Any:
        with lock:
            return application(environ, start_response)

    return serve


class QuietRequests(WSGIRequestHandler):
    """HTTP/1.1, so that clients keep their connections; not a line a request."""

    protocol_version = "HTTP/1.1"

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


class _Loader(yaml.SafeLoader):
    """CloudFormation's YAML: `!Ref x` and the like as `{"Ref": x}`."""


def _intrinsic(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> Mapping[str, Any]:
    match node:
        case yaml.ScalarNode():
            value: Any = loader.construct_scalar(node)
        case yaml.SequenceNode():
            value = loader.construct_sequence(node, deep=True)
        case yaml.MappingNode():
            value = loader.construct_mapping(node, deep=True)
    return {suffix: value}


_Loader.add_multi_constructor("!", _intrinsic)
