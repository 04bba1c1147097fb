"""Legacy clients, between any two of our requests.

Each snapshot that they see is a prefix of the table's commits and never changes for one version; what they
write in the midst of our transaction is neither lost nor counted twice.
"""

from collections.abc import Callable
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.environment import SystemEnvironment
from lakevilla.store.delayed import Delayed
from lakevilla.store.open import open_store
from tests.legacy.clients.lookers import LOOKERS, Cold, Listed, Other, Rows, Spark
from tests.support.extent import in_turn
from tests.support.outsiders import OUTSIDERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAREHOUSE = "spark.sql.catalog.iceberg.warehouse"
Tables = dict[str, Rows]
Work = Callable[[lv.Lake], None]

FORMATS = ["delta", "iceberg"]


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


def append(table_format: str) -> Callable[[str], None]:
    """Another client adds a row."""
    return lambda path: OUTSIDERS[table_format].append(path, pa.table({"id": [50], "v": [0]}))


def update(table_format: str) -> Callable[[str], None]:
    """Another client changes a row that we change."""
    return lambda path: OUTSIDERS[table_format].update(path, {"v": "v + 1000"}, "id = 1")


def _play(
    root: Path,
    table_format: str,
    work: Work,
    others: list[Other],
    at: int | None = None,
    write: Callable[[str], None] | None = None,
) -> Watch:
    """Run the work on new tables with others at every request; the watch, with a last look taken."""
    plain = open_store(str(root), {"fsync": "false"}, environment=SystemEnvironment())
    made = lv.Lake(root, engine="local", store=plain, default_format=table_format)
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


EVERY = {"delta": 1, "iceberg": 9}
"""Before every which request of ours the other client writes: on Iceberg tables we send more."""
PARTS = 4
"""Each test of these writes is in so many parts."""


@pytest.mark.parametrize(("name", "table_format"), in_turn(dict.fromkeys(WORKS, FORMATS)))
def test_readers_between_any_two_requests_see_prefixes_that_never_change(
    tmp_path: Path, table_format: str, name: str
) -> None:
    work, expected = WORKS[name]
    watch = _play(tmp_path, table_format, work, [make() for make in LOOKERS[table_format]])
    assert _judge(tmp_path, watch) == expected
    assert watch.requests > 8
    begin = OUTSIDERS[table_format].begin
    assert {version for table, version in watch.seen if table == "a"} == {begin + 2, begin + 3}


@pytest.mark.sampled(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(("name", "table_format"), in_turn(dict.fromkeys(WORKS, FORMATS)))
def test_update_by_another_client_between_any_two_requests_is_neither_lost_nor_doubled(
    tmp_path: Path, table_format: str, name: str, part: int
) -> None:
    work, expected = WORKS[name]
    count = _play(tmp_path / "count", table_format, work, [LOOKERS[table_format][0]()]).requests
    after = {**expected, "a": [(1, 1100), *expected["a"][1:]]}
    for at in range(0, count, EVERY[table_format])[part::PARTS]:
        root = tmp_path / str(at)
        other = LOOKERS[table_format][at % 2]()
        watch = _play(root, table_format, work, [other], at, update(table_format))
        # The last requests tidy up in the background, and may come after the end or not at all.
        wrote = watch.requests > at
        assert _judge(root, watch) == (after if wrote else expected), f"they wrote before request {at}"


@pytest.mark.sampled(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("table_format", FORMATS)
def test_append_by_another_client_between_any_two_requests_is_neither_lost_nor_doubled(
    tmp_path: Path, table_format: str, part: int
) -> None:
    count = _play(tmp_path / "count", table_format, _transfer, []).requests
    for at in range(0, count, EVERY[table_format])[part::PARTS]:
        root = tmp_path / str(at)
        watch = _play(root, table_format, _transfer, [LOOKERS[table_format][0]()], at, append(table_format))
        rows = _judge(root, watch)["a"]
        assert len(rows) == (5 if watch.requests > at else 4), f"they wrote before request {at}"
        assert (1, 100) in rows


def test_spark_and_delta_between_any_two_requests_sees_prefixes_that_never_change(
    tmp_path: Path, spark_delta: "SparkSession"
) -> None:
    def write(path: str) -> None:
        spark_delta.sql(f"UPDATE delta.`{path}` SET v = v + 1000 WHERE id = 1")

    watch = _play(tmp_path, "delta", _statements, [Spark(spark_delta, "delta"), Cold()], 3, write)
    assert _judge(tmp_path, watch)["a"][0] == (1, 1100)


def test_spark_and_iceberg_between_any_two_requests_sees_prefixes_that_never_change(
    tmp_path: Path, spark_iceberg: "SparkSession"
) -> None:
    """It writes by its Hadoop catalog, which is for directories."""

    def write(path: str) -> None:
        name = f"iceberg.`{Path(path).parent.name}`.`{Path(path).name}`"
        spark_iceberg.sql(f"UPDATE {name} SET v = v + 1000 WHERE id = 1")

    root = Path(str(spark_iceberg.conf.get(WAREHOUSE)), tmp_path.name)
    watch = _play(root, "iceberg", _statements, [Spark(spark_iceberg, "iceberg"), Listed()], 3, write)
    assert _judge(root, watch)["a"][0] == (1, 1100)
