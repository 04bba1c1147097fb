"""The database that query tests ask: two people, pairs with nulls, nothing at all."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.engines.local.tables import Database, Table, schema

NAN = float("nan")
INF = float("inf")
MOMENT = datetime(2024, 2, 29, 13, 14, 15, 600_000, tzinfo=UTC)


@pytest.fixture(scope="module")
def db() -> Database:
    people = Table(
        "people",
        schema(
            id=pa.int32(),
            name=pa.string(),
            x=pa.float64(),
            d=pa.decimal128(10, 2),
            ok=pa.bool_(),
            day=pa.date32(),
            at=pa.timestamp("us", "UTC"),
            tags=pa.list_(pa.field("element", pa.string())),
            place=pa.struct([("city", pa.string()), ("zip", pa.int32())]),
            m=pa.map_(pa.string(), pa.int32()),
        ),
    )
    people.add(
        [
            row(1, "Ann", 1.5, "1.50", True, date(2024, 2, 29), MOMENT, ["a", "b"], ("Oslo", 1), {"k": 1}),
            row(2, "bob", NAN, "2.25", False, date(1969, 12, 31), None, [], ("Rome", None), {}),
        ]
    ).add(
        [
            row(3, None, None, None, None, None, None, None, None, None),
            row(4, "Ann", -0.0, "-3.10", True, date(2024, 3, 1), MOMENT, [None, "c"], ("Oslo", 4), {"k": 4}),
        ]
    )
    empty = Table("empty", schema(id=pa.int32(), x=pa.float64(), d=pa.decimal128(10, 2)))
    pairs = Table("pairs", schema(a=pa.int32(), b=pa.int64())).add(
        [{"a": 1, "b": 10}, {"a": 1, "b": 20}, {"a": 2, "b": None}, {"a": None, "b": 40}]
    )
    return Database(people, empty, pairs)


def row(number: int, *values: Any) -> dict[str, Any]:
    names = ("name", "x", "d", "ok", "day", "at", "tags", "place", "m")
    given = dict(zip(names, values, strict=True))
    given["d"] = None if given["d"] is None else Decimal(given["d"])
    given["place"] = (
        None if given["place"] is None else dict(zip(("city", "zip"), given["place"], strict=True))
    )
    given["m"] = None if given["m"] is None else list(given["m"].items())
    return {"id": number, **given}
