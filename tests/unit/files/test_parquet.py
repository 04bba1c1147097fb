"""Large Parquet objects are fetched in parts, each neither tiny nor huge."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakevilla.files.parquet import ParquetObject
from lakevilla.store.metered import Meter
from lakevilla.store.open import open_store

ROWS = 5_000_000


@pytest.mark.parametrize(
    ("group_rows", "fetches"),
    [(ROWS, 1), (ROWS // 4, 4), (ROWS // 50, 3)],
    ids=["one group", "groups of 10 MB", "groups of 0.8 MB"],
)
def test_large_object_is_read_whole_in_bounded_fetches(group_rows: int, fetches: int) -> None:
    numbers = np.random.default_rng(0).integers(0, 1 << 62, ROWS)
    rows = pa.table({"n": numbers})
    sink = io.BytesIO()
    pq.write_table(rows, sink, row_group_size=group_rows, use_dictionary=False, compression="none")
    meter = Meter()
    store = open_store("memory://", meter=meter)
    store.put("f", sink.getvalue())

    source = ParquetObject(store, "f", sink.tell())
    opened = meter.total
    found = source.read(["n"], range(source.metadata.num_row_groups))

    assert found == rows
    assert meter.total - opened == fetches


def test_no_row_groups_give_no_rows_of_the_right_columns() -> None:
    rows = pa.table({"a": [1], "b": ["x"]})
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    store = open_store("memory://")
    store.put("f", sink.getvalue())

    found = ParquetObject(store, "f", None).read(["b"], [])

    assert (found.num_rows, found.column_names) == (0, ["b"])
