"""Each function may do what it needs and nothing else, asserted whole."""

from typing import Any

TRACES = (["xray:PutTraceSegments", "xray:PutTelemetryRecords"], "*")
WRITE_LOGS = ["logs:CreateLogStream", "logs:PutLogEvents"]

INGEST = {
    "Queue": (
        [
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
            "sqs:ChangeMessageVisibility",
        ],
        "IngestQueue.Arn",
    ),
    "Documents": ("s3:GetObject", "KnowledgeBucket.Arn/*"),
    "MissingDocuments": ("s3:ListBucket", "KnowledgeBucket.Arn"),
    "Catalog": (
        ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"],
        "CatalogTable.Arn",
    ),
    "Content": (["dynamodb:Query", "dynamodb:BatchWriteItem"], "ContentTable.Arn"),
    "Embedding": ("lambda:InvokeFunction", "EmbeddingFunctionAliaslive"),
    "Logs": (WRITE_LOGS, "IngestLogs.Arn"),
    "Traces": TRACES,
}

LOOKUP = {
    "Catalog": (
        ["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Scan"],
        "CatalogTable.Arn",
    ),
    "CatalogChanges": ("dynamodb:Query", "CatalogTable.Arn/index/changes"),
    "Content": ("dynamodb:BatchGetItem", "ContentTable.Arn"),
    "Session": (
        ["dynamodb:Query", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:BatchWriteItem"],
        "SessionTable.Arn",
    ),
    "Log": ("dynamodb:PutItem", "InvocationTable.Arn"),
    "Embedding": ("lambda:InvokeFunction", "EmbeddingFunctionAliaslive"),
    "Logs": (WRITE_LOGS, "LookupLogs.Arn"),
    "Traces": TRACES,
}


def vectors(domain: str) -> dict[str, dict[str, tuple[Any, str]]]:
    """By role, what it may ask of the domain of that name."""
    index = f"arn:aws:es:eu-west-1:123456789012:domain/{domain}/kb-chunks"
    create = ("es:ESHttpPut", f"{index}-1")
    return {
        "IngestRole": {
            "ReadAndWrite": (["es:ESHttpGet", "es:ESHttpPost"], [f"{index}/*", f"{index}-*/*"]),
            "Create": create,
        },
        "LookupRole": {
            "Check": ("es:ESHttpGet", [f"{index}/_mapping", f"{index}-*/_mapping"]),
            "Search": ("es:ESHttpPost", f"{index}-*/_search"),
            "WeighWords": ("es:ESHttpPost", f"{index}-*/_termvectors"),
            "Create": create,
        },
    }


EMBEDDING = {
    "FailedEvents": ("sqs:SendMessage", "FailedEventsQueue.Arn"),
    "Logs": (WRITE_LOGS, "EmbeddingLogs.Arn"),
    "Traces": TRACES,
}

VPC_POLICY = "arn:aws:iam::aws:policy/service-role/AWSLambdaVPCAccessExecutionRole"


def allowed(policy: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    statements = policy["PolicyDocument"]["Statement"]
    assert all(each.keys() == {"Sid", "Effect", "Action", "Resource"} for each in statements)
    assert {each["Effect"] for each in statements} == {"Allow"}
    return {each["Sid"]: (each["Action"], each["Resource"]) for each in statements}


def permissions(stack, role: str) -> dict[str, tuple[Any, Any]]:
    (policy,) = stack.properties(role)["Policies"]
    return allowed(policy)


def on_vectors(stack) -> dict[str, dict[str, tuple[Any, Any]]]:
    """By role, what the policies that stand beside the roles allow."""
    policies = stack.of_type("AWS::IAM::Policy").values()
    return {role: allowed(policy) for policy in policies for role in policy["Roles"]}


def test_ingest_may_do_this_and_nothing_else(stack):
    assert permissions(stack, "IngestRole") == INGEST
    assert stack.properties("IngestRole")["ManagedPolicyArns"] == []


def test_lookup_may_do_this_and_nothing_else(stack):
    assert permissions(stack, "LookupRole") == LOOKUP
    assert stack.properties("LookupRole")["ManagedPolicyArns"] == []


def test_embedding_may_do_this_and_nothing_else(stack):
    assert permissions(stack, "EmbeddingRole") == EMBEDDING
    assert "ManagedPolicyArns" not in stack.properties("EmbeddingRole")


def test_every_function_has_a_role_of_its_own_written_here(stack):
    roles = {name: each["Role"] for name, each in stack.of_type("AWS::Lambda::Function").items()}
    assert roles == {
        "IngestFunction": "IngestRole.Arn",
        "LookupFunction": "LookupRole.Arn",
        "EmbeddingFunction": "EmbeddingRole.Arn",
    }
    assert stack.of_type("AWS::IAM::Role").keys() == {"IngestRole", "LookupRole", "EmbeddingRole"}


def test_functions_of_this_account_alone_take_these_roles(stack):
    trusted = [
        role["AssumeRolePolicyDocument"]["Statement"]
        for role in stack.of_type("AWS::IAM::Role").values()
    ]
    assert trusted == 3 * [
        [
            {
                "Effect": "Allow",
                "Principal": {"Service": "lambda.amazonaws.com"},
                "Action": "sts:AssumeRole",
            }
        ]
    ]


def test_an_existing_embedding_function_is_the_one_that_may_be_called(deploy):
    arn = "arn:aws:lambda:eu-west-1:123456789012:function:embedder:2"
    stack = deploy(EmbeddingFunctionArn=arn)
    for role in ("IngestRole", "LookupRole"):
        assert permissions(stack, role)["Embedding"] == ("lambda:InvokeFunction", arn)
    assert "EmbeddingFunction" not in stack.resources


def test_ingest_may_write_the_index_and_lookup_only_search_it(stack):
    assert on_vectors(stack) == vectors("OpenSearchDomain")


def test_an_existing_domain_may_be_called_by_its_name(deploy):
    stack = deploy(OpenSearchEndpoint="https://search.example", OpenSearchDomainName="search")
    assert on_vectors(stack) == vectors("search")


def test_an_endpoint_that_asks_for_no_identity_needs_no_permission(deploy):
    assert on_vectors(deploy(OpenSearchEndpoint="https://search.example")) == {}


def test_network_interfaces_may_be_made_only_for_a_vpc(deploy):
    stack = deploy(SubnetIds="subnet-1,subnet-2", SecurityGroupIds="sg-1")
    assert stack.properties("IngestRole")["ManagedPolicyArns"] == [VPC_POLICY]
    assert stack.properties("LookupRole")["ManagedPolicyArns"] == [VPC_POLICY]
    assert "ManagedPolicyArns" not in stack.properties("EmbeddingRole")


def test_the_domain_lets_the_roles_decide_and_names_none(stack):
    statements = stack.properties("OpenSearchDomain")["AccessPolicies"]["Statement"]
    assert statements == [
        {
            "Effect": "Allow",
            "Principal": {"AWS": "arn:aws:iam::123456789012:root"},
            "Action": "es:ESHttp*",
            "Resource": "arn:aws:es:eu-west-1:123456789012:domain/*",
        }
    ]
