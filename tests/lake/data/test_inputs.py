"""What clients hand in survives as it is: indexes of DataFrames, comments of columns, parameters."""

import enum
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.types import StructType

import lakevilla as lv
from tests.support.iceberg_files import FilesCatalog


class Color(str, enum.Enum):  # noqa: UP042
    RED = "red'; --"


class Level(enum.IntEnum):
    HIGH = 3


class Shouted(str):
    def __str__(self) -> str:
        return self.upper() + "!"


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    return lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})


def rows(lake: lv.Lake, text: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in lake.sql(text).collect())


def frame(*names: Any) -> pd.DataFrame:
    index: Any = pd.Index([1, 2], name=names[0])
    if len(names) > 1:
        index = pd.MultiIndex.from_tuples([(1, 7), (2, 8)], names=names)
    return pd.DataFrame({"v": ["a", "b"]}, index=index)


def test_named_index_fills_the_column_of_its_name(lake: lv.Lake) -> None:
    lake.create("t", "id BIGINT, v STRING")
    lake.append("t", frame("ID"))
    lake.merge("t", frame("id"), on="target.id = source.id", matched={"v": "concat(source.v, '!')"})
    assert rows(lake, "SELECT * FROM t") == [(1, "a!"), (2, "b!")]


def test_named_index_without_a_column_is_refused(lake: lv.Lake) -> None:
    lake.create("t", "id BIGINT, v STRING")
    with pytest.raises(lv.InvalidInput, match="index"):
        lake.append("t", frame("key"))
    with pytest.raises(lv.InvalidInput):
        lake.append("t", frame("v"))
    assert rows(lake, "SELECT * FROM t") == []


def test_table_made_from_a_frame_has_its_named_index_as_columns(lake: lv.Lake) -> None:
    lake.create("t", frame("x", None))
    assert rows(lake, "SELECT x, v FROM t") == [(1, "a"), (2, "b")]
    lake.create("plain", frame(None))
    assert lake.read("plain").columns == ["v"]


BAD = {
    "two columns of one name": pd.DataFrame([[1, 2]], columns=["a", "a"]),
    "no value": pd.DataFrame({"a": [object()]}),
    "mixed values": pd.DataFrame({"a": [1, "x"]}),
}


@pytest.mark.parametrize("name", BAD)
def test_frame_that_is_not_a_table_is_refused(lake: lv.Lake, name: str) -> None:
    lake.create("t", "a STRING")
    with pytest.raises(lv.InvalidInput):
        lake.append("t", BAD[name])
    with pytest.raises(lv.InvalidInput):
        lake.create("u", BAD[name])


COMMENTED = "id INT COMMENT 'the \"id\"', s STRUCT<x: INT COMMENT 'inner'> COMMENT 'é'"


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_comments_of_columns_are_kept(tmp_path: Path, table_format: str) -> None:
    lake = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    lake.sql(f"CREATE TABLE a ({COMMENTED}) USING {table_format}")
    lake.create("b", COMMENTED, format=table_format)
    inner = pa.struct([pa.field("x", pa.int32(), metadata={"comment": "inner"})])
    fields = [
        pa.field("id", pa.int32(), metadata={"comment": 'the "id"'}),
        pa.field("s", inner, metadata={"comment": "é"}),
    ]
    lake.create("c", pa.schema(fields), format=table_format)
    lake.create("d", pa.table([[1], [None]], schema=pa.schema(fields)), format=table_format)
    lake.create("e", "id INT COMMENT 'the \"id\"'", format=table_format)
    lake.sql("ALTER TABLE e ADD COLUMNS (s STRUCT<x: INT COMMENT 'inner'> COMMENT 'é')")
    for name in "abcde":
        assert comments_of(tmp_path / name, table_format) == ['the "id"', "é", "inner"], name
    lake.sql("ALTER TABLE a ADD COLUMNS (more INT)")
    assert comments_of(tmp_path / "a", table_format)[:2] == ['the "id"', "é"]


def comments_of(place: Path, table_format: str) -> list[str | None]:
    """As other clients find them: of the columns, then of the members of the second."""
    if table_format == "delta":
        fields: list[Any] = DeltaTable(str(place)).schema().fields
        return [field.metadata.get("comment") for field in (*fields, *fields[1].type.fields)]
    model = FilesCatalog().load_table(str(place)).schema()
    struct = model.fields[1].field_type
    assert isinstance(struct, StructType)
    return [field.doc for field in (*model.fields, *struct.fields)]


MOMENT = datetime(2024, 2, 29, 1, 2, 3, 4, UTC)
VALUES: list[tuple[Any, str, Any]] = [
    (Color.RED, "STRING", "red'; --"),
    (Shouted("a"), "STRING", "a"),
    (np.str_("a"), "STRING", "a"),
    (Level.HIGH, "INT", 3),
    (np.int8(-5), "INT", -5),
    (np.uint64(2**63 - 1), "BIGINT", 2**63 - 1),
    (np.float64(0.1), "DOUBLE", 0.1),
    (np.float32(0.1), "DOUBLE", float(np.float32(0.1))),
    (np.float64("-inf"), "DOUBLE", float("-inf")),
    (np.bool_(True), "BOOLEAN", True),
    (np.bytes_(b"\xff\x01"), "BINARY", b"\xff\x01"),
    (np.datetime64("2024-02-29"), "DATE", date(2024, 2, 29)),
    (np.datetime64("2024-02-29T01:02:03.000004567"), "TIMESTAMP", MOMENT),
    (np.datetime64("NaT"), "TIMESTAMP", None),
    (pd.Timestamp("2024-02-29T01:02:03.000004567"), "TIMESTAMP", MOMENT),
    (pd.Timestamp("2024-02-29T10:02:03.000004", tz="Asia/Tokyo"), "TIMESTAMP", MOMENT),
    (pd.NaT, "TIMESTAMP", None),
    (pd.NA, "INT", None),
    (np.array([1, 2]), "ARRAY<INT>", [1, 2]),
]


@pytest.mark.parametrize("place", range(len(VALUES)), ids=[repr(value)[:40] for value, _, _ in VALUES])
def test_parameter_is_stored_as_the_value_that_it_is(lake: lv.Lake, place: int) -> None:
    value, data_type, stored = VALUES[place]
    lake.create("t", f"v {data_type}, n INT")
    with lake.transaction() as tx:
        tx.sql("INSERT INTO t VALUES (:v, 1)", v=value)
        tx.sql("UPDATE t SET n = 2 WHERE v = :v OR v IS NULL", v=value)
    assert rows(lake, "SELECT * FROM t") == [(stored, 2)]


@pytest.mark.parametrize("value", [np.timedelta64(5, "ns"), np.complex128(1j), object], ids=repr)
def test_parameter_that_sql_has_no_value_for_is_refused(lake: lv.Lake, value: Any) -> None:
    lake.create("t", "v INT")
    with pytest.raises(lv.InvalidInput):
        lake.sql("INSERT INTO t VALUES (:v)", v=value)


def test_parameters_in_a_list_are_values_too(lake: lv.Lake) -> None:
    lake.create("t", "v STRING")
    lake.sql("INSERT INTO t VALUES (:v), ('blue')", v=Color.RED)
    found = lake.sql("SELECT v FROM t WHERE v IN (:colors)", colors=[Color.RED, np.str_("x")]).collect()
    assert [row.v for row in found] == [Color.RED.value]
    assert lake.update("t", {"v": Color.RED}, where="v = 'blue'").updated == 1
    assert rows(lake, "SELECT v FROM t") == [(Color.RED.value,)] * 2


LONE = "a\ud800"
SURROGATES: dict[str, Callable[[lv.Lake], object]] = {
    "parameter": lambda lake: lake.sql("SELECT :v AS v", v=LONE),
    "statement": lambda lake: lake.sql(f"INSERT INTO t VALUES ('{LONE}')"),
    "alias": lambda lake: lake.sql(f"SELECT 1 AS `{LONE}`"),
    "condition": lambda lake: lake.delete("t", f"v = '{LONE}'"),
    "value": lambda lake: lake.append("t", [{"v": LONE}]),
    "columns": lambda lake: lake.create("u", f"`{LONE}` INT"),
    "column": lambda lake: lake.add_column("t", LONE, "INT"),
    "partition": lambda lake: lake.create("u", "a INT", partition_by=[LONE]),
    "property": lambda lake: lake.create("u", "a INT", properties={"x": LONE}),
    "comment": lambda lake: lake.create("u", "a INT", comment=LONE),
    "table": lambda lake: lake.create(LONE, "a INT"),
}


@pytest.mark.parametrize("place", SURROGATES)
def test_lone_surrogate_is_refused_wherever_text_is_given(lake: lv.Lake, place: str) -> None:
    lake.create("t", "v STRING")
    with pytest.raises(lv.InvalidInput):
        SURROGATES[place](lake)
    assert lake.tables() == ["t"]
    assert rows(lake, "SELECT * FROM t") == []


def test_column_that_one_side_of_a_merge_lacks_is_named_with_that_side() -> None:
    lake = lv.Lake("memory://", engine="local")
    lake.create("t", "id BIGINT")
    with pytest.raises(lv.InvalidInput, match=r"unknown column 'target.idd'; 'target' has no column 'idd'"):
        lake.merge("t", [{"idd": 1}], on=["idd"], matched="delete")
