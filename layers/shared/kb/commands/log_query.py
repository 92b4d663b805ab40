"""Plain SQL over the invocation log, by SQLite in memory, reading only."""

import sqlite3
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields

from kb.commands.exits import WrongUsage
from kb.stores.invocation_table import Invocation

TABLE = "tool_invocation"
COLUMNS = tuple(field.name for field in fields(Invocation))
VALUE_BYTES = 10_000_000
"""One value has at most: a query is no way to fill the memory."""
STEPS_BETWEEN_LOOKS = 100_000
"""Instructions of SQLite after which Ctrl-C is noticed."""

_READING = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)


@dataclass(frozen=True, slots=True)
class Result:
    """What a query came to."""

    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]


def run_query(sql: str, invocations: Iterable[Invocation]) -> Result:
    """Run one reading statement over the rows, columns named as the fields of Invocation.

    Raises WrongUsage where it is none or SQLite does not understand it.
    """
    if not sql.strip():
        raise WrongUsage(f"the query is blank; it is one SELECT on {TABLE}")
    database = sqlite3.connect(":memory:")
    try:
        database.execute(f"CREATE TABLE {TABLE} ({', '.join(COLUMNS)})")
        places = ", ".join("?" * len(COLUMNS))
        database.executemany(
            f"INSERT INTO {TABLE} VALUES ({places})",  # noqa: S608 - names of our own
            map(astuple, invocations),
        )
        database.commit()
        database.execute("PRAGMA query_only = ON")
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES)
        database.set_authorizer(_allow_reading)
        database.set_progress_handler(_look, STEPS_BETWEEN_LOOKS)
        return _result(database, sql)
    finally:
        database.close()


def _result(database: sqlite3.Connection, sql: str) -> Result:
    try:
        cursor = database.execute(sql)
        rows = cursor.fetchall()
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
        # Warning, ValueError: several statements, a NUL, a lone surrogate.
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
            raise KeyboardInterrupt from error
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_AUTH:
            raise WrongUsage(
                f"the log is only read, and nothing else: a query is one SELECT on {TABLE}"
            ) from error
        raise WrongUsage(
            f"SQLite does not take the query ({error}); {TABLE} has {', '.join(COLUMNS)}"
        ) from error
    if cursor.description is None:
        raise WrongUsage(f"this asks nothing; a query is one SELECT on {TABLE}")
    return Result(_told_apart([column[0] for column in cursor.description]), rows)


def _allow_reading(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    is_loading = action == sqlite3.SQLITE_FUNCTION and second == "load_extension"
    return sqlite3.SQLITE_OK if action in _READING and not is_loading else sqlite3.SQLITE_DENY


def _look() -> int:
    """A moment in Python: where Ctrl-C was pressed it is raised here, and ends the query."""
    return 0


def _told_apart(names: list[str]) -> tuple[str, ...]:
    """Each name once, so that a row can be an object: a, a becomes a, a:1."""
    seen: dict[str, int] = {}
    for name in names:
        number = 0
        while (told := f"{name}:{number}" if number else name) in seen:
            number += 1
        seen[told] = number
    return tuple(seen)
