"""Clients that never heard of us, between any two of our requests.

Each snapshot that they see is a prefix of the table's commits and never changes for one version; what they
write in the midst of our transaction is neither lost nor counted twice.
"""

from collections.abc import Callable
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Protocol

import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from deltalake.exceptions import CommitFailedError

import lakevilla as lv
from lakevilla.environment import SystemEnvironment
from lakevilla.store.delayed import Delayed
from lakevilla.store.opening import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[tuple[int, int]]
Tables = dict[str, Rows]
Work = Callable[[lv.Lake], None]


class Other(Protocol):
    """A client of another kind."""

    def look(self, path: str) -> tuple[int | None, Rows]:
        """A version, if it tells one, and the rows that it holds."""
        ...


class Cold:
    """deltalake, opening the table anew."""

    def look(self, path: str) -> tuple[int | None, Rows]:
        return _seen(DeltaTable(path))


class Warm:
    """deltalake, keeping the table and following its log."""

    def __init__(self) -> None:
        self._tables: dict[str, DeltaTable] = {}

    def look(self, path: str) -> tuple[int | None, Rows]:
        table = self._tables.setdefault(path, DeltaTable(path))
        table.update_incremental()
        return _seen(table)


class Duck:
    """DuckDB's delta extension."""

    def __init__(self) -> None:
        (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("*.duckdb_extension")
        self._connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        self._connection.execute(f"LOAD '{extension}'")

    def look(self, path: str) -> tuple[int | None, Rows]:
        found = self._connection.sql(f"SELECT id, v FROM delta_scan('{path}')").fetchall()
        return None, sorted((int(key), int(value)) for key, value in found)


class Spark:
    """Spark + Delta. A look takes it seconds, so it looks again only when the log's folder has changed."""

    def __init__(self, session: "SparkSession") -> None:
        self._session = session
        self._known: dict[str, tuple[list[str], tuple[int, Rows]]] = {}

    def look(self, path: str) -> tuple[int | None, Rows]:
        names = sorted(entry.name for entry in Path(path, "_delta_log").iterdir())
        known = self._known.get(path)
        if known is None or known[0] != names:
            known = names, self._read(path)
            self._known[path] = known
        return known[1]

    def _read(self, path: str) -> tuple[int, Rows]:
        history = self._session.sql(f"DESCRIBE HISTORY delta.`{path}`")
        version = history.agg({"version": "max"}).collect()[0][0]
        frame = self._session.read.format("delta").option("versionAsOf", version).load(path)
        return int(version), sorted((row.id, row.v) for row in frame.collect())


def _seen(table: DeltaTable) -> tuple[int, Rows]:
    found = QueryBuilder().register("t", table).execute("SELECT id, v FROM t").read_all()
    return table.version(), sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))


class Watch(SystemEnvironment):
    """Runs before every request of ours: others look at the tables, and one of them may write."""

    def __init__(self, root: Path, tables: list[str], others: list[Other]) -> None:
        super().__init__()
        self._root = root
        self._tables = tables
        self._others = others
        self._lock = RLock()
        self.requests = 0
        self.write_at: int | None = None
        self.write: Callable[[str], None] | None = None
        self.seen: dict[tuple[str, int], Rows] = {}
        self.unnumbered: list[tuple[str, Rows]] = []

    def sleep(self, seconds: float) -> None:
        with self._lock:
            if self.write is not None and self.requests == self.write_at:
                self.write(str(self._root / self._tables[0]))
            self.requests += 1
            self.look()

    def look(self) -> None:
        with self._lock:
            for table in self._tables:
                for other in self._others:
                    self._note(table, other)

    def _note(self, table: str, other: Other) -> None:
        version, rows = other.look(str(self._root / table))
        if version is None:
            self.unnumbered.append((table, rows))
            return
        before = self.seen.setdefault((table, version), rows)
        assert rows == before, f"{type(other).__name__} sees another version {version} of {table}"


def _statements(lake: lv.Lake) -> None:
    """Several statements on one table, with recovery."""
    with lake.transaction(lv.R) as tx:
        tx.update("a", {"v": "v + 100"}, where="id = 1")
        tx.append("a", [{"id": 10, "v": 0}])
        tx.update("a", {"v": "v + 1"}, where="id >= 3")


def _transfer(lake: lv.Lake) -> None:
    """Two tables in one commit."""
    with lake.transaction(lv.R | lv.CT) as tx:
        tx.update("a", {"v": "v + 100"}, where="id = 1")
        tx.update("b", {"v": "v - 100"}, where="id = 1")


def _append(path: str) -> None:
    _until_it_commits(lambda: write_deltalake(path, pa.table({"id": [50], "v": [0]}), mode="append"))


def _update(path: str) -> None:
    _until_it_commits(lambda: DeltaTable(path).update(predicate="id = 1", updates={"v": "v + 1000"}))


def _until_it_commits(write: Callable[[], object]) -> None:
    """Requests of ours run side by side: one of them may commit while deltalake works, which then gives up,
    also with an append that reads nothing."""
    while True:
        try:
            write()
        except CommitFailedError:
            continue
        return


def _play(root: Path, work: Work, others: list[Other], at: int | None, write: Callable[[str], None]) -> Watch:
    """Run the work on new tables with others at every request; the watch, with a last look taken."""
    plain = open_store(str(root), {"fsync": "false"}, environment=SystemEnvironment())
    made = lv.Lake(root, engine="local", store=plain)
    for name in ("a", "b"):
        made.create(name, "id BIGINT, v BIGINT")
        made.append(name, [{"id": 1, "v": 0}, {"id": 2, "v": 0}])
        made.append(name, [{"id": 3, "v": 0}, {"id": 4, "v": 0}])
    watch = Watch(root, ["a", "b"], others)
    watch.write_at, watch.write = at, write
    work(lv.Lake(root, engine="local", store=Delayed(plain, watch, 1.0)))
    watch.look()
    return watch


def _judge(root: Path, watch: Watch) -> Tables:
    """What others saw are our versions; the tables as they are at the end."""
    lake = lv.Lake(root, engine="local")
    for (table, version), rows in watch.seen.items():
        ours = sorted((row.id, row.v) for row in lake.read(table, version=version).collect())
        assert ours == rows, f"version {version} of {table}"
    known = {(table, tuple(rows)) for (table, _), rows in watch.seen.items()}
    assert {(table, tuple(rows)) for table, rows in watch.unnumbered} <= known
    return {name: sorted((row.id, row.v) for row in lake.read(name).collect()) for name in ("a", "b")}


WORKS: dict[str, tuple[Work, Tables]] = {
    "statements": (
        _statements,
        {"a": [(1, 100), (2, 0), (3, 1), (4, 1), (10, 1)], "b": [(1, 0), (2, 0), (3, 0), (4, 0)]},
    ),
    "transfer": (
        _transfer,
        {"a": [(1, 100), (2, 0), (3, 0), (4, 0)], "b": [(1, -100), (2, 0), (3, 0), (4, 0)]},
    ),
}


@pytest.mark.parametrize("name", WORKS)
def test_readers_between_any_two_requests_see_prefixes_that_never_change(tmp_path: Path, name: str) -> None:
    work, expected = WORKS[name]
    watch = _play(tmp_path, work, [Cold(), Warm(), Duck()], None, _update)
    assert _judge(tmp_path, watch) == expected
    assert watch.requests > 8
    assert {version for table, version in watch.seen if table == "a"} == {2, 3}


@pytest.mark.parametrize("name", WORKS)
def test_update_by_deltalake_between_any_two_requests_is_neither_lost_nor_doubled(
    tmp_path: Path, name: str
) -> None:
    work, expected = WORKS[name]
    count = _play(tmp_path / "count", work, [Cold()], None, _update).requests
    after = {**expected, "a": [(1, 1100), *expected["a"][1:]]}
    for at in range(count):
        root = tmp_path / str(at)
        watch = _play(root, work, [Warm() if at % 2 else Cold()], at, _update)
        # The last requests tidy up in the background, and may come after the end or not at all.
        wrote = watch.requests > at
        assert _judge(root, watch) == (after if wrote else expected), f"deltalake wrote before request {at}"


def test_append_by_deltalake_between_any_two_requests_is_neither_lost_nor_doubled(tmp_path: Path) -> None:
    count = _play(tmp_path / "count", _transfer, [], None, _append).requests
    for at in range(count):
        root = tmp_path / str(at)
        watch = _play(root, _transfer, [Cold()], at, _append)
        rows = _judge(root, watch)["a"]
        assert len(rows) == 5, f"deltalake wrote before request {at}"
        assert (1, 100) in rows


def test_spark_and_delta_between_any_two_requests_sees_prefixes_that_never_change(
    tmp_path: Path, spark_delta: "SparkSession"
) -> None:
    def write(path: str) -> None:
        spark_delta.sql(f"UPDATE delta.`{path}` SET v = v + 1000 WHERE id = 1")

    watch = _play(tmp_path, _statements, [Spark(spark_delta), Cold()], 3, write)
    assert _judge(tmp_path, watch)["a"][0] == (1, 1100)
