"""Optimize: fewer files and the same rows, in no reader's and no appender's way."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import lakevilla as lv
from lakevilla.model import DataFile
from lakevilla.predicates import ANYTHING
from lakevilla.sql.statements import TableName
from lakevilla.transaction.redo.replay import Replay
from lakevilla.transaction.statements.compaction import Compaction
from lakevilla.transaction.statements.statement import Statement

FORMATS = pytest.mark.formats("delta", "iceberg")


def small_files(lake: lv.Lake, count: int = 6, **options: Any) -> None:
    """A table `t` of so many files of two rows, in two partitions."""
    lake.create("t", "id BIGINT, name STRING, part INT", partition_by=["part"], **options)
    for n in range(count):
        rows = [{"id": n, "name": f"n{n}", "part": n % 2}, {"id": 100 + n, "name": None, "part": n % 2}]
        lake.append("t", rows)


def rows_of(lake: lv.Lake) -> list[Any]:
    rows: list[Any] = lake.sql("SELECT * FROM t ORDER BY id").toArrow().to_pylist()
    return rows


def live_files(lake: lv.Lake) -> list[DataFile]:
    with lake.transaction() as tx:
        return list(tx._workspace.pin(TableName("t")).snapshot.files(ANYTHING))


def identities(lake: lv.Lake) -> list[str]:
    """The files of `t`, as its log knows them."""
    return [file.identity for file in live_files(lake)]


@FORMATS
def test_small_files_of_a_partition_become_one_and_rows_stay() -> None:
    lake = lv.Lake("memory://", engine="local")
    small_files(lake)
    before = rows_of(lake)
    report = lake.optimize("t")
    assert (report.before.count, report.after.count, report.removed.count, report.added.count) == (6, 2, 6, 2)
    assert report.versions == (lake.history("t")[0].version,)
    assert lake.history("t")[0].operation == "OPTIMIZE"
    assert rows_of(lake) == before
    assert lake.at(seq=lake.history()[0].seq - 1).read("t").count() == len(before)
    again = lake.optimize("t")
    assert (again.versions, again.removed.count) == ((), 0)
    assert "nothing to rewrite" in str(again)


@FORMATS
def test_condition_chooses_files_and_full_rewrites_all_of_them() -> None:
    lake = lv.Lake("memory://", engine="local")
    small_files(lake)
    (line, *_) = lake.sql("OPTIMIZE t WHERE part = :p", p=1).toArrow().column("report").to_pylist()
    assert "rewrote 3 files" in line
    assert lake.optimize("t", "part = 1").removed.count == 0
    assert lake.optimize("t", "part = 1", full=True).removed.count == 1
    assert lake.optimize("t", target_size="1 B").removed.count == 0


def test_rows_are_clustered_along_a_curve_through_the_columns(tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, engine="local")
    lake.create("t", pa.table({"x": [n % 64 for n in range(4096)], "y": [n // 64 for n in range(4096)]}))
    lake.optimize("t", zorder_by=["x", "Y"], target_size=2000)
    files = DeltaTable(str(tmp_path / "t")).file_uris()
    assert len(files) >= 4
    tables = [pq.read_table(uri.removeprefix("file://")) for uri in files]
    for name in ("x", "y"):
        spans = [len(set(rows.column(name).to_pylist())) for rows in tables]
        assert sum(spans) / len(spans) < 48, "a file holds a square of the plane, not a stripe of it"
    assert lake.sql("SELECT count(*) AS n, count(DISTINCT x * 64 + y) AS d FROM t").collect()[0] == (
        4096,
        4096,
    )


def test_deleted_rows_leave_the_files(tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, engine="local", merge_on_read=True)
    lake.create("t", pa.table({"id": list(range(1000))}))
    lake.sql("DELETE FROM t WHERE id < 30")
    assert lake.optimize("t", target_size=100).removed.count == 0, "3% of its rows are not worth a rewrite"
    lake.sql("DELETE FROM t WHERE id < 60")
    assert lake.optimize("t", target_size=100).removed.count == 1
    assert DeltaTable(str(tmp_path / "t")).count() == 940
    assert rows_of(lake)[0] == {"id": 60}


def test_delete_files_leave_an_iceberg_table_with_their_data_files() -> None:
    lake = lv.Lake("memory://", engine="local", merge_on_read=True)
    lake.create("t", pa.table({"id": list(range(200))}), format="iceberg")
    lake.sql("DELETE FROM t WHERE id < 30")
    assert [f.deletes is None for f in live_files(lake)] == [False]
    assert lake.optimize("t").removed.count == 1
    assert [f.deletes is None for f in live_files(lake)] == [True]
    assert (lake.read("t").count(), rows_of(lake)[0]) == (170, {"id": 30})


def test_table_whose_rows_have_ids_is_refused_before_anything_is_written() -> None:
    lake = lv.Lake("memory://", engine="local")
    lake.create("t", [{"id": 1}], format="iceberg", properties={"format-version": "3"})
    lake.append("t", [{"id": 2}])
    with pytest.raises(lv.Unsupported, match="rows keep their ids"):
        lake.optimize("t")
    assert len(lake.history("t")) == 2


def test_append_only_table_is_optimized_for_no_row_goes(tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, engine="local")
    small_files(lake, properties={"delta.appendOnly": "true"})
    assert lake.optimize("t").added.count == 2


@pytest.mark.parametrize("features", [lv.NONE, lv.R, lv.R | lv.CT, lv.R | lv.CT | lv.I, lv.I])
@FORMATS
def test_readers_and_appenders_are_not_redone(features: lv.Features) -> None:
    lake = lv.Lake("memory://", engine="local", features=features)
    small_files(lake)
    lake.create("sums", "total BIGINT")
    with lake.transaction() as tx:
        if features is lv.NONE:
            tx.append("t", [{"id": 7, "name": "late", "part": 1}])
        elif features is lv.R:
            tx.sql("INSERT INTO t SELECT max(id), 'late', 1 FROM t")
        else:
            total = tx.sql("SELECT sum(id) AS total FROM t").collect()[0][0]
            tx.append("sums", [{"total": total}])
        assert lake.optimize("t").added.count == 2
    assert tx.receipt.redone == 0


@FORMATS
def test_update_of_a_compacted_file_is_redone_once_and_not_lost() -> None:
    lake = lv.Lake("memory://", engine="local")
    small_files(lake)
    with lake.transaction() as tx:
        tx.sql("UPDATE t SET name = 'new' WHERE id = 2")
        lake.optimize("t")
    assert tx.receipt.redone == 1
    assert [row["name"] for row in rows_of(lake) if row["id"] == 2] == ["new"]
    assert len(rows_of(lake)) == 12


@FORMATS
def test_rows_that_moved_are_still_read() -> None:
    """A delete of a row in the new file concerns a transaction that has read the row in the old one."""
    lake = lv.Lake("memory://", engine="local")
    small_files(lake)
    lake.create("sums", "total BIGINT")

    def sum_up(features: lv.Features, between: Callable[[], object]) -> lv.Receipt:
        with lake.transaction(features) as tx:
            tx.sql("INSERT INTO sums SELECT sum(id) FROM t WHERE part = 0")
            lake.optimize("t", full=True)
            between()
        return tx.receipt

    def delete() -> None:
        lake.sql("DELETE FROM t WHERE id = 2")

    assert sum_up(lv.R | lv.CT, delete).redone == 1
    with pytest.raises(lv.Aborted):
        sum_up(lv.CT, lambda: lake.sql("DELETE FROM t WHERE id = 4"))
    assert sum_up(lv.CT, lambda: None).redone == 0
    totals = sorted(row[0] for row in lake.read("sums").collect())
    assert totals == [0 + 100 + 102 + 104, 0 + 4 + 100 + 102 + 104]


@FORMATS
def test_compaction_gives_up_files_that_others_changed_and_keeps_what_it_wrote() -> None:
    lake = lv.Lake("memory://", engine="local")
    small_files(lake, 8)
    lake.append("t", [{"id": 50, "name": "fifty", "part": 5}, {"id": 60, "name": "sixty", "part": 5}])
    files = identities(lake)
    compaction = Compaction("t", [tuple(files[:4]), tuple(files[4:])], 10**6)
    with lake.transaction() as tx:
        tx._run(Statement(compaction.run, tables=("t",)))
        first = [rewrite.added for rewrite in compaction.done]
        lake.sql("UPDATE t SET name = 'new' WHERE id = 50")
        lake.append("t", [{"id": 70, "name": "late", "part": 0}])
    kept = [rewrite.added for rewrite in compaction.done if rewrite.added in first]
    assert (tx.receipt.redone, len(kept), len(compaction.done)) == (1, 1, 2)
    names = {row["id"]: row["name"] for row in rows_of(lake)}
    assert len(names) == len(rows_of(lake)) == 19
    assert (names[50], names[60], names[70]) == ("new", "sixty", "late")


@FORMATS
def test_compaction_leaves_a_group_alone_of_which_one_file_is_left() -> None:
    lake = lv.Lake("memory://", engine="local")
    small_files(lake, 4)
    compaction = Compaction("t", [tuple(identities(lake))], 10**6)
    with lake.transaction() as tx:
        tx._run(Statement(compaction.run, tables=("t",)))
        lake.sql("DELETE FROM t WHERE id IN (0, 100, 1, 101, 2, 102)")
    assert compaction.done == ()
    assert tx.receipt.versions == {}
    assert [row["id"] for row in rows_of(lake)] == [3, 103]


def test_compaction_by_another_client_redoes_no_reader(tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, engine="local")
    small_files(lake)
    lake.create("sums", "total BIGINT")
    with lake.transaction() as tx:
        tx.sql("INSERT INTO sums SELECT sum(id) FROM t")
        DeltaTable(str(tmp_path / "t")).optimize.compact()
    assert tx.receipt.redone == 0
    assert rows_of(lake)[-1]["id"] == 105


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda lake: lake.optimize("t", zorder_by=["nme"]), "unknown column 'nme'"),
        (lambda lake: lake.optimize("t", zorder_by=["part"]), "partition column"),
        (lambda lake: lake.optimize("t", zorder_by=["id", "ID"]), "twice"),
        (lambda lake: lake.optimize("t", "nme = 1"), "unknown column 'nme'"),
        (lambda lake: lake.optimize("t", "id IN (SELECT id FROM t)"), "subquery"),
        (lambda lake: lake.optimize("t", target_size="much"), "number of bytes"),
        (lambda lake: lake.optimize("t", target_size=0), "number of bytes"),
        (lambda lake: lake.sql("OPTIMIZE t ORDER BY id"), "ZORDER BY"),
        (lambda lake: lake.sql("OPTIMIZE t WHERE"), "expected a condition"),
        (lambda lake: lake.session().sql("BEGIN; OPTIMIZE t"), "transaction of its own"),
        (lambda lake: lake.transaction().sql("OPTIMIZE t"), "not part of a transaction"),
    ],
)
def test_wrong_call_is_refused_before_anything_is_written(
    tmp_path: Path, call: Callable[[lv.Lake], object], words: str
) -> None:
    lake = lv.Lake(tmp_path, engine="local")
    small_files(lake, 2)
    with pytest.raises(lv.InvalidInput, match=words):
        call(lake)
    assert len(lake.history("t")) == 3


@pytest.mark.long
@FORMATS
def test_many_writers_lose_nothing_and_are_redone_once_for_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each writer increments rows of its own, some in files that are rewritten just then."""
    writers, turns = 8, 6
    lake = lv.Lake(tmp_path, engine="local")
    lake.create("t", "id BIGINT, v BIGINT")
    for id in range(writers):
        lake.append("t", [{"id": id, "v": 0}])
    by_compactions: Counter[tuple[str, str]] = Counter()
    redo = Replay._redo

    def noted(self: Replay, operation: Any, location: str, hit: Any) -> None:
        if operation.name != "OPTIMIZE" and "OPTIMIZE" in hit.winner.summary:
            by_compactions[self._workspace.txn, hit.winner.txn] += 1
        redo(self, operation, location, hit)

    monkeypatch.setattr(Replay, "_redo", noted)

    def write(id: int) -> None:
        mine = lv.Lake(tmp_path, engine="local")
        for turn in range(turns):
            mine.sql(f"UPDATE t SET v = v + 1 WHERE id = {id}")
            mine.append("t", [{"id": 1000 + writers * turn + id, "v": 1}])

    with ThreadPoolExecutor(writers) as pool:
        working = [pool.submit(write, id) for id in range(writers)]
        while not all(one.done() for one in working):
            lake.optimize("t")
        for one in working:
            one.result()
    rows = {row[0]: row[1] for row in lake.read("t").collect()}
    assert lake.read("t").count() == len(rows) == writers * (turns + 1)
    assert [rows[id] for id in range(writers)] == [turns] * writers
    assert max(by_compactions.values(), default=0) <= 1


def test_status_and_doctor_name_tables_that_need_it() -> None:
    lake = lv.Lake("memory://", engine="local")
    lake.create("t", "id BIGINT")
    with lake.transaction(lv.R) as tx:
        for n in range(50):
            tx.append("t", [{"id": n}])
    assert "50 files of less than 16 MiB" in lake.status().slow["t"]
    assert "lake.optimize('t')" in str(lake.status())
    assert any("lakevilla optimize" in check.advice for check in lake.doctor(probe=False).checks)
    lake.optimize("t")
    assert lake.status().slow == {}
