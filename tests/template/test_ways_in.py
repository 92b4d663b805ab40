"""How documents come in, and that no event is lost without a trace."""

import pytest

ENCRYPTED = {"SqsManagedSseEnabled": True, "MessageRetentionPeriod": 14 * 86400}


def test_the_bucket_is_private_versioned_and_encrypted_and_forgets_old_versions(stack):
    bucket = stack.properties("KnowledgeBucket")
    bucket.pop("NotificationConfiguration")
    assert bucket == {
        "VersioningConfiguration": {"Status": "Enabled"},
        "PublicAccessBlockConfiguration": {
            "BlockPublicAcls": True,
            "BlockPublicPolicy": True,
            "IgnorePublicAcls": True,
            "RestrictPublicBuckets": True,
        },
        "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
        "BucketEncryption": {
            "ServerSideEncryptionConfiguration": [
                {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
            ]
        },
        "LifecycleConfiguration": {
            "Rules": [
                {
                    "Id": "OldVersions",
                    "Status": "Enabled",
                    "NoncurrentVersionExpiration": {"NoncurrentDays": "30"},
                    "ExpiredObjectDeleteMarker": True,
                    "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
                }
            ]
        },
    }


def test_the_bucket_answers_over_tls_alone(stack):
    assert stack.properties("KnowledgeBucketPolicy") == {
        "Bucket": "KnowledgeBucket",
        "PolicyDocument": {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Sid": "TlsOnly",
                    "Effect": "Deny",
                    "Principal": "*",
                    "Action": "s3:*",
                    "Resource": ["KnowledgeBucket.Arn", "KnowledgeBucket.Arn/*"],
                    "Condition": {"Bool": {"aws:SecureTransport": False}},
                }
            ],
        },
    }


def test_every_write_and_removal_is_queued_whatever_the_key(stack):
    notifications = stack.properties("KnowledgeBucket")["NotificationConfiguration"]
    assert notifications == {
        "QueueConfigurations": [
            {"Event": "s3:ObjectCreated:*", "Queue": "IngestQueue.Arn"},
            {"Event": "s3:ObjectRemoved:*", "Queue": "IngestQueue.Arn"},
        ]
    }
    assert stack.resources["KnowledgeBucket"]["DependsOn"] == "IngestQueuePolicy"


def test_buckets_of_this_account_alone_may_fill_the_queue(stack):
    assert stack.properties("IngestQueuePolicy") == {
        "Queues": ["IngestQueue"],
        "PolicyDocument": {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Sid": "BucketsOfThisAccount",
                    "Effect": "Allow",
                    "Principal": {"Service": "s3.amazonaws.com"},
                    "Action": "sqs:SendMessage",
                    "Resource": "IngestQueue.Arn",
                    "Condition": {
                        "StringEquals": {"aws:SourceAccount": "123456789012"},
                        "ArnLike": {"aws:SourceArn": "arn:aws:s3:::*"},
                    },
                }
            ],
        },
    }


def test_a_message_is_hidden_six_times_as_long_as_the_function_runs(stack):
    queue = stack.properties("IngestQueue")
    assert queue == ENCRYPTED | {
        "VisibilityTimeout": 6 * stack.properties("IngestFunction")["Timeout"],
        "RedrivePolicy": {
            "deadLetterTargetArn": "IngestDeadLetterQueue.Arn",
            "maxReceiveCount": 10,
        },
    }


def test_queues_of_failures_are_encrypted_and_keep_as_long_as_a_queue_can(stack):
    assert stack.properties("IngestDeadLetterQueue") == ENCRYPTED
    assert stack.properties("FailedEventsQueue") == ENCRYPTED


def test_ingest_takes_few_messages_at_once_and_fails_them_one_by_one(deploy):
    stack = deploy(IngestConcurrency="3")
    assert stack.of_type("AWS::Lambda::EventSourceMapping") == {
        "IngestFunctionDocuments": {
            "FunctionName": "IngestFunction",
            "EventSourceArn": "IngestQueue.Arn",
            "BatchSize": 1,
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "ScalingConfig": {"MaximumConcurrency": "3"},
        }
    }


def failure_destinations(stack) -> dict[str, list[str | None]]:
    """Of everything that calls a function without waiting for its answer: where failures go."""
    found: dict[str, list[str | None]] = {}
    queues = {f"{name}.Arn": each for name, each in stack.of_type("AWS::SQS::Queue").items()}
    for name, mapping in stack.of_type("AWS::Lambda::EventSourceMapping").items():
        if mapping["EventSourceArn"] in queues:
            redrive = queues[mapping["EventSourceArn"]].get("RedrivePolicy", {})
            found[name] = [redrive.get("deadLetterTargetArn")]
        else:
            found[name] = [
                mapping.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
            ]
    invoked = {
        (each["FunctionName"], each["Qualifier"]): each["DestinationConfig"]["OnFailure"]
        for each in stack.of_type("AWS::Lambda::EventInvokeConfig").values()
    }
    for name, rule in stack.of_type("AWS::Events::Rule").items():
        for target in rule["Targets"]:
            alias = stack.properties(target["Arn"])
            answer = invoked.get((alias["FunctionName"], alias["Name"]), {})
            undelivered = target.get("DeadLetterConfig", {})
            found[name] = [undelivered.get("Arn"), answer.get("Destination")]
    return found


def test_every_asynchronous_call_has_a_place_for_its_failures(stack):
    assert failure_destinations(stack) == {
        "IngestFunctionDocuments": ["IngestDeadLetterQueue.Arn"],
        "EmbeddingFunctionKeepWarm": ["FailedEventsQueue.Arn", "FailedEventsQueue.Arn"],
    }


def test_the_schedule_may_leave_its_failures_there(stack):
    (statement,) = stack.properties("FailedEventsQueuePolicy")["PolicyDocument"]["Statement"]
    assert statement == {
        "Sid": "KeepWarmSchedule",
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": "FailedEventsQueue.Arn",
        "Condition": {"ArnEquals": {"aws:SourceArn": "EmbeddingFunctionKeepWarm.Arn"}},
    }


@pytest.mark.parametrize(
    ("part", "setting"),
    [
        ("EncryptionAtRestOptions", {"Enabled": True}),
        ("NodeToNodeEncryptionOptions", {"Enabled": True}),
        (
            "DomainEndpointOptions",
            {"EnforceHTTPS": True, "TLSSecurityPolicy": "Policy-Min-TLS-1-2-PFS-2023-10"},
        ),
    ],
)
def test_the_domain_encrypts_what_it_keeps_and_sends(stack, part, setting):
    assert stack.properties("OpenSearchDomain")[part] == setting


def test_an_existing_domain_is_used_and_none_is_made(deploy):
    stack = deploy(OpenSearchEndpoint="https://search.example")
    assert stack.of_type("AWS::OpenSearchService::Domain") == {}
