"""The measured systems, each behind one small interface, used as its own documentation says.

A `System` makes and opens tables at a place; a `Client` holds one table open, warm, as a service would, and
runs statements on it. Every read sees the newest version when it starts. To add a system, add a class here
and name it in `SYSTEMS`.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import deltalake
import pyarrow as pa

import lakevilla as lv
from bench.stores.places import Place


class Client(Protocol):
    """One open table."""

    def read_row(self, key: int) -> pa.Table:
        """The row with this `id`."""
        ...

    def update_row(self, key: int, owner: str) -> None:
        """Set the `owner` of the row with this `id`."""
        ...

    def append(self, rows: pa.Table) -> None: ...

    def scan(self) -> pa.Table:
        """The whole table, as Arrow data in memory."""
        ...


class System(Protocol):
    """A way to use tables."""

    name: str

    def load(self) -> None:
        """Load the code that the system's first use would load."""
        ...

    def create(self, place: Place, table: str, rows: pa.Table) -> Client:
        """Make a table of these rows, and open it."""
        ...

    def open(self, place: Place, table: str) -> Client:
        """Open a table that is there; as little as the system lets one do before the first statement."""
        ...


class LakeVilla:
    """LakeVilla with its local engine.

    On a directory it would wait until the disk holds what it wrote, which deltalake does not do. So it is
    told not to wait, to compare like with like, and measured once more under a name of its own as it is.
    """

    def __init__(self, name: str = "lakevilla", fsync: bool = False, format: str = "delta") -> None:
        self.name = name
        self._format = format
        self._options = {"fsync": str(fsync).lower()}

    def load(self) -> None:
        lv.Lake("memory://", engine="local", features=lv.R)

    def create(self, place: Place, table: str, rows: pa.Table) -> Client:
        client = self.open(place, f"{self.name.replace('-', '_')}_{self._format}_{table}")
        client.lake.create(client.table, rows, format=self._format)
        return client

    def open(self, place: Place, table: str) -> "LakeVillaClient":
        options = {**place.storage_options, **self._options}
        return LakeVillaClient(
            lv.Lake(place.root, engine="local", features=lv.R, storage_options=options), table
        )


class LakeVillaClient:
    """One table of a lake. `requests` is what the last statement's receipt says."""

    def __init__(self, lake: lv.Lake, table: str) -> None:
        self.lake = lake
        self.requests: Mapping[str, int] = {}
        self.table = table

    def read_row(self, key: int) -> pa.Table:
        return self._run(lambda tx: tx.sql(f"SELECT * FROM {self.table} WHERE id = {key}").toArrow())

    def update_row(self, key: int, owner: str) -> None:
        self._run(lambda tx: tx.sql(f"UPDATE {self.table} SET owner = '{owner}' WHERE id = {key}"))

    def append(self, rows: pa.Table) -> None:
        self._run(lambda tx: tx.append(self.table, rows))

    def scan(self) -> pa.Table:
        return self._run(lambda tx: tx.read(self.table).toArrow())

    def _run(self, statement: Callable[[lv.Transaction], Any]) -> Any:
        with self.lake.transaction() as tx:
            result = statement(tx)
        assert tx.receipt is not None
        self.requests = tx.receipt.requests
        return result


class Deltalake:
    """deltalake; `hold` says how a client holds a table."""

    def __init__(self, name: str, hold: Callable[[Place, str], Client]) -> None:
        self.name = name
        self.open = hold

    def load(self) -> None:
        deltalake.QueryBuilder()

    def create(self, place: Place, table: str, rows: pa.Table) -> Client:
        options = dict(place.storage_options)
        deltalake.write_deltalake(place.url(f"{self.name}/{table}"), rows, storage_options=options)
        return self.open(place, f"{self.name}/{table}")


class DeltalakeClient:
    """One `DeltaTable`, kept: it looks for new versions before it reads.

    Its two ways to read differ by the case in which is faster: the first reads try both and keep one.
    """

    def __init__(self, place: Place, table: str) -> None:
        self._table = _open(place, table)
        self._read_row = Fastest([_row_by_dataset, _row_by_query])
        self._scan = Fastest([_scan_by_dataset, _scan_by_query])

    def read_row(self, key: int) -> pa.Table:
        self._table.update_incremental()
        return self._read_row(self._table, key)

    def update_row(self, key: int, owner: str) -> None:
        self._table.update(predicate=f"id = {key}", updates={"owner": f"'{owner}'"})

    def append(self, rows: pa.Table) -> None:
        deltalake.write_deltalake(self._table, rows, mode="append")

    def scan(self) -> pa.Table:
        self._table.update_incremental()
        return self._scan(self._table)


class DeltalakeAnewClient:
    """The place of one table, opened for each statement, as scripts and functions do.

    A point read goes by a query, which stays quick for tables of many files.
    """

    def __init__(self, place: Place, table: str) -> None:
        self._open: Callable[[], deltalake.DeltaTable] = partial(_open, place, table)

    def read_row(self, key: int) -> pa.Table:
        return _row_by_query(self._open(), key)

    def update_row(self, key: int, owner: str) -> None:
        self._open().update(predicate=f"id = {key}", updates={"owner": f"'{owner}'"})

    def append(self, rows: pa.Table) -> None:
        deltalake.write_deltalake(self._open(), rows, mode="append")

    def scan(self) -> pa.Table:
        return _scan_by_dataset(self._open())


OURS = LakeVilla()
OURS_ICEBERG = LakeVilla(format="iceberg")
DURABLE = LakeVilla("lakevilla-fsync", fsync=True)
DELTALAKE = Deltalake("deltalake", DeltalakeClient)
DELTALAKE_ANEW = Deltalake("deltalake-anew", DeltalakeAnewClient)
SYSTEMS: dict[str, System] = {system.name: system for system in (OURS, DURABLE, DELTALAKE, DELTALAKE_ANEW)}


class Fastest:
    """Several ways to do one thing: each is tried three times, then the quickest is used for good."""

    def __init__(self, ways: list[Callable[..., Any]]) -> None:
        self._ways = ways

    def __call__(self, *arguments: Any) -> Any:
        if len(self._ways) > 1:
            self._ways = [min(self._ways, key=lambda way: _seconds(way, *arguments))]
        return self._ways[0](*arguments)


def _seconds(way: Callable[..., Any], *arguments: Any) -> float:
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        way(*arguments)
        taken.append(time.perf_counter() - start)
    return min(taken)


def _open(place: Place, table: str) -> deltalake.DeltaTable:
    return deltalake.DeltaTable(place.url(table), storage_options=dict(place.storage_options))


def _row_by_dataset(table: deltalake.DeltaTable, key: int) -> pa.Table:
    return table.to_pyarrow_table(filters=[("id", "=", key)])


def _row_by_query(table: deltalake.DeltaTable, key: int) -> pa.Table:
    return _query(table, f"SELECT * FROM t WHERE id = {key}")


def _scan_by_dataset(table: deltalake.DeltaTable) -> pa.Table:
    return table.to_pyarrow_table()


def _scan_by_query(table: deltalake.DeltaTable) -> pa.Table:
    return _query(table, "SELECT * FROM t")


def _query(table: deltalake.DeltaTable, text: str) -> pa.Table:
    return pa.table(deltalake.QueryBuilder().register("t", table).execute(text).read_all())
