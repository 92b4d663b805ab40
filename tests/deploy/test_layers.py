"""The layers are whole; MiniStack's own packages, which functions there see, would hide a gap."""

# ruff: noqa: S603 -- the command is this repository's own

import subprocess

import pytest

from tests.deploy.conftest import BUILD
from tests.deploy.ministack import PROGRAM, ROOT
from tests.deploy.stack import Stack

IMPORT_ALL = """
import importlib, pkgutil, sys
sys.path[:0] = sys.argv[1:]
import app, kb
people = ("kb.cli", "kb.commands", "kb.evaluation")  # run by them, with packages of their own
for module in pkgutil.walk_packages(kb.__path__, "kb."):
    if not module.name.startswith(people):
        importlib.import_module(module.name)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.mark.parametrize("function", ["IngestFunction", "LookupFunction"])
def test_a_function_imports_nothing_but_the_standard_library_and_its_layers(
    stack: Stack, function: str
) -> None:
    parts = ("DependenciesLayer/python", "SharedLayer/python", function)
    python = PROGRAM.with_name("python")
    # Isolated, and without site-packages.
    command = [python, "-I", "-S", "-c", IMPORT_ALL, *(ROOT / BUILD / part for part in parts)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert {"boto3", "opensearchpy", "pydantic", "yaml", "markdown_it"} <= set(done.stdout.split())
