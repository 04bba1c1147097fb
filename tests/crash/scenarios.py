"""What a client may be doing when it dies: every commit path of the lake, and what follows a death."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pyarrow as pa

from lakevilla.engines.local.engine import LocalEngine
from lakevilla.model import Features
from lakevilla.versions.owner import Owner
from sim.actors import one_table
from sim.actors.journal import run_again
from sim.actors.session import Session
from sim.checkers.history import Operation
from sim.legacy.client import place_table
from sim.suites.crash import Scenario
from tests.crash.recovery_acts import RECOVERING, read_and_write

ROWS = [{"op": 7, "part": 1}, {"op": 8, "part": 2}, {"op": 9, "part": 2}]


def append(session: Session) -> None:
    one_table.change(session, "blind", "append", None, ROWS, lambda tx: tx.append("blind", ROWS))


def update(key: int):
    def act(session: Session) -> None:
        value = 100 + len(session.history.operations)
        assigned = {"items": f"concat(items, ',{value}')"}
        statement = lambda tx: tx.update("lists", set=assigned, where=f"k = {key}")  # noqa: E731
        one_table.change(session, "lists", "list-append", key, value, statement)

    return act


def delete(session: Session) -> None:
    one_table.change(session, "blind", "delete", 2, None, lambda tx: tx.delete("blind", where="part = 2"))


def overwrite(session: Session) -> None:
    rows = [{"op": 70, "part": 2}]
    statement = lambda tx: tx.overwrite("blind", rows, where="part = 2")  # noqa: E731
    one_table.change(session, "blind", "overwrite", 2, rows, statement)


def optimize(session: Session) -> None:
    """As the base suite's statements: features NONE, so that a conflict is run again from the start."""
    session.lake._features = Features.NONE

    def run(op: Operation) -> None:
        op.version = next(iter(session.lake.optimize("blind", full=True).versions), None)

    session.perform("blind", "optimize", None, None, run)


def insert_count(session: Session) -> None:
    text = "INSERT INTO counts SELECT count(*) AS n, 7 AS op FROM counts"
    one_table.change(session, "counts", "count-insert", None, 7, lambda tx: tx.sql(text))


def insert_again(session: Session) -> None:
    value = 100 + len(session.history.operations)
    text = f"INSERT INTO counts SELECT count(*) AS n, {value} AS op FROM counts"
    one_table.change(session, "counts", "count-insert", None, value, lambda tx: tx.sql(text))


def create(session: Session) -> None:
    tag, formats = len(session.history.operations), session.client.formats
    schema = pa.schema([(f"tag_{tag}", pa.int64())])
    one_table.change(
        session, "", "create", "x", tag, lambda tx: tx.create("x", schema, format=formats.of("x"))
    )


def create_with_rows(session: Session) -> None:
    tag, formats = len(session.history.operations), session.client.formats
    rows = [{f"tag_{tag}": 1}]
    one_table.change(session, "", "create", "x", tag, lambda tx: tx.create("x", rows, format=formats.of("x")))


def drop(session: Session) -> None:
    one_table.change(session, "", "drop", "x", None, lambda tx: tx.drop("x"))


def rename(session: Session) -> None:
    to = f"r{len(session.history.operations)}"
    one_table.change(session, "", "rename", "x", to, lambda tx: tx.rename("x", to))


def place_foreign_table(session: Session) -> None:
    """A table that another client made, in a folder of the lake's root."""
    assert place_table(session.client, "foreign", (("v", "long"),))


def place_foreign_counts(session: Session) -> None:
    """The table `counts` by another client, in a lake that was never used before."""
    assert place_table(session.client, "counts", (("n", "long"), ("op", "long")))


def register(session: Session) -> None:
    one_table.change(session, "", "register", "x", None, lambda tx: tx.register("x", "foreign"))


def leave_owner(session: Session) -> None:
    """Another client that settles the same entry wrote the owner of the table first."""
    found = session.client.store.get("_lakevilla/global/HEAD.json")
    assert found is not None
    owner = Owner(json.loads(found.data)["lake"], session.lake.url, "p")
    session.client.store.create("x/_lakevilla/owner.json", owner.encode())


def appends(count: int):
    def act(session: Session) -> None:
        for number in range(count):
            rows = [{"op": 1000 + number, "part": 0}]
            statement = lambda tx, rows=rows: tx.append("blind", rows)  # noqa: E731
            one_table.change(session, "blind", "append", None, rows, statement)

    return act


def list_tables(session: Session) -> None:
    one_table.list_tables(session, session.client.environment)  # type: ignore[arg-type]


def read(session: Session) -> None:
    for table in one_table.SCHEMAS:
        one_table.audit_table(session, table)


@contextmanager
def everything_is_large() -> Iterator[None]:
    """Checkpoints are read in ranges, as those beyond some megabytes are."""
    with (
        patch("lakevilla.formats.delta.checkpoints.reader.WHOLE_BYTES", 0),
        patch("lakevilla.files.parquet.WHOLE_BYTES", 0),
    ):
        yield


SCENARIOS = [
    Scenario("append", append),
    Scenario("update", update(1)),
    Scenario("delete", delete, prepare=append),
    Scenario("overwrite", overwrite, prepare=append),
    Scenario("insert-from-query", insert_count),
    Scenario("optimize", optimize, prepare=append),
    Scenario("optimize-rebased", optimize, prepare=append, rival=append),
    Scenario("optimize-in-conflict", optimize, prepare=append, rival=delete),
    Scenario("delete-of-optimized", delete, prepare=append, rival=optimize),
    Scenario("append-rebased", append, rival=append),
    Scenario("update-rebased", update(1), rival=update(3)),
    Scenario("update-in-conflict", update(1), rival=update(1)),
    Scenario("insert-in-conflict", insert_count, rival=insert_again),
    Scenario("delete-in-conflict", delete, rival=delete),
    Scenario("checkpoint-due", append, prepare=appends(8)),
    Scenario("create", create),
    Scenario("create-with-rows", create_with_rows),
    Scenario("create-against-a-rival", create, rival=create),
    Scenario("drop", drop, prepare=create),
    Scenario("rename", rename, prepare=create),
    Scenario("register", register, prepare=place_foreign_table),
    Scenario("create-beside-a-helper", create, prepare=leave_owner),
    Scenario("first-head", create, empty=True),
    Scenario("insert-into-a-table-of-another", insert_count, prepare=place_foreign_counts, empty=True),
    Scenario("list-tables", list_tables, prepare=place_foreign_table),
    Scenario("read-after-a-checkpoint", read, prepare=appends(12)),
    Scenario("append-on-the-local-engine", append, engine=LocalEngine),
    Scenario("update-on-the-local-engine", update(1), rival=update(3), engine=LocalEngine),
    Scenario("append-after-a-large-checkpoint", append, prepare=appends(12), within=everything_is_large),
    *RECOVERING,
]


def look(session: Session) -> None:
    """A client that comes later: it reads every table, changes them, and makes and drops one of its own."""
    known = set(session.lake.tables())
    for table in sorted(known & set(one_table.SCHEMAS)):
        one_table.audit_table(session, table)
    if known >= set(one_table.SCHEMAS):
        for work in (update(1), update(3), insert_again):
            work(session)
        run_again(session, "lists", read_and_write)
    own = f"own-{session.client.name}"
    schema = pa.schema([("v", pa.int64())])
    session.lake.create(own, schema, format=session.client.formats.of(own))
    session.lake.append(own, [{"v": 1}])
    assert session.lake.read(own).count() == 1
    session.lake.drop(own)
    assert own not in session.lake.tables()
