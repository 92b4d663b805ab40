"""Each function may do what it needs and nothing else, asserted whole."""

from typing import Any

TRACES = (["xray:PutTraceSegments", "xray:PutTelemetryRecords"], "*")
WRITE_LOGS = ["logs:CreateLogStream", "logs:PutLogEvents"]
DOMAIN = "arn:aws:es:eu-west-1:123456789012:domain/{}/*"

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
    "Documents": (["s3:GetObject", "s3:GetObjectVersion"], "KnowledgeBucket.Arn/*"),
    "MissingDocuments": ("s3:ListBucket", "KnowledgeBucket.Arn"),
    "Catalog": (
        ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"],
        "CatalogTable.Arn",
    ),
    "Content": (
        [
            "dynamodb:Query",
            "dynamodb:BatchWriteItem",
            "dynamodb:PutItem",
            "dynamodb:DeleteItem",
        ],
        "ContentTable.Arn",
    ),
    "Embedding": ("lambda:InvokeFunction", "EmbeddingFunctionAliaslive"),
    "Vectors": (
        ["es:ESHttpGet", "es:ESHttpHead", "es:ESHttpPost", "es:ESHttpPut", "es:ESHttpDelete"],
        DOMAIN.format("OpenSearchDomain"),
    ),
    "Logs": (WRITE_LOGS, "IngestLogs.Arn"),
    "Traces": TRACES,
}

LOOKUP = {
    "Catalog": (
        ["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:Scan"],
        ["CatalogTable.Arn", "CatalogTable.Arn/index/changes"],
    ),
    "Content": (["dynamodb:GetItem", "dynamodb:BatchGetItem"], "ContentTable.Arn"),
    "Session": (
        [
            "dynamodb:Query",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            "dynamodb:BatchWriteItem",
            "dynamodb:DeleteItem",
        ],
        "SessionTable.Arn",
    ),
    "Log": ("dynamodb:PutItem", "InvocationTable.Arn"),
    "Embedding": ("lambda:InvokeFunction", "EmbeddingFunctionAliaslive"),
    "Vectors": (
        ["es:ESHttpGet", "es:ESHttpHead", "es:ESHttpPost"],
        DOMAIN.format("OpenSearchDomain"),
    ),
    "Logs": (WRITE_LOGS, "LookupLogs.Arn"),
    "Traces": TRACES,
}

EMBEDDING = {
    "FailedEvents": ("sqs:SendMessage", "FailedEventsQueue.Arn"),
    "Logs": (WRITE_LOGS, "EmbeddingLogs.Arn"),
    "Traces": TRACES,
}

VPC_POLICY = "arn:aws:iam::aws:policy/service-role/AWSLambdaVPCAccessExecutionRole"


def permissions(stack, role: str) -> dict[str, tuple[Any, Any]]:
    (policy,) = stack.properties(role)["Policies"]
    statements = policy["PolicyDocument"]["Statement"]
    assert all(each.keys() == {"Sid", "Effect", "Action", "Resource"} for each in statements)
    assert {each["Effect"] for each in statements} == {"Allow"}
    return {each["Sid"]: (each["Action"], each["Resource"]) for each in statements}


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


def test_an_existing_domain_may_be_called_by_its_name(deploy):
    stack = deploy(OpenSearchEndpoint="https://search.example", OpenSearchDomainName="search")
    assert permissions(stack, "LookupRole")["Vectors"][1] == DOMAIN.format("search")
    assert permissions(stack, "IngestRole")["Vectors"][1] == DOMAIN.format("search")


def test_an_endpoint_that_asks_for_no_identity_needs_no_permission(deploy):
    stack = deploy(OpenSearchEndpoint="https://search.example")
    assert "Vectors" not in permissions(stack, "LookupRole")
    assert "Vectors" not in permissions(stack, "IngestRole")


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
