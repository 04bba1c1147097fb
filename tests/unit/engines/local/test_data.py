"""Data in: every kind of it is appended, and results of queries as store assignment has it."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lakevilla.errors import InvalidInput
from lakevilla.model import Counts
from tests.unit.engines.local.tables import Database, Table, schema

TABLE = pa.table({"id": pa.array([1, 2], pa.int64()), "s": ["a", None]})


class Stream:
    """Any object that speaks Arrow's C interface, as polars does."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


KINDS: dict[str, Callable[[], Any]] = {
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "reader": TABLE.to_reader,
    "pandas": TABLE.to_pandas,
    "rows": TABLE.to_pylist,
    "stream": Stream,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_data_is_appended(kind: str) -> None:
    data = KINDS[kind]()
    table = Table("t", schema(ID=pa.int32(), s=pa.string(), more=pa.float64()))
    db = Database(table)
    assert db.engine.accepts(data)
    done = table.apply(db.engine.append(table.target, data))
    assert done.counts == Counts(inserted=2)
    assert db.rows("SELECT * FROM t ORDER BY id") == [(1, "a", None), (2, None, None)]


def test_result_of_a_query_is_appended_by_name_as_store_assignment_has_it() -> None:
    table = Table("t", schema(id=pa.int32(), s=pa.string(), x=pa.float64()))
    db = Database(table)
    table.apply(db.engine.append(table.target, db.run("SELECT 1.5 AS X, 7L AS id, 3 AS s")))
    assert db.rows("SELECT * FROM t") == [(7, "3", 1.5)]
    with pytest.raises(InvalidInput):
        db.engine.append(table.target, db.run("SELECT 'x' AS id"))
