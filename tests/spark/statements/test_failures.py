"""Exceptions of Spark, pandas and Arrow in our words."""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark import SparkContext
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import lakevilla as lv
from lakevilla.engines.spark.failures import explained
from tests.golden.tables import GOLDEN, needed
from tests.spark.files.test_tables import VECTORS


def test_executors_without_lakevilla_are_told_to_install_it() -> None:
    with (
        pytest.raises(lv.InvalidInput, match="not installed in the Python of Spark's executors"),
        explained(),
    ):
        raise PythonException("Traceback\nModuleNotFoundError: No module named 'lakevilla'")


def test_failure_of_the_users_own_code_is_invalid_input() -> None:
    with pytest.raises(lv.InvalidInput, match="No module named 'theirs'"), explained():
        raise PythonException("Traceback\nModuleNotFoundError: No module named 'theirs'")


def test_what_a_task_refused_comes_in_its_own_words() -> None:
    trace = "Traceback\n  File x\nlakevilla.errors.Unsupported: f has no field ids\n"
    with pytest.raises(lv.Unsupported, match=r"^f has no field ids$"), explained():
        raise PythonException(trace)


def test_lost_file_is_corrupt_where_rows_are_asked_for(quick: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=quick)
    lake.create("t", [{"id": 1}])
    frames = [lake.read("t"), lake.sql("SELECT id + 1 AS id FROM t WHERE id > 0")]
    lost = next(tmp_path.rglob("part-*.parquet"))
    lost.unlink()
    for frame in frames:
        for action in (frame.collect, frame.toArrow, frame.toPandas, frame.show, frame.first):
            with pytest.raises(lv.Corrupt, match=lost.name):
                action()
    with pytest.raises(lv.Corrupt):
        lake.sql("UPDATE t SET id = id + 1 WHERE id > 0")


def test_damaged_file_is_named_with_the_cause_where_rows_are_asked_for(quick: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=quick)
    lake.create("t", [{"id": 1}])
    damaged = next(tmp_path.rglob("part-*.parquet"))
    damaged.write_bytes(b"\0" * damaged.stat().st_size)
    frame = lake.read("t")
    for action in (frame.collect, frame.toArrow, frame.toPandas):
        with pytest.raises(lv.Corrupt, match=f"{damaged.name}.*is not a Parquet file"):
            action()


def test_lost_file_is_corrupt_in_frames_that_are_made_of_a_result(quick: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=quick)
    lake.create("t", [{"id": 1}])
    frame = lake.read("t")
    next(tmp_path.rglob("part-*.parquet")).unlink()
    made = {
        "where": lambda: frame.where("id > 0").select("id").collect(),
        "groups": lambda: frame.groupBy("id").count().collect(),
        "aggregate": lambda: frame.agg(F.max("id")).first(),
        "join": lambda: frame.join(frame.select("id"), "id").count(),
        "iterator": lambda: list(frame.limit(1).toLocalIterator()),
        "described": lambda: frame.describe().collect(),
    }
    for work in made.values():
        with pytest.raises(lv.Corrupt):
            work()
    with pytest.raises(AnalysisException):
        frame.select("nope")


def test_frame_that_is_made_of_a_result_is_as_pyspark_has_it(quick: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=quick)
    lake.create("t", [{"id": 1}, {"id": 2}])
    frame = lake.read("t").where("id > 1")
    assert isinstance(frame, DataFrame)
    assert [row.id for row in frame.toLocalIterator()] == [2]
    assert frame.groupBy("id").agg(F.count("*").alias("n")).collect() == [(2, 1)]
    assert lake.append("t", frame) == lv.Counts(inserted=1)


@needed
def test_damaged_vector_is_corrupt_where_rows_are_asked_for(quick: Any, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / VECTORS, tmp_path / "t")
    for path in (tmp_path / "t").rglob("*.bin"):
        path.write_bytes(b"\0" * path.stat().st_size)
    lake = lv.Lake(tmp_path, spark=quick)
    with pytest.raises(lv.Corrupt):
        lake.read("t").collect()


def test_session_that_was_stopped_is_named(
    quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lv.Lake(tmp_path, spark=quick)
    lake.create("t", [{"id": 1}])
    frame = lake.read("t")
    # As `spark.stop()` leaves it, which would end the session of all tests.
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(quick.sparkContext, "_jsc", None)
    statements = ("SELECT * FROM t", "UPDATE t SET id = 2", "INSERT INTO t VALUES (3)")
    for work in (frame.collect, frame.toArrow, *(partial(lake.sql, text) for text in statements)):
        with pytest.raises(lv.InvalidInput, match="the Spark session was stopped"):
            work()


def test_failing_function_in_a_change_is_invalid_input(quick: Any, tmp_path: Path) -> None:
    def fail(value: int) -> int:
        raise ValueError(f"no {value}")

    lake = lv.Lake(tmp_path, spark=quick)
    lake.create("t", [{"id": 1}])
    quick.udf.register("fail", F.udf(fail, "bigint"))
    frame = quick.range(2).select(F.udf(fail, "bigint")("id").alias("id"))
    with pytest.raises(lv.InvalidInput, match="no 1"):
        lake.sql("UPDATE t SET id = fail(id)")
    with pytest.raises(lv.InvalidInput, match="no "):
        lake.append("t", frame)
    with pytest.raises(lv.InvalidInput, match="no "):
        lake.merge("t", frame, "target.id = source.id", matched="delete")
    with pytest.raises(lv.InvalidInput, match="no 1"):
        lake.sql("SELECT fail(id) FROM t").collect()
    with pytest.raises(lv.InvalidInput, match="no 1"):
        lake.read("t").foreach(lambda row: fail(row.id))
    assert isinstance(lake.read("t"), DataFrame)


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        ("(SELECT id FROM two)", lv.InvalidInput, "More than one row"),
        ("length(url_decode('%zz'))", lv.InvalidInput, "cannot be decoded"),
        ("length(java_method('java.lang.Integer', 'parseInt', s))", lv.LakeVillaError, "Spark failed"),
        ("length(raise_error('mine'))", lv.InvalidInput, "mine"),
    ],
)
def test_failure_inside_of_spark_is_an_error_of_ours(
    quick: Any, tmp_path: Path, value: str, kind: type[lv.LakeVillaError], words: str
) -> None:
    lake = lv.Lake(tmp_path, spark=quick)
    lake.create("t", [{"id": 1, "s": "x"}])
    lake.create("two", [{"id": 1}, {"id": 2}])
    with pytest.raises(kind, match=words):
        lake.sql(f"UPDATE t SET id = {value}")
    with pytest.raises(kind, match=words):
        lake.sql(f"SELECT {value} AS id FROM t").collect()
    assert lake.read("t").collect() == [(1, "x")]


@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame({"id": [1, "x"]}),
        pd.DataFrame([[1, 2]], columns=["id", "id"]),
        pd.DataFrame({"id": [1 + 2j]}),
        pd.DataFrame({"id": [object()]}),
        pd.DataFrame({"id": pd.arrays.SparseArray([0, 1])}),
        [{"id": "\ud800"}],
        [{"list": 5}],
    ],
    ids=range(7),
)
def test_rows_that_arrow_cannot_hold_are_invalid_input(rows: Any) -> None:
    lake = lv.Lake("memory://", engine="local")
    lake.create("t", "id BIGINT, list ARRAY<INT>")
    with pytest.raises(lv.InvalidInput):
        lake.append("t", rows)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("SELECT blance FROM accounts", "blance", "unknown column 'blance'; did you mean 'balance'?"),
        ("SELECT id FROM accounts x\nWHERE x.idd = 1", "x.idd", "did you mean 'id'?"),
        ("SELECT lenght(id) FROM accounts", "lenght", "unknown function 'lenght'; did you mean 'length'?"),
        ("UPDATE accounts SET blance = 1", "blance", "did you mean 'balance'?"),
    ],
)
def test_name_that_means_nothing_is_shown_in_the_users_text(
    quick: Any, tmp_path: Path, text: str, place: str, words: str
) -> None:
    lake = lv.Lake(tmp_path, spark=quick)
    lake.create("accounts", "id BIGINT, balance INT")
    with pytest.raises(lv.InvalidInput) as error:
        lake.sql(text)
    assert words in error.value.message
    found = error.value.position
    assert found is not None
    assert text[found.start : found.end] == place
    assert "SQLSTATE" not in str(error.value)
    assert "lakevilla_" not in str(error.value)
