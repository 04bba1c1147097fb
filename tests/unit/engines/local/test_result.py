"""Results: the verbs of a Spark DataFrame."""

import pickle
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from lakevilla.engines.local.display import double_text
from lakevilla.engines.local.result import LocalResult, Row


def result() -> LocalResult:
    return LocalResult.of(
        pa.table(
            {
                "id": pa.array([1, 22], pa.int32()),
                "name": ["ann", None],
                "place": pa.array([{"city": "Oslo", "zip": [1, None]}, None]),
                "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32())),
            }
        )
    )


def test_row_is_a_tuple_with_names() -> None:
    row = result().collect()[0]
    assert row == (1, "ann", ("Oslo", [1, None]), {"k": 1})
    assert (row.id, row["name"], row[0], row.place.city) == (1, "ann", 1, "Oslo")
    assert row.asDict()["place"] == ("Oslo", [1, None])
    assert row.asDict(recursive=True)["place"] == {"city": "Oslo", "zip": [1, None]}
    assert repr(row.place) == "Row(city='Oslo', zip=[1, None])"
    assert pickle.loads(pickle.dumps(row)).name == "ann"


def test_row_without_the_name_says_so() -> None:
    row = Row((1,), ("a",))
    with pytest.raises(AttributeError):
        row.b  # noqa: B018 - the access is what fails
    with pytest.raises(KeyError):
        row["b"]


def test_other_verbs_give_the_same_rows() -> None:
    rows = result()
    assert (rows.count(), rows.columns) == (2, ["id", "name", "place", "m"])
    assert rows.toArrow().num_rows == len(rows.toPandas()) == 2
    assert rows.schema.names == rows.columns


def test_show_draws_spark_s_table(capsys: pytest.CaptureFixture[str]) -> None:
    result().show()
    assert capsys.readouterr().out == (
        "+---+----+-----------------+--------+\n"
        "| id|name|            place|       m|\n"
        "+---+----+-----------------+--------+\n"
        "|  1| ann|{Oslo, [1, NULL]}|{k -> 1}|\n"
        "| 22|NULL|             NULL|    NULL|\n"
        "+---+----+-----------------+--------+\n"
        "\n"
    )


def test_show_cuts_rows_and_long_values(capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.table({"a": ["x" * 30, "y"]})
    LocalResult.of(table).show(1)
    assert capsys.readouterr().out.splitlines()[3:] == [
        "|xxxxxxxxxxxxxxxxx...|",
        "+--------------------+",
        "only showing top 1 row",
        "",
    ]
    LocalResult.of(table).show(truncate=False)
    assert capsys.readouterr().out.splitlines()[3] == "|" + "x" * 30 + "|"


def test_values_are_written_as_spark_writes_them(capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.table(
        {
            "v": [True],
            "d": [Decimal("1.50")],
            "t": pa.array([datetime(2024, 1, 2, 3, 4, 5, 600000, tzinfo=UTC)]),
            "y": [date(2024, 1, 2)],
            "b": [b"\x01\xff"],
            "x": [1e10],
        }
    )
    LocalResult.of(table).show(truncate=False)
    line = capsys.readouterr().out.splitlines()[3]
    assert [cell.strip() for cell in line.strip("|").split("|")] == [
        "true",
        "1.50",
        "2024-01-02 03:04:05.6",
        "2024-01-02",
        "[01 FF]",
        "1.0E10",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (1234567.0, "1234567.0"),
        (12345678.9, "1.23456789E7"),
        (1e20, "1.0E20"),
        (-1.5e-7, "-1.5E-7"),
        (float("inf"), "Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_double_is_written_as_java_writes_it(value: float, text: str) -> None:
    assert double_text(value) == text


def test_empty_result_has_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    empty = LocalResult(pa.schema([("a", pa.int32())]), lambda: iter([]))
    assert (empty.collect(), empty.count(), empty.toArrow().schema.names) == ([], 0, ["a"])
    empty.show()
    assert capsys.readouterr().out == "+---+\n|  a|\n+---+\n+---+\n\n"
