"""What is left when a stack is removed. The last of these files by name: it ends the stack."""

from tests.conftest import markdown
from tests.deploy.stack import Stack, cloud_client


def test_what_cannot_be_made_again_outlives_the_stack_and_can_be_removed_after_it(
    stack: Stack,
) -> None:
    key = "removal/kept.md"
    stack.put(key, markdown("Kept", "[REMOVAL]", "Outlives the stack."))
    stack.until_indexed(key)
    stack.ask("REMOVAL")
    formation, s3, tables = (stack.client(name) for name in ("cloudformation", "s3", "dynamodb"))
    formation.delete_stack(StackName=stack.name)
    formation.get_waiter("stack_delete_complete").wait(
        StackName=stack.name, WaiterConfig={"Delay": 1}
    )
    functions = cloud_client(stack.cloud, "lambda").list_functions()["Functions"]
    assert s3.get_object(Bucket=stack.bucket, Key=key)["Body"].read().endswith(b"stack.\n")
    assert tables.list_tables()["TableNames"] == [stack.resources["InvocationTable"]]
    assert tables.scan(TableName=stack.resources["InvocationTable"])["Count"] > 0
    assert [each["FunctionName"] for each in functions] == ["embedder"]
