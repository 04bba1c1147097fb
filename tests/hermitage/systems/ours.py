"""LakeVilla as a system under test, on either engine.

With NONE a transaction is one statement, so a script's transaction cannot be expressed: each of its steps
is a transaction of its own, and an abort takes nothing back. That is what the plain format offers.

With R on one table, R and CT on several, and I, there are two ways, and both have to be right. `by hand`:
begin, statements, commit, where a Conflict ends the transaction. `by lake.run`: the function is run again
after a conflict, and no transaction is refused.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import lakevilla as lv
from lakevilla.store.open import open_store
from lakevilla.store.port import Store
from lakevilla.transaction.commit import writer_queues
from tests.hermitage.player import Program
from tests.hermitage.scripts.notation import Delete, Insert, Layout, Operation, Read, Rows, Update, sql_of
from tests.hermitage.scripts.script import FIRST_ROWS

OpenLake = Callable[[], lv.Lake]
"""A client of its own on the tables of one place."""

COLUMNS = "id BIGINT, v BIGINT"
BOTH = lv.R | lv.CT
ALL = BOTH | lv.I


class OurPlace:
    """A lake, and how a script's transactions run on it."""

    refusals = (lv.Aborted,)

    def __init__(self, open_lake: OpenLake, layout: Layout, way: "Way") -> None:
        self.open_lake, self._layout, self._way = open_lake, layout, way

    def run(self, program: Program) -> None:
        self._way(self.open_lake(), program, self._layout)

    def rows(self) -> Rows:
        rows = _execute(self.open_lake().sql, Read(None), self._layout)
        assert rows is not None
        return rows


Way = Callable[[lv.Lake, Program, Layout], None]


def each_step(lake: lv.Lake, program: Program, layout: Layout) -> None:
    """Every statement a transaction of its own: all that NONE offers."""

    def alone(text: str) -> Any:
        with lake.transaction(lv.NONE) as tx:
            return tx.sql(text)

    program(lambda operation: _execute(alone, operation, layout))


def by_hand(
    lake: lv.Lake,
    program: Program,
    layout: Layout,
    features: lv.Features = lv.R,
    isolation: str = "serializable",
) -> None:
    """One transaction; a conflict ends it."""
    tx = lake.transaction(features, isolation=isolation)
    try:
        program(lambda operation: _execute(tx.sql, operation, layout))
    except BaseException:
        tx.abort()
        raise
    tx.commit()


def by_run(
    lake: lv.Lake,
    program: Program,
    layout: Layout,
    features: lv.Features = lv.R,
    isolation: str = "serializable",
) -> None:
    """A function that LakeVilla runs, again if it has to."""

    def work(tx: lv.Transaction) -> None:
        program(lambda operation: _execute(tx.sql, operation, layout))

    lake.run(work, features=features, isolation=isolation)


def by_verbs(lake: lv.Lake, program: Program, layout: Layout, features: lv.Features = lv.R) -> None:
    """The same with typed verbs instead of SQL; reads hand out whole tables."""
    lake.run(lambda tx: program(lambda operation: _execute_verb(tx, operation, layout)), features=features)


WAYS: dict[str, Way] = {
    "NONE": each_step,
    "R": by_hand,
    "R, lake.run": by_run,
    "R, lake.run, verbs": by_verbs,
    "CT": partial(by_hand, features=lv.CT),
    "R,CT": partial(by_hand, features=BOTH),
    "R,CT, lake.run": partial(by_run, features=BOTH),
    "R,CT, lake.run, verbs": partial(by_verbs, features=BOTH),
    "I": partial(by_hand, features=lv.I),
    "R,CT,I": partial(by_hand, features=ALL),
    "R,CT,I, lake.run": partial(by_run, features=ALL),
    "R,CT,I, lake.run, verbs": partial(by_verbs, features=ALL),
    "R,CT,I snapshot": partial(by_hand, features=ALL, isolation="snapshot"),
    "R,CT,I snapshot, lake.run": partial(by_run, features=ALL, isolation="snapshot"),
}
WITH_I = tuple(name for name in WAYS if name == "I" or name.startswith("R,CT,I"))
SNAPSHOT = tuple(name for name in WAYS if "snapshot" in name)


def ways_shown(layout: Layout) -> tuple[str, ...]:
    """Those of the table: R alone changes one table only."""
    less = ("R,CT", "R,CT, lake.run") if layout.several else ("R", "R, lake.run")
    return ("NONE", *less, "R,CT,I", "R,CT,I, lake.run", "R,CT,I snapshot")


def fill(lake: lv.Lake, layout: Layout) -> None:
    """Make the tables and the first rows."""
    for name in layout.tables:
        lake.create(name, COLUMNS, format=layout.format_of(name))
    for name, rows in layout.inserts(FIRST_ROWS):
        lake.sql(f"INSERT INTO {name} VALUES {', '.join(map(str, rows))}")


@contextmanager
def queueing() -> Iterator[None]:
    """Let transactions take a place in the queue of writers at their first change, as those do that stay
    open for long: others then wait for them in the middle of a script."""
    usual = writer_queues.OPEN_SECONDS
    writer_queues.OPEN_SECONDS = -1.0
    try:
        yield
    finally:
        writer_queues.OPEN_SECONDS = usual


class MemoryLakes:
    """Places in memory on the local engine, each a copy of one that was made once."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._first = open_store("memory://")
        vectors = layout.vectors
        lake = lv.Lake("memory://", engine="local", store=self._first, merge_on_read=vectors)
        fill(lake, layout)
        # DuckDB takes longer to start than a script takes to run; its connections know no tables.
        self._engine = lake._engine

    def place(self, way: Way, shared: bool = False) -> OurPlace:
        """A new place. If shared, all clients use one lake, as the threads of one program do."""
        store = self._copy()

        def open_lake() -> lv.Lake:
            return lv.Lake("memory://", engine=self._engine, store=store)

        one = open_lake()
        return OurPlace((lambda: one) if shared else open_lake, self._layout, way)

    def _copy(self) -> Store:
        store = open_store("memory://")
        for meta in self._first.list(""):
            found = self._first.get(meta.key)
            assert found is not None
            store.create(meta.key, found.data)
        return cast(Store, _Copy(store, self._first.url))


class _Copy:
    """A store that says it is where it was copied from: Iceberg's tables know where they lie."""

    def __init__(self, store: Store, url: str) -> None:
        self._store, self.url = store, url

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def _execute_verb(tx: lv.Transaction, operation: Operation, layout: Layout) -> Rows | None:
    """Run the operation in a transaction, by its typed verbs."""
    tables = layout.tables_of(operation)
    if isinstance(operation, Read):
        read = [(row.id, row.v) for name in tables for row in tx.read(name).collect()]
        return operation.on(tuple(sorted(read)))
    for name in tables:
        match operation:
            case Update(where):
                tx.update(name, {"v": operation.expression}, where=where.sql if where else None)
            case Delete(where):
                tx.delete(name, where=where.sql if where else None)
            case Insert((row_id, value)):
                tx.append(name, [{"id": row_id, "v": value}])
    return None


def _execute(sql: Callable[[str], Any], operation: Operation, layout: Layout) -> Rows | None:
    """Run the operation by something that runs SQL."""
    results = [sql(text) for text in sql_of(operation, layout.tables_of(operation))]
    if not isinstance(operation, Read):
        return None
    (result,) = results
    return tuple(sorted((row.id, row.v) for row in result.collect()))
