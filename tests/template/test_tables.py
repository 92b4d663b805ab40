"""What the tables remember, forget and can bring back."""

from typing import Any

import pytest

ON_DEMAND = {"BillingMode": "PAY_PER_REQUEST", "SSESpecification": {"SSEEnabled": True}}
RECOVERY = {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}
EXPIRY = {"TimeToLiveSpecification": {"AttributeName": "expires_at", "Enabled": True}}


def keys(hash_key: str, range_key: str | None = None) -> list[dict[str, str]]:
    schema = [{"AttributeName": hash_key, "KeyType": "HASH"}]
    return schema + ([{"AttributeName": range_key, "KeyType": "RANGE"}] if range_key else [])


def attributes(**types: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


TABLES: dict[str, dict[str, Any]] = {
    "CatalogTable": ON_DEMAND
    | RECOVERY
    | EXPIRY
    | {
        "AttributeDefinitions": attributes(key="S", feed="S", changed_at="N"),
        "KeySchema": keys("key"),
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "changes",
                "KeySchema": keys("feed", "changed_at"),
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    },
    "ContentTable": ON_DEMAND
    | RECOVERY
    | {
        "AttributeDefinitions": attributes(key="S", item="S"),
        "KeySchema": keys("key", "item"),
    },
    "SessionTable": ON_DEMAND
    | EXPIRY
    | {
        "AttributeDefinitions": attributes(session="S", item="S"),
        "KeySchema": keys("session", "item"),
    },
    "InvocationTable": ON_DEMAND
    | RECOVERY
    | EXPIRY
    | {
        "AttributeDefinitions": attributes(invocation_id="S"),
        "KeySchema": keys("invocation_id"),
        "StreamSpecification": {"StreamViewType": "NEW_IMAGE"},
    },
}


def test_there_are_these_tables_and_no_other(stack):
    assert stack.of_type("AWS::DynamoDB::Table").keys() == TABLES.keys()


@pytest.mark.parametrize("name", TABLES)
def test_table_has_its_keys_expiry_recovery_and_encryption(stack, name):
    assert stack.properties(name) == TABLES[name]


def test_what_cannot_be_made_again_outlives_the_stack(stack):
    kept = {
        name
        for name, resource in stack.resources.items()
        if resource.get("DeletionPolicy") == "Retain"
        and resource["UpdateReplacePolicy"] == "Retain"
    }
    assert kept == {"KnowledgeBucket", "InvocationTable"}
