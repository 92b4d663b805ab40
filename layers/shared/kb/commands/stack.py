"""A deployed stack as its ingest function sees it: by that function's own environment."""

from collections.abc import Mapping

from botocore.exceptions import BotoCoreError, ClientError

from kb.commands import aws
from kb.commands.api_client import CannotAsk

INGEST = "IngestFunction"
"""Its name in template.yaml."""


def ingest_environment(stack: str) -> Mapping[str, str]:
    """The environment variables of the stack's ingest function. Raises CannotAsk."""
    try:
        resource = aws.client("cloudformation", None).describe_stack_resource(
            StackName=stack, LogicalResourceId=INGEST
        )
        name = resource["StackResourceDetail"]["PhysicalResourceId"]
        found = aws.client("lambda", None).get_function_configuration(FunctionName=name)
    except ClientError as error:
        told = error.response["Error"]
        raise CannotAsk(f"stack {stack}: {told['Code']}, {told.get('Message', '')}") from error
    except BotoCoreError as error:
        raise CannotAsk(f"stack {stack}: {error}") from error
    variables: Mapping[str, str] = found.get("Environment", {}).get("Variables", {})
    return variables
