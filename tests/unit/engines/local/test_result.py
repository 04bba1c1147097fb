"""Results: the verbs of a Spark DataFrame."""

import pickle
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from lakevilla.engines.local.display import double_text
from lakevilla.engines.local.result import Result, Row


def result() -> Result:
    return Result.of(
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
    Result.of(table).show(1)
    assert capsys.readouterr().out.splitlines()[3:] == [
        "|xxxxxxxxxxxxxxxxx...|",
        "+--------------------+",
        "only showing top 1 row",
        "",
    ]
    Result.of(table).show(truncate=False)
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
    Result.of(table).show(truncate=False)
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
    empty = Result(pa.schema([("a", pa.int32())]), lambda: iter([]))
    assert (empty.collect(), empty.count(), empty.toArrow().schema.names) == ([], 0, ["a"])
    empty.show()
    assert capsys.readouterr().out == "+---+\n|  a|\n+---+\n+---+\n\n"


def test_result_is_iterated_counted_and_given_to_other_libraries() -> None:
    rows = result()
    assert len(rows) == 2
    assert [row.id for row in rows] == [1, 22]
    assert pa.table(rows).equals(rows.to_arrow())
    assert rows.to_polars()["name"].to_list() == ["ann", None]
    assert duckdb.sql("SELECT max(id) FROM rows").fetchall() == [(22,)]
    assert rows.to_dicts()[0]["place"] == {"city": "Oslo", "zip": [1, None]}
    assert len(rows.to_pandas()) == 2


def test_lazy_result_is_streamed_piece_by_piece() -> None:
    read: list[int] = []

    def batches() -> Iterator[pa.Table]:
        for number in range(3):
            read.append(number)
            yield pa.table({"a": [number, number]})

    lazy = Result(pa.schema([("a", pa.int64())]), batches)
    stream = pa.RecordBatchReader.from_stream(lazy)
    assert (stream.read_next_batch().to_pydict(), read) == ({"a": [0, 0]}, [0])
    assert [row.a for row in lazy] == [0, 0, 1, 1, 2, 2]
    assert lazy.count() == 6


def test_result_shows_its_first_rows() -> None:
    text = repr(result())
    assert "| 22|NULL|" in text
    assert "only showing" not in text
    many = Result.of(pa.table({"a": range(21)}))
    assert "only showing top 20 rows" in repr(many)
    assert "only showing top 20 rows" in many._repr_html_()


def test_html_of_a_result_is_escaped() -> None:
    html = Result.of(pa.table({"<i>": ["<script>alert(1)</script>", None]}))._repr_html_()
    assert "<script>" not in html
    assert "<i>" not in html
    assert "<td>&lt;script&gt;alert(1)&lt;/script&gt;</td>" in html
    assert "<td>NULL</td>" in html


def test_result_that_python_cannot_hold_shows_its_columns() -> None:
    far = Result.of(pa.table({"day": pa.array([10**7], pa.int32()).cast(pa.date32())}))
    assert repr(far) == "Result(day: date32[day])"
    assert "Result(day: date32[day])" in far._repr_html_()
