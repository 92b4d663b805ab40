"""Imports point one way: what decides knows nothing of what it is carried by."""

import ast
from pathlib import Path

import kb

PACKAGE = Path(kb.__file__).parent
ROOTS = {"wiring", "cli", "routes", "health"}
"""Where parts are put together or a request is carried to them; commands are part of the CLI."""
APPLICATION = {
    "ingest",
    "lookup",
    "invocation",
    "delivery",
    "finding",
    "semantic",
    "catalog",
    "views",
    "doctor",
    "reindex",
}
"""What uses stores; all other modules of the package's top are pure."""


def imports_of(path: Path) -> set[str]:
    """Every module that the file imports, at the top or late."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def importers(names: tuple[str, ...]) -> set[str]:
    """Files of the package, by path below it, that import one of the modules or anything in it."""
    return {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(
            imported == name or imported.startswith(f"{name}.")
            for imported in imports_of(path)
            for name in names
        )
    }


def test_only_roots_and_the_command_line_know_the_local_system() -> None:
    outside = {
        path
        for path in importers(("kb.local",))
        if not path.startswith(("local/", "commands/", "evaluation/"))
        and path.removesuffix(".py") not in ROOTS
    }
    assert outside == set()


def test_only_stores_and_what_is_built_on_aws_import_its_client() -> None:
    outside = {
        path
        for path in importers(("boto3", "botocore", "opensearchpy"))
        if not path.startswith(("stores/", "local/", "commands/")) and path != "wiring.py"
    }
    assert outside == set()


def test_pure_modules_know_no_store_and_no_root() -> None:
    known = importers(("kb.stores", *(f"kb.{root}" for root in ROOTS)))
    impure = {
        path
        for path in known
        if "/" not in path and path.removesuffix(".py") not in ROOTS | APPLICATION
    }
    assert impure == set()


def test_stores_know_only_the_words_and_the_ports() -> None:
    allowed = {"kb", "kb.documents", "kb.errors", "kb.ports", "kb.stores"}
    wrong = {
        (path.name, name)
        for path in (PACKAGE / "stores").glob("*.py")
        for name in imports_of(path)
        if name.startswith("kb.")
        and not any(name == one or name.startswith(f"{one}.") for one in allowed - {"kb"})
    }
    assert wrong == set()


def test_nothing_but_the_roots_is_imported_by_the_functions() -> None:
    functions = PACKAGE.parents[2] / "functions"
    used = {
        name
        for function in ("ingest", "lookup")
        for name in imports_of(functions / function / "app.py")
        if name.startswith("kb.") and name.count(".") == 1
    }
    edges = {"kb.api", "kb.notifications", "kb.routes", "kb.wiring"}
    assert used <= {"kb.documents", "kb.errors", "kb.stores", *edges}
