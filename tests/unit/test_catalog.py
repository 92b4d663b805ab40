"""The catalog in memory: what it holds after any order of what the tables tell it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kb.catalog import Catalog
from kb.documents import CatalogRow, Status, Version
from kb.errors import Unavailable

INTERVAL, OVERLAP, IDLE = 1.0, 30.0, 900.0
TOMBSTONE_TTL = 7 * 86400


@dataclass
class Table:
    """Rows by key as the table has them, and an index by change time that may lag behind."""

    rows: dict[str, CatalogRow] = field(default_factory=dict)
    listed: list[CatalogRow] = field(default_factory=list)
    looks: list[str] = field(default_factory=list)
    is_down: bool = False

    def commit(self, row: CatalogRow, *, listed: bool = True) -> None:
        self.rows[row.key] = row
        if listed:
            self.listed.append(row)

    def load(self) -> Iterator[CatalogRow]:
        self._look("load")
        yield from list(self.rows.values())

    def changed_since(self, milliseconds: int) -> Iterator[CatalogRow]:
        self._look("changes")
        yield from [row for row in self.listed if row.changed_at >= milliseconds]

    def read_many(self, keys: Iterable[str]) -> dict[str, CatalogRow]:
        self._look("rows")
        return {key: self.rows[key] for key in keys if key in self.rows}

    def _look(self, name: str) -> None:
        if self.is_down:
            raise Unavailable("catalog")
        self.looks.append(name)


class Clock:
    seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def row(key: str, revision: int = 1, at: float = 1000.0, keyword: str = "disk") -> CatalogRow:
    return CatalogRow(
        key,
        revision,
        Status.INDEXED,
        int(at * 1000),
        served=Version(revision, "f"),
        content_hash=f"{key}{revision}",
        keywords=(keyword,),
    )


def tombstone(key: str, revision: int, at: float) -> CatalogRow:
    expires_at = int(at) + TOMBSTONE_TTL
    return CatalogRow(key, revision, Status.DELETED, int(at * 1000), expires_at=expires_at)


@pytest.fixture
def table() -> Table:
    return Table()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def catalog(table: Table, clock: Clock) -> Catalog:
    return Catalog(table, now=clock, interval=INTERVAL, overlap=OVERLAP, idle=IDLE)  # type: ignore[arg-type]


def matched(catalog: Catalog, question: str = "disk") -> list[str]:
    return [match.key for match in catalog.match(question)]


def test_first_look_loads_all_and_later_ones_the_changes(
    catalog: Catalog, table: Table, clock: Clock
) -> None:
    table.commit(row("a"))
    catalog.refresh()
    clock.seconds += 1
    table.commit(row("b", at=clock.seconds))
    catalog.refresh()
    assert (matched(catalog), table.looks) == (["a", "b"], ["load", "changes"])


def test_looks_are_an_interval_apart(catalog: Catalog, table: Table, clock: Clock) -> None:
    catalog.refresh()
    clock.seconds += 0.9
    catalog.refresh()
    assert table.looks == ["load"]


@pytest.mark.parametrize("later", [901.0, -5.0], ids=["after idling", "clock set back"])
def test_all_is_loaded_again(catalog: Catalog, table: Table, clock: Clock, later: float) -> None:
    catalog.refresh()
    clock.seconds += later
    catalog.refresh()
    assert table.looks == ["load", "load"]


def test_row_that_the_load_no_longer_has_is_forgotten(
    catalog: Catalog, table: Table, clock: Clock
) -> None:
    table.commit(row("a"))
    catalog.refresh()
    del table.rows["a"]
    clock.seconds += IDLE
    catalog.refresh()
    assert (matched(catalog), catalog.rows()) == ([], [])


def test_row_learned_while_all_are_loaded_is_not_forgotten(
    catalog: Catalog, table: Table, clock: Clock
) -> None:
    catalog.refresh()
    clock.seconds += IDLE
    load = table.load

    def load_and_meanwhile_learn() -> Iterator[CatalogRow]:
        yield from load()
        table.commit(row("new"))
        catalog.read_again(["new"])

    table.load = load_and_meanwhile_learn  # type: ignore[method-assign]
    catalog.refresh()
    assert matched(catalog) == ["new"]


def test_row_learned_while_it_was_not_found_is_not_forgotten(
    catalog: Catalog, table: Table
) -> None:
    catalog.refresh()
    read_many = table.read_many

    def read_and_meanwhile_learn(keys: Iterable[str]) -> dict[str, CatalogRow]:
        found = read_many(keys)
        catalog.learn([row("new")])
        return found

    table.read_many = read_and_meanwhile_learn  # type: ignore[method-assign]
    catalog.read_again(["new"])
    assert matched(catalog) == ["new"]


def test_rows_are_held_as_they_are_but_for_what_answers_do_not_need(
    catalog: Catalog, table: Table
) -> None:
    full = CatalogRow(
        key="运维/🐤.md",
        revision=7,
        status=Status.FAILED,
        changed_at=1_000_123,
        served=Version(5, "f" * 32),
        reason="line 3, column 1",
        content_hash="c" * 64,
        title='标题 "quoted"\n',
        keywords=("disk",),
        summary="一句话",
        domain="运维",
        updated_at="2026-01-02",
        version="1.10",
        author="作者",
        parts=2,
        expires_at=1_800_000_000,
    )
    table.commit(full)
    table.commit(tombstone("gone", 3, at=1000.0))
    catalog.refresh()
    held = replace(full, reason="", keywords=(), summary="")
    assert (catalog.row(full.key), catalog.row("gone"), catalog.rows()) == (held, None, [held])
    assert catalog.rows(Status.DELETED) == [table.rows["gone"]]


def test_failed_look_keeps_what_is_held_and_the_next_one_makes_up_for_it(
    catalog: Catalog, table: Table, clock: Clock
) -> None:
    table.commit(row("a"))
    catalog.refresh()
    table.is_down = True
    clock.seconds += 60
    table.commit(row("b", at=clock.seconds - 50))
    with pytest.raises(Unavailable):
        catalog.refresh()
    before = matched(catalog)
    table.is_down = False
    catalog.refresh()
    assert (before, matched(catalog)) == (["a"], ["a", "b"])


def test_tombstone_takes_a_document_out(catalog: Catalog, table: Table, clock: Clock) -> None:
    table.commit(row("a"))
    catalog.refresh()
    clock.seconds += 1
    table.commit(tombstone("a", 2, clock.seconds))
    catalog.refresh()
    assert (matched(catalog), catalog.row("a")) == ([], None)


def test_document_that_comes_back_after_its_tombstone_expired_is_held(
    catalog: Catalog, table: Table, clock: Clock
) -> None:
    table.commit(tombstone("a", 5, clock.seconds))
    catalog.refresh()
    for _ in range(TOMBSTONE_TTL // 600 + 1):  # never idle, so that nothing is loaded again
        clock.seconds += 600
        catalog.refresh()
    table.commit(row("a", revision=1, at=clock.seconds))
    clock.seconds += 2
    catalog.refresh()
    assert matched(catalog) == ["a"]


def test_older_row_does_not_replace_a_newer_one(
    catalog: Catalog, table: Table, clock: Clock
) -> None:
    table.commit(row("a", revision=3, keyword="new"))
    catalog.refresh()
    catalog.learn([row("a", revision=2, keyword="old")])
    assert (matched(catalog, "new"), matched(catalog, "old")) == (["a"], [])


def test_rows_read_again_that_are_gone_are_forgotten(catalog: Catalog, table: Table) -> None:
    table.commit(row("a"))
    table.commit(row("b"))
    catalog.refresh()
    del table.rows["a"]
    catalog.read_again(["a", "b"])
    assert matched(catalog) == ["b"]


def test_twins_are_the_served_documents_of_equal_content(catalog: Catalog, table: Table) -> None:
    first = row("a")
    table.commit(first)
    for key in ("c", "b"):
        twin = row(key)
        table.commit(
            CatalogRow(
                key,
                1,
                twin.status,
                twin.changed_at,
                served=twin.served,
                content_hash=first.content_hash,
            )
        )
    catalog.refresh()
    assert [twin.key for twin in catalog.twins(first)] == ["a", "b", "c"]


changes = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.booleans(),  # written or removed
        st.floats(0, 3),  # seconds since the change before
        st.floats(-5, 5),  # the writer's clock is off
        st.floats(0, 20),  # seconds until the index by change time shows it
    ),
    max_size=30,
)


@given(changes=changes, looks=st.lists(st.floats(0.5, 10), max_size=30))
def test_late_index_entries_and_skewed_clocks_lose_no_change(
    changes: list[tuple[str, bool, float, float, float]], looks: list[float]
) -> None:
    table, clock = Table(), Clock()
    catalog = Catalog(table, now=clock, interval=INTERVAL, overlap=OVERLAP, idle=IDLE)  # type: ignore[arg-type]
    events: list[tuple[float, CatalogRow | None]] = []
    now, revisions = clock.seconds, dict.fromkeys("abc", 0)
    committed: list[tuple[float, CatalogRow]] = []
    for key, is_written, pause, skew, delay in changes:
        now += pause
        revisions[key] += 1
        new = (row if is_written else tombstone)(key, revisions[key], now + skew)
        committed.append((now, new))
        events.append((now + delay, new))
    moment = clock.seconds
    for pause in looks:
        moment += pause
        events.append((moment, None))
    # Two last looks after everything is listed, within the overlap of the changes.
    last = max([time for time, _ in events], default=moment)
    events += [(last + 1, None), (last + 3, None)]
    catalog.refresh()
    for time, listed in sorted(events, key=lambda event: event[0]):
        clock.seconds = max(time, clock.seconds)
        table.rows = {new.key: new for at, new in committed if at <= time}
        if listed is None:
            catalog.refresh()
        else:
            table.listed.append(listed)
    expected = sorted(new.key for new in table.rows.values() if new.served)
    assert matched(catalog) == expected
