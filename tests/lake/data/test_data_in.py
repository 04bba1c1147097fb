"""Rows from wherever users have them: libraries, iterators, files; and views of them in SQL."""

import datetime as dt
import gc
import uuid
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakevilla as lv
from lakevilla.formats.registry import FORMATS


class Color(Enum):
    RED = "red"


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    lake = lv.Lake(tmp_path / "lake", engine="local", storage_options={"fsync": "false"})
    lake.create("t", "id BIGINT, s STRING")
    return lake


def rows(lake: lv.Lake, text: str = "SELECT * FROM t") -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in lake.sql(text))


class OnlyDataframeProtocol:
    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def __dataframe__(self, *args: Any, **kwargs: Any) -> Any:
        return self._frame.__dataframe__(*args, **kwargs)


SOURCES: dict[str, Callable[[], object]] = {
    "polars": lambda: pl.DataFrame({"id": [1, 2]}),
    "lazy polars": lambda: pl.LazyFrame({"id": [1, 2]}),
    "duckdb": lambda: duckdb.sql("SELECT unnest([1, 2]) AS id"),
    "generator": lambda: ({"id": number} for number in (1, 2)),
    "dataframe protocol": lambda: OnlyDataframeProtocol(pd.DataFrame({"id": [1, 2]})),
    "named index": lambda: pd.DataFrame({"s": ["x", "y"]}, index=pd.Index([1, 2], name="id")),
    "arrow stream": lambda: pa.table({"id": [1, 2]}).to_reader(),
}


@pytest.mark.parametrize("name", SOURCES)
def test_rows_of_a_library_are_appended_merged_and_made_a_table(lake: lv.Lake, name: str) -> None:
    lake.append("t", SOURCES[name]())
    assert [row[0] for row in rows(lake)] == [1, 2]
    assert lake.merge("t", SOURCES[name](), on=["id"], matched="delete") == lv.Counts(deleted=2)
    lake.create("u", SOURCES[name]())
    assert rows(lake, "SELECT id FROM u") == [(1,), (2,)]


def test_result_of_a_query_is_data(lake: lv.Lake) -> None:
    lake.append("t", lake.sql("SELECT 5L AS id"))
    lake.append("t", lake.read("t"))
    assert rows(lake) == [(5, None), (5, None)]


def test_csv_is_read_by_the_types_of_the_table(lake: lv.Lake, tmp_path: Path) -> None:
    lake.create("c", "id INT, code STRING, at TIMESTAMP, price DECIMAL(5, 2)")
    file = tmp_path / "rows.csv"
    file.write_text('id,code,at,price\n1,007,2026-01-31 12:00:00,1.5\n2,"",2026-01-31T13:00:00+01:00,\n')
    with pytest.raises(lv.InvalidInput) as mixed:
        lake.append("c", file)
    assert mixed.value.column == "at"
    file.write_text('id,code,at,price\n1,007,2026-01-31 12:00:00,1.5\n2,"",,\n3,,,2\n')
    noon = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
    lake.append("c", str(file))
    found = lake.sql("SELECT * FROM c ORDER BY id").to_dicts()
    assert [tuple(row.values())[:3] for row in found] == [(1, "007", noon), (2, "", None), (3, None, None)]
    file.write_text("id,at\n4,2026-01-31T13:00:00+01:00\n")
    lake.append("c", file)
    assert rows(lake, "SELECT at FROM c WHERE id = 4") == [(noon,)]


def test_parquet_file_is_data_and_its_path_may_be_text(
    lake: lv.Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"id": [1], "s": ["a"]}), "rows.parquet")
    lake.append("t", "rows.parquet")
    lake.merge("t", "rows.parquet", on=["id"], matched={"s": "'b'"})
    lake.create("u", Path("rows.parquet"))
    assert (rows(lake), rows(lake, "SELECT * FROM u")) == ([(1, "b")], [(1, "a")])


def test_file_that_changed_is_not_read_again_by_a_redo(lake: lv.Lake, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("id\n1\n")
    with pytest.raises(lv.Conflict, match="changed"), lake.transaction() as tx:
        tx.merge("t", file, on=["id"], not_matched={"id": "source.id"})
        file.write_text("id\n1\n2\n")
        lake.append("t", [{"id": 1}])
    assert rows(lake) == [(1, None)]


def bad_csv(folder: Path) -> Path:
    (folder / "bad.csv").write_text("id\n1\nx\n")
    return folder / "bad.csv"


MISTAKES: dict[str, tuple[Callable[[Path], object], str]] = {
    "text in a CSV": (bad_csv, "id"),
    "no such file": (lambda folder: folder / "none.parquet", ""),
    "neither data nor a file": (lambda _: "t", ""),
    "odd suffix": (lambda folder: folder / "rows.txt", ""),
    "rows that are not dicts": (lambda _: iter([1]), ""),
    "an object in pandas": (lambda _: pd.DataFrame({"id": [1], "s": [object()]}), "s"),
    "an index that would be lost": (lambda _: pd.DataFrame({"id": [1]}, index=["k"]), ""),
    "a duration": (lambda _: pl.DataFrame({"id": [dt.timedelta(1)]}), "id"),
    "text": (lambda _: [{"id": "x"}], "id"),
    "text in Arrow": (lambda _: pa.table({"id": ["x"]}), "id"),
    "unknown column": (lambda _: pl.DataFrame({"idd": [1]}), "idd"),
    "one dict": (lambda _: {"id": 1}, ""),
    "nothing": (lambda _: None, ""),
    "a lazy frame that cannot be computed": (lambda _: pl.LazyFrame({"id": [1]}).select("none"), ""),
    "a relation that fails in the middle": (lambda _: duckdb.sql("SELECT error('boom') AS id"), ""),
    "a file elsewhere": (lambda _: "s3://bucket/rows.parquet", ""),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_in_the_data_is_named_with_its_column(lake: lv.Lake, tmp_path: Path, name: str) -> None:
    make, column = MISTAKES[name]
    with pytest.raises(lv.InvalidInput) as refused:
        lake.append("t", make(tmp_path))
    assert refused.value.column == column
    assert rows(lake) == []


def test_values_of_other_types_are_what_they_are_in_sql(tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    lake.create("v", "id BIGINT, s STRING, d DATE, f FLOAT")
    lake.append(
        "v",
        [
            {"id": np.int64(1), "s": Color.RED, "d": np.datetime64("2026-01-02"), "f": np.float32(0.5)},
            {"id": 2, "s": uuid.UUID(int=1), "d": pd.NaT, "f": pd.NA},
        ],
    )
    lake.append("v", pl.DataFrame({"id": [3], "s": pl.Series(["x"], dtype=pl.Categorical)}))
    (tmp_path / "rows 1.csv").write_text("id,f\n4,0.25\n")
    lake.append("v", (tmp_path / "rows 1.csv").as_uri())
    assert rows(lake, "SELECT * FROM v ORDER BY id") == [
        (1, "red", dt.date(2026, 1, 2), 0.5),
        (2, "00000000-0000-0000-0000-000000000001", None, None),
        (3, "x", None, None),
        (4, None, None, 0.25),
    ]
    with pytest.raises(lv.InvalidInput, match="too large") as refused:
        lake.append("v", [{"f": 1e300}])
    assert refused.value.column == "f"


def test_error_of_a_generator_is_its_own(lake: lv.Lake) -> None:
    with pytest.raises(ZeroDivisionError):
        lake.append("t", ({"id": 1 // number} for number in (1, 0)))
    assert rows(lake) == []


def test_unnamed_index_that_only_counts_rows_is_left_out(lake: lv.Lake) -> None:
    frame = pd.DataFrame({"id": [1, 2, 3]})
    lake.append("t", frame[frame["id"] > 1])
    assert rows(lake) == [(2, None), (3, None)]


@pytest.mark.parametrize("on", [[], "", 5, ["id", 5], ["none"]])
def test_columns_of_a_merge_that_do_not_exist_are_refused(lake: lv.Lake, on: Any) -> None:
    with pytest.raises(lv.InvalidInput):
        lake.merge("t", [{"id": 1}], on=on, matched="delete")


def test_merge_on_columns_matches_all_of_them(lake: lv.Lake) -> None:
    lake.append("t", [{"id": 1, "s": "a"}, {"id": 1, "s": "b"}])
    lake.merge("t", [{"id": 1, "s": "a"}], on=("id", "s"), matched={"id": "7"})
    assert rows(lake) == [(1, "b"), (7, "a")]


@pytest.mark.parametrize("name", SOURCES)
def test_view_is_read_like_a_table(lake: lv.Lake, name: str) -> None:
    lake.append("t", [{"id": 2, "s": "kept"}])
    found = lake.sql("SELECT DF.id, t.s FROM df LEFT JOIN t ON t.id = df.id", views={"Df": SOURCES[name]()})
    assert sorted(map(tuple, found)) == [(1, None), (2, "kept")]


def test_view_serves_every_statement(lake: lv.Lake) -> None:
    new = [{"id": 1, "s": "a"}, {"id": 2, "s": "b"}]
    lake.sql("INSERT INTO t SELECT id, s FROM new", views={"new": new})
    lake.sql("UPDATE t SET s = 'c' WHERE id IN (SELECT id FROM new)", views={"new": new[1:]})
    lake.sql(
        "MERGE INTO t USING new ON t.id = new.id WHEN MATCHED THEN UPDATE SET s = upper(new.s)",
        views={"new": new[:1]},
    )
    lake.sql("CREATE TABLE u AS SELECT * FROM new WHERE id = :id", views={"new": new}, id=1)
    assert (rows(lake), rows(lake, "SELECT * FROM u")) == ([(1, "A"), (2, "c")], [(1, "a")])
    lake.sql("DELETE FROM t WHERE EXISTS (SELECT * FROM new WHERE new.id = t.id)", views={"new": new})
    assert rows(lake) == []


def test_view_hides_the_table_of_its_name(lake: lv.Lake) -> None:
    assert rows_of_view(lake, "SELECT id FROM t WHERE id = 9", {"t": [{"id": 9}]}) == [(9,)]
    past = lake.at(seq=1)
    assert [tuple(row) for row in past.sql("SELECT id FROM t", views={"t": [{"id": 9}]})] == [(9,)]


def rows_of_view(lake: lv.Lake, text: str, views: dict[str, object]) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in lake.sql(text, views=views)]


@pytest.mark.parametrize(
    ("text", "views"),
    [
        ("INSERT INTO t VALUES (1, 'a')", {"T": [{"id": 1}]}),
        ("DESCRIBE v", {"v": [{"id": 1}]}),
        ("SELECT * FROM v VERSION AS OF 1", {"v": [{"id": 1}]}),
        ("SELECT * FROM v", {"v": 5}),
        ("SELECT * FROM v", {"v": [{"id": 1}], "V": [{"id": 1}]}),
    ],
)
def test_view_that_cannot_mean_that_is_refused(lake: lv.Lake, text: str, views: dict[str, object]) -> None:
    with pytest.raises(lv.InvalidInput):
        lake.sql(text, views=views)


def test_view_is_read_again_by_a_redo_as_it_was(lake: lv.Lake) -> None:
    new = [{"id": 1}]
    with lake.transaction() as tx:
        merge = "MERGE INTO t USING new ON t.id = new.id WHEN NOT MATCHED THEN INSERT (id) VALUES (new.id)"
        tx.sql(merge, views={"new": new})
        new.append({"id": 2})
        lake.append("t", [{"id": 1, "s": "first"}])
    assert tx.receipt is not None
    assert (rows(lake), tx.receipt.redone) == ([(1, "first")], 1)


def test_list_needs_no_brackets_after_in(lake: lv.Lake) -> None:
    lake.append("t", [{"id": number} for number in range(5)])
    assert rows(lake, "SELECT id FROM t WHERE id IN (1)") == [(1,)]
    found = lake.sql("SELECT id FROM t WHERE id IN :ids AND id NOT IN :none", ids={1, 3}, none=[])
    assert sorted(row.id for row in found) == [1, 3]
    assert len(lake.sql("SELECT id FROM t WHERE id IN :ids", ids=[])) == 0
    with pytest.raises(lv.InvalidInput, match="list"):
        lake.sql("SELECT id FROM t WHERE id IN :ids", ids=1)


def test_uuid_time_and_timedelta_are_parameters(lake: lv.Lake) -> None:
    name, noon = uuid.UUID(int=7), dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
    lake.sql("INSERT INTO t VALUES (1, :s)", s=name)
    assert len(lake.sql("SELECT * FROM t WHERE s = :s", s=name)) == 1
    found = lake.sql(
        "SELECT :at + :more AS later, :at - :less AS earlier, CAST(:at AS DATE) + :days AS day",
        at=noon,
        more=dt.timedelta(hours=1, microseconds=5),
        less=pd.Timedelta("1ms"),
        days=dt.timedelta(days=-1),
    ).collect()[0]
    assert found.later == noon + dt.timedelta(hours=1, microseconds=5)
    assert found.earlier == noon - dt.timedelta(milliseconds=1)
    assert found.day == dt.date(2026, 1, 30)
    lake.create("clock", pa.table({"at": [dt.time(12, 0, 5)]}), format="iceberg")
    assert len(lake.sql("SELECT * FROM clock WHERE at = :at", at=dt.time(12, 0, 5))) == 1


@pytest.mark.parametrize("table_format", FORMATS)
def test_new_columns_come_with_the_rows_in_one_commit(tmp_path: Path, table_format: str) -> None:
    lake = lv.Lake(tmp_path, engine="local", default_format=table_format)
    lake.create("t", "id BIGINT, s STRING")
    before = len(lake.history("t"))
    lake.append("t", [{"id": 1, "n": 5, "s": None}], schema="merge")
    assert len(lake.history("t")) == before + 1
    lake.overwrite("t", [{"ID": 2, "x": 0.5}], where="id = 2", schema="merge")
    lake.append("t", [{"id": 3}], schema="merge")
    assert lake.read("t").columns == ["id", "s", "n", "x"]
    assert rows(lake) == [(1, None, 5, None), (2, None, None, 0.5), (3, None, None, None)]
    lake.overwrite("t", [{"id": 4, "y": "new"}], schema="merge")
    assert rows(lake) == [(4, None, None, None, "new")]


def test_unknown_columns_stay_an_error_without_a_word(lake: lv.Lake) -> None:
    with pytest.raises(lv.InvalidInput) as refused:
        lake.append("t", [{"n": 1}])
    assert refused.value.column == "n"
    with pytest.raises(lv.InvalidInput):
        lake.append("t", [{"id": 1}], schema="widen")
    with pytest.raises(lv.InvalidInput, match="append cannot replace columns"):
        lake.append("t", [{"id": 1}], schema="replace")


def test_widening_meets_a_change_of_the_same_columns_by_others(lake: lv.Lake) -> None:
    with lake.transaction() as tx:
        tx.append("t", [{"id": 1, "n": 5}], schema="merge")
        lake.add_column("t", "n", "BIGINT")
    assert rows(lake) == [(1, None, 5)]


def test_transaction_that_was_lost_warns_and_hinders_no_other(lake: lv.Lake) -> None:
    lake.transaction().append("t", [{"id": 1}])
    with pytest.warns(ResourceWarning, match="neither committed nor aborted"):
        gc.collect()
    lake.append("t", [{"id": 2}])
    assert rows(lake) == [(2, None)]


@pytest.mark.filterwarnings("error::ResourceWarning")
def test_transaction_that_ended_or_did_nothing_does_not_warn(lake: lv.Lake) -> None:
    lake.transaction()
    lake.transaction().abort()
    with lake.transaction() as tx:
        tx.append("t", [{"id": 1}])
    assert repr(tx) == f"Transaction('{tx.id}', committed, statements=1)"
    del tx
    gc.collect()


def test_spark_takes_the_same_data_views_and_parameters(tmp_path: Path, quick: Any) -> None:
    lake = lv.Lake(tmp_path / "lake", spark=quick)
    (tmp_path / "rows.csv").write_text("id,s\n1,007\n")
    lake.create("t", "id BIGINT, s STRING")
    lake.append("t", tmp_path / "rows.csv")
    lake.append("t", ({"id": number, "n": number * 2} for number in (2, 3)), schema="merge")
    lake.append("t", quick.sql("SELECT 4L AS id, 'x' AS extra"), schema="merge")
    assert lake.read("t").columns == ["id", "s", "n", "extra"]
    views = {"df": quick.sql("SELECT 1L AS id"), "frame": pl.DataFrame({"id": [1, 2, 3]})}
    text = "SELECT t.id, s, n FROM t JOIN frame USING (id) LEFT JOIN df ON df.id = t.id WHERE t.id IN :ids"
    found = lake.sql(f"{text} ORDER BY t.id", views=views, ids=[1, 3, 4]).collect()
    assert [tuple(row) for row in found] == [(1, "007", None), (3, None, 6)]
    lake.sql("DELETE FROM t WHERE id IN (SELECT id FROM df)", views={"df": quick.sql("SELECT 1L AS id")})
    lake.merge("t", pl.DataFrame({"id": [4]}), on=["id"], matched={"extra": "'y'"})
    moment = dt.datetime(2026, 1, 31, tzinfo=dt.UTC)
    row = lake.sql(
        "SELECT CAST(:at + :more AS STRING) AS later, CAST(CAST(:at AS DATE) + :days AS STRING) AS day, "
        "(SELECT max(extra) FROM t) AS extra, :name AS name",
        at=moment,
        more=dt.timedelta(microseconds=-1),
        days=dt.timedelta(days=1),
        name=uuid.UUID(int=7),
    ).collect()[0]
    assert (row.day, row.extra, row.name) == ("2026-02-01", "y", str(uuid.UUID(int=7)))
    assert row.later.endswith(":59:59.999999")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("rows.txt", "cannot read rows from 'rows.txt': a file ends in .parquet or .csv"),
        (Path("folder"), "cannot read rows from 'folder': a file ends in .parquet or .csv"),
        ({"id": [1, 2]}, "cannot read rows from a dict: give a list of dicts, or columns as pyarrow.table"),
        (7, "cannot read rows from a int: give Arrow data"),
    ],
    ids=str,
)
def test_data_that_holds_no_rows_is_named_as_it_was_given(lake: lv.Lake, data: Any, words: str) -> None:
    with pytest.raises(lv.InvalidInput) as error:
        lake.append("t", data)
    assert words in str(error.value)
