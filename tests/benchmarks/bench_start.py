"""The lookup function's start against its budget: `python tests/benchmarks/bench_start.py`.

CPU time from the first import until parts are made, the catalog not loaded, over that of a function
that imports boto3, Powertools and pydantic and makes a DynamoDB client. Both run in turn, since a
machine may be shared, and the least of each counts. Exits 1 where the budget is missed.
"""

import json
import resource
import subprocess
import sys
from pathlib import Path

FUNCTION = Path(__file__).parents[2] / "functions/lookup"
BUDGET = 1.5
RUNS = 15
ENVIRONMENT = {
    "AWS_REGION": "eu-west-1",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "CATALOG_TABLE": "a",
    "CONTENT_TABLE": "b",
    "SESSION_TABLE": "c",
    "INVOCATION_TABLE": "d",
    "EMBEDDING_FUNCTION": "f",
    "OPENSEARCH_ENDPOINT": "https://search.example",
}
BARE = """
import boto3
from aws_lambda_powertools.event_handler import APIGatewayRestResolver
from pydantic import BaseModel
boto3.client("dynamodb")
"""
OURS = f"""
import sys
sys.path.insert(0, {json.dumps(str(FUNCTION))})
import app
from kb.wiring import lookup_parts
lookup_parts()
"""


def seconds(code: str) -> float:
    """CPU time of a fresh interpreter that runs the code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, check=True)  # noqa: S603 - ours
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    bare, ours = zip(*((seconds(BARE), seconds(OURS)) for _ in range(RUNS)), strict=True)
    ratio = min(ours) / min(bare)
    print(f"bare function {min(bare):.2f} s, lookup function {min(ours):.2f} s: {ratio:.2f} times")
    print(f"budget: {BUDGET} times")
    return int(ratio > BUDGET)


if __name__ == "__main__":
    sys.exit(main())
