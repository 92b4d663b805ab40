"""What kb sql takes, and that it only reads."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kb.commands import log_query
from kb.commands.exits import WrongUsage
from kb.commands.log_query import COLUMNS, run_query
from kb.stores.invocation_table import Invocation

ROW = Invocation("i1", None, "问题", "2026-01-01T00:00:00+00:00", 12, True, '{"sources": ["a.md"]}')


def test_columns_are_the_fields_of_a_row() -> None:
    result = run_query("SELECT * FROM tool_invocation", [ROW])
    assert result.columns == COLUMNS
    assert result.rows == [
        ("i1", None, "问题", "2026-01-01T00:00:00+00:00", 12, 1, '{"sources": ["a.md"]}',
         None, None, "lookup_knowledge"),
    ]  # fmt: skip


def test_equal_names_are_told_apart() -> None:
    result = run_query("SELECT 1 AS q, 2 AS q, 3 AS 'q:1', 4 AS q", [])
    assert result.columns == ("q", "q:1", "q:1:1", "q:2")


WRITING = [
    "DELETE FROM tool_invocation",
    "UPDATE tool_invocation SET query = ''",
    "INSERT INTO tool_invocation (query) VALUES ('x')",
    "REPLACE INTO tool_invocation (query) VALUES ('x')",
    "DROP TABLE tool_invocation",
    "CREATE TABLE x (y)",
    "CREATE TEMP TABLE x AS SELECT 1",
    "CREATE VIEW v AS SELECT 1",
    "ALTER TABLE tool_invocation RENAME TO x",
    "ATTACH ':memory:' AS x",
    "ATTACH '{file}' AS x",
    "VACUUM",
    "VACUUM INTO '{file}'",
    "PRAGMA user_version = 1",
    "PRAGMA table_info(tool_invocation)",
    "PRAGMA temp_store_directory = '{file}'",
    "SELECT * FROM pragma_table_info('tool_invocation')",
    "SELECT load_extension('{file}')",
    "WITH x AS (SELECT 1) DELETE FROM tool_invocation",
    "EXPLAIN DELETE FROM tool_invocation",
    "BEGIN",
    "COMMIT",
    "REINDEX",
    "ANALYZE",
    "CREATE VIRTUAL TABLE x USING fts5(y)",
    "SELECT 1; DELETE FROM tool_invocation",
    "",
    "  \n",
    "-- nothing",
    "SELEC 1",
    "SELECT nothing FROM tool_invocation",
    "SELECT '\x00'",
    "SELECT zeroblob(100000000)",
]


@pytest.mark.parametrize("query", WRITING)
def test_what_does_not_only_read_is_refused(query: str, tmp_path: Path) -> None:
    file = tmp_path / "made"
    with pytest.raises(WrongUsage) as refused:
        run_query(query.format(file=file), [ROW])
    assert "\n" not in str(refused.value)
    assert not file.exists()


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT COUNT(*) FROM tool_invocation", [(1,)]),
        ("WITH x(y) AS (VALUES (1), (2)) SELECT SUM(y) FROM x", [(3,)]),
        (
            "SELECT json_extract(retrieval_details, '$.sources[0]') FROM tool_invocation",
            [("a.md",)],
        ),
        ("SELECT a.query FROM tool_invocation a JOIN tool_invocation b USING (query)", [("问题",)]),
        ("SELECT 1;", [(1,)]),
        (
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 3)"
            " SELECT x FROM c",
            [(1,), (2,), (3,)],
        ),
    ],
)
def test_whatever_reads_is_answered(query: str, rows: list[tuple[object, ...]]) -> None:
    assert run_query(query, [ROW]).rows == rows


@given(st.text())
def test_any_text_is_answered_or_refused(query: str) -> None:
    try:
        told = run_query(query, [ROW]).columns
    except WrongUsage as refused:
        told = (str(refused),)
    assert told
    assert len(set(told)) == len(told)


def test_ctrl_c_ends_a_query_that_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(log_query, "_look", pressed)
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT MAX(x) FROM c"
    with pytest.raises(KeyboardInterrupt):
        run_query(endless, [])
