"""Whether rows of a file may satisfy a predicate: the answer of pruning, row by row."""

from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakevilla.model import DataFile, Deletes
from lakevilla.predicates import ANYTHING, Compare, IsNotNull, IsNull, Predicate
from lakevilla.settle.row_test import may_hold
from lakevilla.store.open import open_store

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
ROWS = pa.table(
    {
        "id": pa.array([1, 3, None], pa.int64()),
        "f": pa.array([1.5, float("nan"), 2.5]),
        "at": pa.array([MOMENT, None, MOMENT], pa.timestamp("us", "UTC")),
        "name": pa.array(["a", "b" * 40, "c"]),
        "price": pa.array([Decimal("1.10"), None, Decimal("2.20")], pa.decimal128(9, 2)),
        "in": pa.array([{"x": 1}, None, {"x": None}], pa.struct([("x", pa.int32())])),
        "many": pa.array([[1], [2], None]),
    }
)


def holds(*predicates: Predicate, at: list[int] | None = None, deleted: list[int] | None = None) -> bool:
    store, sink = open_store("memory://"), pa.BufferOutputStream()
    pq.write_table(ROWS, sink)
    data = sink.getvalue().to_pybytes()
    store.put("f.parquet", data)
    gone = None if deleted is None else Deletes("v", len(deleted), lambda: pa.array(deleted, pa.int64()))
    file = DataFile("f.parquet", "f.parquet", len(data), 3, {"part": 7}, gone)
    schema = pa.schema([*ROWS.schema, pa.field("part", pa.int64())])
    positions = None if at is None else np.array(at, dtype=np.int64)
    return may_hold(lambda one: (store, one.key), file, schema, ["part"], predicates, positions)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (Compare(("id",), "=", 2), False),
        (Compare(("id",), "=", 3), True),
        (Compare(("id",), ">", 3), False),
        (IsNull(("id",)), True),
        (IsNull(("name",)), False),
        (IsNotNull(("in",)), True),
        (Compare(("f",), "=", 1.5), True),
        (Compare(("f",), "=", 9.5), True),
        (Compare(("at",), "=", MOMENT), True),
        (Compare(("at",), "=", MOMENT.replace(microsecond=0)), False),
        (Compare(("name",), "=", "b" * 39), False),
        (Compare(("price",), "<", Decimal("1.10")), False),
        (Compare(("in", "x"), "=", 1), True),
        (Compare(("in", "x"), "=", 2), False),
        (Compare(("many",), "=", 1), True),
        (Compare(("part",), "=", 7), True),
        (Compare(("part",), "=", 8), False),
        (Compare(("nowhere",), "=", 8), True),
        (ANYTHING, True),
    ],
    ids=str,
)
def test_row_may_match_unless_its_values_exclude_that(predicate: Predicate, expected: bool) -> None:
    assert holds(predicate) is expected


def test_chosen_rows_and_living_rows_alone_are_asked() -> None:
    three = Compare(("id",), "=", 3)
    assert holds(three, at=[1])
    assert not holds(three, at=[0, 2])
    assert not holds(three, deleted=[1])
    # Rows that went are read although they are deleted.
    assert holds(three, at=[1], deleted=[1])


def test_one_of_several_predicates_is_enough_and_without_any_nothing_is_excluded() -> None:
    assert holds(Compare(("id",), "=", 2), Compare(("name",), "=", "c"))
    assert not holds(Compare(("id",), "=", 2), Compare(("name",), "=", "d"))
    assert holds()
