"""What clients hand in survives on Spark as it does on the local engine."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.sql import types as spark

import lakevilla as lv
from tests.lake.data.test_inputs import LONE, VALUES, comments_of, frame


@pytest.fixture
def lake(quick: Any, tmp_path: Path) -> lv.Lake:
    return lv.Lake(tmp_path, spark=quick)


def test_parameters_are_stored_as_the_values_that_they_are_on_spark(lake: lv.Lake) -> None:
    by_type: dict[str, list[tuple[Any, Any]]] = {}
    for value, data_type, stored in VALUES:
        by_type.setdefault(data_type, []).append((value, stored))
    with lake.transaction() as tx:
        for number, (data_type, pairs) in enumerate(by_type.items()):
            tx.create(f"t{number}", f"v {data_type}, n INT")
            texts = ", ".join(f"(:v{at}, {at})" for at in range(len(pairs)))
            given = {f"v{at}": value for at, (value, _) in enumerate(pairs)}
            tx.sql(f"INSERT INTO t{number} VALUES {texts}", **given)
    judge = lv.Lake(lake.url, engine="local")
    for number, pairs in enumerate(by_type.values()):
        found = {row.n: row.v for row in judge.read(f"t{number}").collect()}
        assert found == {at: stored for at, (_, stored) in enumerate(pairs)}


def test_named_index_fills_the_column_of_its_name_on_spark(lake: lv.Lake) -> None:
    lake.create("t", "id BIGINT, v STRING")
    lake.append("t", frame("ID"))
    with pytest.raises(lv.InvalidInput, match="index"):
        lake.append("t", frame("key"))
    assert sorted(map(tuple, lake.read("t").collect())) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_comments_of_a_spark_frame_are_kept(
    quick: Any, lake: lv.Lake, tmp_path: Path, table_format: str
) -> None:
    inner = spark.StructType([spark.StructField("x", spark.IntegerType(), metadata={"comment": "inner"})])
    columns = [
        spark.StructField("id", spark.IntegerType(), metadata={"comment": "the id", "other": 5}),
        spark.StructField("s", inner, metadata={"comment": "é"}),
    ]
    lake.create("t", quick.createDataFrame([(1, (2,))], spark.StructType(columns)), format=table_format)
    assert comments_of(tmp_path / "t", table_format) == ["the id", "é", "inner"]


def test_lone_surrogate_in_a_parameter_is_refused_on_spark(lake: lv.Lake) -> None:
    with pytest.raises(lv.InvalidInput, match="surrogate U\\+D800"):
        lake.sql("SELECT :v AS v", v=LONE)


def test_overwrite_by_no_rows_removes_those_of_the_condition(quick: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=quick)
    lake.create("t", "id BIGINT, m MAP<STRING, INT>")
    lake.append("t", [{"id": 1}, {"id": 2}])
    assert lake.overwrite("t", [], "id = 1") == lv.Counts(deleted=1)
    assert [row.id for row in lake.read("t").collect()] == [2]


def test_uuids_in_data_are_text_to_spark(quick: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=quick)
    lake.create("t", [{"id": 1, "s": "x"}])
    one, other = UUID(int=1), UUID(int=2)
    inside = pa.StructArray.from_arrays([pa.array([other])], ["u"])
    rows = pa.table({"id": [1], "u": pa.array([one]), "inside": inside})
    found = lake.sql("SELECT u, inside.u AS v FROM data", views={"data": rows}).collect()
    assert found == [(str(one), str(other))]
    lake.merge("t", [{"id": 1, "u": one}], ["id"], matched={"s": "source.u"})
    assert lake.read("t").collect() == [(1, str(one))]
