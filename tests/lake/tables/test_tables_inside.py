"""Tables that are made and dropped inside a transaction of several statements (CT)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.store.metered import Meter
from tests.support.outsiders import OUTSIDERS, Outsider

pytestmark = pytest.mark.formats("delta", "iceberg")

BOTH = lv.R | lv.CT
Place = tuple[lv.Lake, Path]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A table of three rows, and where the lake lies."""
    lake = _open(tmp_path)
    lake.create("src", "id BIGINT, v BIGINT")
    lake.append("src", [{"id": number, "v": 10 * number} for number in (1, 2, 3)])
    return lake, tmp_path


@pytest.fixture
def lake(place: Place) -> lv.Lake:
    return place[0]


def _open(path: Path) -> lv.Lake:
    return lv.Lake(path, engine="local", storage_options={"fsync": "false"})


def _rows(lake: lv.Lake | lv.Transaction, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in lake.read(name).collect())


def _head(lake: lv.Lake) -> Any:
    return lake._catalog.head(Meter(), fresh=True)


@pytest.fixture
def outside(table_format: str) -> Outsider:
    """A client that knows nothing of us."""
    return OUTSIDERS[table_format]


def _seen(outside: Outsider, folder: Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in outside.rows(folder))


@pytest.mark.parametrize("features", [lv.CT, BOTH])
def test_new_table_is_written_and_read_by_later_statements_and_appears_at_the_commit(
    place: Place, features: lv.Features, outside: Outsider
) -> None:
    lake, path = place
    with lake.transaction(features) as tx:
        tx.create("t", "id BIGINT, v BIGINT")
        tx.append("t", [{"id": 7, "v": 70}])
        tx.sql("INSERT INTO t SELECT id, v FROM src WHERE id < 3")
        tx.update("t", {"v": "v + 1"}, where="id = 7")
        tx.delete("t", where="id = 2")
        assert _rows(tx, "t") == [(1, 10), (7, 71)]
        assert tx.sql("SELECT sum(t.v) AS s FROM t JOIN src ON t.id = src.id").collect() == [(10,)]
        assert [row[0] for row in tx.sql("SHOW TABLES").collect()] == ["src", "t"]
        assert lake.tables() == ["src"]
    assert tx.receipt is not None
    assert (tx.receipt.seq, tx.receipt.versions) == (3, {"t": outside.begin})
    assert lake.tables() == ["src", "t"]
    assert _rows(_open(path), "t") == _seen(outside, path / "t") == [(1, 10), (7, 71)]
    assert [entry.operation for entry in lake.history("t")] == ["TRANSACTION"]
    lake.append("t", [{"id": 8, "v": 0}])
    assert lake.outcome(tx.id).state == "committed"


def test_abort_leaves_no_table_and_drops_none(place: Place) -> None:
    lake, path = place
    with pytest.raises(ZeroDivisionError), lake.transaction(BOTH) as tx:
        tx.create("t", pa.table({"id": [1]}))
        tx.drop("src")
        raise ZeroDivisionError
    assert (lake.tables(), _open(path).tables(), len(_rows(lake, "src"))) == (["src"], ["src"], 3)
    assert not any((path / "t" / folder).exists() for folder in ("_delta_log", "metadata"))


def test_dropped_table_is_gone_for_the_transaction_and_for_others_after_it(
    place: Place, outside: Outsider
) -> None:
    lake, path = place
    lake.create("other", "id BIGINT")
    with lake.transaction(BOTH) as tx:
        tx.append("other", [{"id": 1}])
        tx.update("src", {"v": 0})
        tx.sql("DROP TABLE src")
        for statement in ("SELECT * FROM src", "INSERT INTO src VALUES (9, 9)", "DROP TABLE SRC"):
            with pytest.raises(lv.InvalidInput, match="has dropped"):
                tx.sql(statement)
        with pytest.raises(lv.InvalidInput, match="no earlier versions"):
            tx.read("src", version=0)
        tx.sql("DROP TABLE IF EXISTS src")
        assert [row[0] for row in tx.sql("SHOW TABLES").collect()] == ["other"]
        assert len(_rows(_open(path), "src")) == 3
    assert lake.tables() == _open(path).tables() == ["other"]
    with pytest.raises(lv.InvalidInput) as caught:
        lake.read("src")
    assert caught.value.table == "src"
    # Its rows are as they were: a table that goes need not be changed first.
    assert len(_seen(outside, path / "src")) == 3
    assert b"DROP TABLE" in (path / "src" / outside.entry(outside.version(path / "src"))).read_bytes()
    assert _head(lake).dropped == {"src"}
    assert lake.outcome(tx.id).state == "committed"


def test_name_that_was_dropped_can_be_made_anew_in_the_same_transaction(place: Place) -> None:
    lake, path = place
    with lake.transaction(BOTH) as tx:
        tx.sql("CREATE TABLE next AS SELECT id, v * 2 AS v FROM src")
        tx.drop("src")
        tx.sql("CREATE TABLE src AS SELECT * FROM next")
        tx.drop("next")
        assert _rows(tx, "src") == [(1, 20), (2, 40), (3, 60)]
    assert lake.tables() == ["src"]
    assert _rows(lake, "src") == _rows(_open(path), "src") == [(1, 20), (2, 40), (3, 60)]
    assert _head(lake).tables["src"].location.startswith("src-lv")


def test_found_table_is_replaced_in_a_folder_of_its_own(place: Place, outside: Outsider) -> None:
    """A table that was never registered holds its folder, although HEAD does not know it."""
    lake, path = place
    outside.create(path / "found", pa.table({"id": [1]}))
    with lake.transaction(BOTH) as tx:
        tx.drop("found")
        tx.create("found", pa.table({"id": [2]}))
    assert _rows(_open(path), "found") == [(2,)]
    assert _seen(outside, path / "found") == [(1,)]


def test_made_and_dropped_again_is_nothing(place: Place) -> None:
    lake, path = place
    with lake.transaction(BOTH) as tx:
        tx.create("t", pa.table({"id": [1]}))
        tx.drop("t")
        with pytest.raises(lv.InvalidInput, match="has dropped"):
            tx.append("t", [{"id": 1}])
    assert tx.receipt is not None
    assert (tx.receipt.versions, lake.tables()) == ({}, ["src"])
    with lake.transaction(BOTH) as tx:
        tx.create("t", pa.table({"id": [1]}))
        tx.drop("t")
        tx.create("t", pa.table({"id": [2]}))
    assert _rows(_open(path), "t") == [(2,)]


def test_rollback_to_a_savepoint_undoes_create_and_drop(place: Place) -> None:
    lake, path = place
    with lake.transaction(BOTH) as tx:
        tx.append("src", [{"id": 4, "v": 40}])
        tx.savepoint("before")
        tx.create("t", pa.table({"id": [1]}))
        tx.drop("src")
        tx.rollback_to("before")
        assert len(_rows(tx, "src")) == 4
        with pytest.raises(lv.InvalidInput) as caught:
            tx.read("t")
        assert caught.value.table == "t"
        tx.create("t", "name STRING")
        tx.append("t", [{"name": "second"}])
    assert (_rows(_open(path), "t"), len(_rows(lake, "src"))) == ([("second",)], 4)
    assert _head(lake).tables["t"].location == "t"


def test_table_of_another_client_where_ours_was_undone_is_read(place: Place) -> None:
    lake, path = place
    tx = lake.transaction(BOTH)
    tx.savepoint("before")
    tx.create("t", pa.table({"id": [1]}))
    tx.rollback_to("before")
    _open(path).create("t", pa.table({"name": ["theirs"]}))
    assert _rows(tx, "t") == [("theirs",)]
    tx.append("t", [{"name": "ours"}])
    tx.append("src", [{"id": 4, "v": 40}])
    tx.commit()
    assert _rows(lake, "t") == [("ours",), ("theirs",)]


def test_failed_create_leaves_the_name_free_for_the_transaction(lake: lv.Lake) -> None:
    with lake.transaction(BOTH) as tx:
        with pytest.raises(lv.InvalidInput):
            tx.sql("CREATE TABLE t AS SELECT nonsense FROM src")
        with pytest.raises(lv.InvalidInput) as caught:
            tx.create("SRC", "id BIGINT")
        assert caught.value.table == "src"
        tx.create("t", "id BIGINT")
        with pytest.raises(lv.InvalidInput) as caught:
            tx.create("T", "id BIGINT")
        assert caught.value.table == "t"
        tx.sql("CREATE TABLE IF NOT EXISTS t (other STRING)")
        tx.append("t", [{"id": 1}])
    assert _rows(lake, "t") == [(1,)]


def test_new_table_is_altered_before_it_has_rows(lake: lv.Lake, table_format: str) -> None:
    with lake.transaction(BOTH) as tx:
        tx.sql("CREATE TABLE t (id BIGINT) PARTITIONED BY (day DATE)")
        tx.add_column("t", "note", "STRING")
        if table_format == "delta":
            tx.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')")
            tx.sql("ALTER TABLE t ADD CONSTRAINT few CHECK (id < 100)")
        tx.sql("INSERT INTO t VALUES (1, DATE '2026-01-31', 'a')")
        if table_format == "delta":
            with pytest.raises(lv.InvalidInput) as caught:
                tx.append("t", [{"id": 100}])
            assert caught.value.rule == "few"
    assert lake.sql("SELECT id, note FROM t WHERE day = '2026-01-31'").collect() == [(1, "a")]
    lake.append("t", [{"id": 2, "note": "b"}])
    assert len(_rows(lake, "t")) == 2


def test_table_that_another_client_made_first_is_a_conflict_that_says_so(place: Place) -> None:
    lake, path = place
    tx = lake.transaction(BOTH)
    tx.create("t", pa.table({"id": [1]}))
    tx.update("src", {"v": 0})
    _open(path).create("t", pa.table({"name": ["theirs"]}))
    with pytest.raises(lv.Conflict) as caught:
        tx.commit()
    assert caught.value.table == "t"
    assert (_rows(lake, "t"), _rows(lake, "src")[0]) == ([("theirs",)], (1, 10))
    assert len(lake.history("src")) == 2


def test_run_meets_a_table_that_another_client_made_first(place: Place) -> None:
    lake, path = place

    def work(tx: lv.Transaction) -> None:
        tx.sql("CREATE TABLE IF NOT EXISTS t (id BIGINT)")
        tx.sql("INSERT INTO t VALUES (1)")
        if tx.statements == 2 and "t" not in lake.tables():
            _open(path).create("t", pa.table({"id": [7]}))

    receipt = lake.run(work, features=BOTH)
    assert (receipt.attempts, receipt.redone, _rows(lake, "t")) == (1, 2, [(1,), (7,)])


def test_table_that_another_client_dropped_first_is_a_conflict_that_says_so(place: Place) -> None:
    lake, path = place
    lake.create("other", "id BIGINT")
    tx = lake.transaction(BOTH)
    tx.drop("src")
    tx.append("other", [{"id": 1}])
    _open(path).drop("src")
    with pytest.raises(lv.Conflict) as caught:
        tx.commit()
    assert caught.value.table == "src"
    assert _rows(lake, "other") == []


def test_conflicting_statement_is_redone_while_the_create_stands(place: Place, begin: int) -> None:
    lake, path = place
    with lake.transaction(BOTH) as tx:
        tx.create("t", pa.table({"id": [1]}))
        tx.update("src", {"v": "v + 1"}, where="id = 1")
        _open(path).update("src", {"v": "v + 100"}, where="id = 1")
    assert tx.receipt is not None
    assert (tx.receipt.redone, tx.receipt.versions) == (1, {"src": begin + 3, "t": begin})
    assert (_rows(lake, "src")[0], _rows(lake, "t")) == ((1, 111), [(1,)])
    assert _head(lake).tables["t"].location == "t"


def test_create_from_a_table_that_changed_is_redone_with_all_that_was_built_on_it(
    place: Place, outside: Outsider
) -> None:
    lake, path = place
    with lake.transaction(BOTH) as tx:
        tx.sql("CREATE TABLE t AS SELECT id, v FROM src")
        tx.sql("INSERT INTO t SELECT count(*), sum(v) FROM t")
        tx.create("apart", pa.table({"id": [1]}))
        _open(path).update("src", {"v": "v + 100"}, where="id = 1")
    assert tx.receipt is not None
    assert tx.receipt.redone == 2
    assert _rows(_open(path), "t") == [(1, 110), (2, 20), (3, 30), (3, 160)]
    assert _seen(outside, path / "t") == _rows(lake, "t")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t AS SELECT id, v FROM src",
        "INSERT INTO y SELECT id, v FROM src",
        "MERGE INTO y USING src ON y.id = src.id WHEN MATCHED THEN UPDATE SET v = src.v "
        "WHEN NOT MATCHED THEN INSERT *",
    ],
)
def test_source_that_changed_is_a_conflict_without_recovery(place: Place, statement: str) -> None:
    lake, path = place
    lake.create("y", pa.table({"id": [1], "v": [0]}))
    tx = lake.transaction(lv.CT)
    tx.sql(statement)
    _open(path).update("src", {"v": "v + 100"}, where="id = 1")
    with pytest.raises(lv.Conflict, match="without recovery"):
        tx.commit()
    assert (lake.tables(), _rows(lake, "y")) == (["src", "y"], [(1, 0)])


def test_merge_from_a_table_that_changed_is_redone(place: Place) -> None:
    lake, path = place
    lake.create("y", pa.table({"id": [1], "v": [0]}))
    with lake.transaction(BOTH) as tx:
        tx.sql(
            "MERGE INTO y USING src ON y.id = src.id WHEN MATCHED THEN UPDATE SET v = src.v "
            "WHEN NOT MATCHED THEN INSERT *"
        )
        _open(path).update("src", {"v": "v + 100"}, where="id = 1")
    assert tx.receipt is not None
    assert tx.receipt.redone == 1
    assert _rows(lake, "y") == [(1, 110), (2, 20), (3, 30)]


def test_rows_of_a_stream_cannot_make_a_table_twice(place: Place) -> None:
    lake, path = place
    tx = lake.transaction(BOTH)
    tx.sql("SELECT * FROM src").collect()
    rows = pa.table({"id": [1]})
    tx.create("t", pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches()))
    tx.sql("INSERT INTO t SELECT id FROM src")
    _open(path).append("src", [{"id": 4, "v": 40}])
    with pytest.raises(lv.Conflict):
        tx.commit()
    assert lake.tables() == ["src"]


def test_client_changes_its_rows_after_the_create_and_nothing_of_it_shows(place: Place) -> None:
    lake, path = place
    rows = [{"id": 1}]
    with lake.transaction(BOTH) as tx:
        tx.sql("CREATE TABLE t AS SELECT id FROM src")
        tx.create("own", rows)
        rows.append({"id": 2})
        _open(path).append("src", [{"id": 4, "v": 40}])
    assert (_rows(lake, "own"), len(_rows(lake, "t"))) == ([(1,)], 4)


@pytest.mark.parametrize("features", [lv.NONE, lv.R])
@pytest.mark.parametrize("second", ["CREATE TABLE t (id BIGINT)", "DROP TABLE src"])
def test_without_ct_tables_are_made_and_dropped_alone(
    lake: lv.Lake, features: lv.Features, second: str
) -> None:
    with lake.transaction(features) as tx:
        tx.update("src", {"v": 0}, where="id = 1")
        with pytest.raises(lv.InvalidInput, match=r"add lakevilla\.CT"):
            tx.sql(second)
    with lake.transaction(features) as tx:
        tx.sql(second)
        with pytest.raises(lv.InvalidInput, match=r"lakevilla\.(CT|R)"):
            tx.append("src", [{"id": 9, "v": 9}])


@pytest.mark.parametrize(
    "do", [lambda tx: tx.rename("src", "dst"), lambda tx: tx.register("again", "file:///nowhere")]
)
def test_rename_and_register_are_transactions_of_their_own(
    lake: lv.Lake, do: Callable[[lv.Transaction], None]
) -> None:
    with lake.transaction(BOTH) as tx:
        tx.create("t", "id BIGINT")
        with pytest.raises(lv.InvalidInput, match="register and rename cannot be combined"):
            do(tx)
    assert lake.tables() == ["src", "t"]


def test_first_commit_of_a_lake_may_make_tables(tmp_path: Path) -> None:
    lake = _open(tmp_path / "new")
    with lake.transaction(BOTH) as tx:
        tx.create("a", pa.table({"id": [1]}))
        tx.create("b", pa.table({"id": [2]}))
    assert (_rows(lake, "a"), _rows(lake, "b"), lake.tables()) == ([(1,)], [(2,)], ["a", "b"])


def test_dropped_name_is_not_taken_for_the_table_that_was_seen_a_moment_ago(lake: lv.Lake) -> None:
    lake.create("other", "id BIGINT")
    lake.append("other", [{"id": 1}])
    lake.drop("other")
    with lake.transaction(BOTH) as tx:
        tx.append("src", [{"id": 4, "v": 40}])
        with pytest.raises(lv.InvalidInput) as caught:
            tx.append("other", [{"id": 2}])
        assert caught.value.table == "other"
