"""Iceberg tables by transforms of their columns: equal rows for us and for PyIceberg, whatever is asked.

PyIceberg skips files by the partition values that we wrote: a wrong one would cost it rows.
"""

import operator
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.expressions import BooleanExpression, EqualTo, GreaterThanOrEqual, IsNull, LessThan, Reference

import lakevilla as lv
from lakevilla.environment import SystemEnvironment
from lakevilla.formats.registry import open_table
from lakevilla.predicates import Compare
from lakevilla.store.metered import KINDS
from lakevilla.store.open import open_store
from tests.support.iceberg_files import FilesCatalog

COLUMNS = (
    "id BIGINT, n INT, at TIMESTAMP, moment TIMESTAMP_NTZ, day DATE, name STRING, data BINARY, "
    "price DECIMAL(9, 2)"
)
TRANSFORMS = {
    "id": ["bucket(7, id)"],
    "n": ["bucket(3, n)", "truncate(7, n)"],
    "at": ["years(at)", "months(at)", "days(at)", "hours(at)", "bucket(4, at)"],
    "moment": ["days(moment)"],
    "day": ["years(day)", "months(day)", "days(day)", "bucket(4, day)"],
    "name": ["truncate(2, name)", "bucket(4, name)", "name"],
    "data": ["truncate(1, data)", "bucket(4, data)"],
    "price": ["truncate(150, price)", "bucket(4, price)"],
}
CASES = [(column, transform) for column, transforms in TRANSFORMS.items() for transform in transforms]
COMPARISONS: list[tuple[int, str, Any, Callable[[Any, Any], bool]]] = [
    (3, "=", EqualTo, operator.eq),
    (22, "=", EqualTo, operator.eq),
    (3, "<", LessThan, operator.lt),
    (22, ">=", GreaterThanOrEqual, operator.ge),
]
"""The row whose value is compared with; row 3 lies before 1970."""


def _row(number: int) -> dict[str, Any]:
    if number % 15 == 14:
        return {"id": number}
    moment = datetime(1968, 11, 30, 22, 59, 59, 999_999) + timedelta(days=34 * number, hours=number)
    return {
        "id": number - 20,
        "n": number * 3 - 70,
        "at": moment.replace(tzinfo=UTC),
        "moment": moment,
        "day": moment.date(),
        "name": ("ä" * (number % 3) + "ab" * (number % 4)) if number % 7 else "",
        "data": bytes([number % 5 * 50, number]),
        "price": Decimal(number * 37 - 900).scaleb(-2),
    }


ROWS = [_row(number) for number in range(30)]


def _literal(value: Any) -> str:
    match value:
        case datetime():
            return (
                f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f}Z'" if value.tzinfo else f"TIMESTAMP_NTZ '{value}'"
            )
        case date():
            return f"DATE '{value}'"
        case bytes():
            return f"X'{value.hex()}'"
        case str():
            return f"'{value}'"
    return str(value)


def _questions(column: str) -> Iterator[tuple[str, BooleanExpression, list[int]]]:
    """Conditions as we and as PyIceberg are asked, and the ids of the rows for which they are true."""
    yield (
        f"{column} IS NULL",
        IsNull(term=Reference(column)),
        sorted(row["id"] for row in ROWS if row.get(column) is None),
    )
    for number, sign, theirs, means in COMPARISONS:
        value = ROWS[number][column]
        literal = value.isoformat() if isinstance(value, date) else value
        found = [row["id"] for row in ROWS if row.get(column) is not None and means(row[column], value)]
        yield f"{column} {sign} {_literal(value)}", theirs(column, literal), sorted(found)


@pytest.mark.parametrize(("column", "transform"), CASES, ids=lambda value: value)
def test_questions_of_a_table_by_a_transform_have_the_same_answers_for_everybody(
    tmp_path: Path, column: str, transform: str
) -> None:
    lake = lv.Lake(tmp_path, engine="local")
    lake.create("t", COLUMNS, format="iceberg", partition_by=[transform])
    # Each commit brings a manifest.
    for rows in (ROWS[:10], ROWS[10:20], ROWS[20:]):
        lake.append("t", rows)
    folders = {path.parent for path in (tmp_path / "t" / "data").rglob("*.parquet")}
    assert len(folders) > 1
    theirs = FilesCatalog().load_table(str(tmp_path / "t"))
    for text, expression, wanted in _questions(column):
        assert _ids(lake.sql(f"SELECT id FROM t WHERE {text}").toArrow()) == wanted, text
        assert _ids(theirs.scan(row_filter=expression).to_arrow()) == wanted, text


def _ids(rows: pa.Table) -> list[int]:
    return sorted(rows["id"].to_pylist())


def test_rows_that_change_their_partition_move(tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, engine="local")
    by = ", ".join(["days(at)", "bucket(2, id)", "region"])
    lake.sql(f"CREATE TABLE t (id BIGINT, at TIMESTAMP, region STRING) USING iceberg PARTITIONED BY ({by})")
    lake.sql("INSERT INTO t VALUES (1, TIMESTAMP '2024-01-05 10:00:00Z', 'eu'), (2, NULL, NULL)")
    lake.sql("UPDATE t SET at = TIMESTAMP '1969-12-31 23:00:00Z', region = 'us' WHERE id = 1")
    lake.sql(
        "MERGE INTO t USING (SELECT 2 AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET region = 'eu'"
    )
    theirs = FilesCatalog().load_table(str(tmp_path / "t"))
    partitions = [task.file.partition for task in theirs.scan().plan_files()]
    assert {(one[0], one[2]) for one in partitions} == {(-1, "us"), (None, "eu")}
    assert _ids(lake.sql("SELECT id FROM t WHERE at < TIMESTAMP '1970-01-01 00:00:00Z'").toArrow()) == [1]


def test_equality_reads_one_bucket(tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, engine="local")
    lake.create("t", "id BIGINT", format="iceberg", partition_by=["bucket(8, id)"])
    lake.append("t", pa.table({"id": range(1000)}))
    table = open_table("iceberg", open_store(str(tmp_path / "t")), SystemEnvironment(), open_store)
    snapshot = table.latest()
    assert snapshot is not None
    assert len(snapshot.files(Compare(("id",), "<", 900))) == 8
    assert len(snapshot.files(Compare(("id",), "=", 500))) == 1


def test_manifests_of_other_partitions_are_neither_read_nor_written(tmp_path: Path) -> None:
    def requests(days: int, statement: str) -> int:
        """Those of a client that knows nothing of a table of so many days, each with a manifest."""
        place = tmp_path / statement[:6] / str(days)
        lake = lv.Lake(place, engine="local")
        lake.create("t", "day DATE, v BIGINT", format="iceberg", partition_by=["months(day)"])
        for number in range(days):
            lake.append("t", [{"day": date(2020 + number, 1, 1), "v": 0}])
        with lv.Lake(place, engine="local").transaction(lv.NONE) as tx:
            tx.sql(statement)
        assert tx.receipt is not None
        assert lake.sql("SELECT count(*) AS n FROM t").collect()[0].n == days
        return sum(tx.receipt.requests[kind] for kind in KINDS)

    for statement in (
        "SELECT v FROM t WHERE day = DATE '2021-01-01'",
        "UPDATE t SET v = 1 WHERE day = DATE '2021-01-01'",
    ):
        assert requests(12, statement) == requests(3, statement)
