"""Columns of any name: dots, quotes, names of Spark's own columns, and names that we use ourselves."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.engines.spark.names import Names, beside, metadata_beside

OURS = Names()
NAMES = [
    ["a.b", "x`y", "{n}", "a b", "'q'", ".", ".c"],
    ["_metadata", "__metadata", "_METADATA_"],
    [OURS.file, OURS.row, OURS.kind, OURS.deleted, OURS.refused, OURS.path],
    [OURS.found, OURS.clause, OURS.rank, OURS.value(0), OURS.old(0), OURS.bad(0), OURS.key(0), "c0", "key"],
]

MADE = list(zip(NAMES, ["delta", "iceberg", "delta", "iceberg"], strict=True))


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("columns", "made"), MADE)
def test_every_statement_works_with_columns_of_any_name(
    quick: Any, tmp_path: Path, columns: list[str], made: str
) -> None:
    run_every_statement(quick, tmp_path, columns, made)


def run_every_statement(session: Any, root: Path, columns: list[str], made: str) -> None:
    """Read and change a table with these columns in every way, and look at what is left."""
    lake = lv.Lake(root, spark=session)
    rows = {
        "id": pa.array([1, 2, 3], pa.int32()),
        **{name: pa.array([1, 2, 3], pa.int32()) for name in columns},
    }
    lake.create("t", pa.table(rows).slice(0, 2), format=made, partition_by=[columns[-1]])
    lake.append("t", session.createDataFrame(pa.table(rows).slice(2)))
    last = quoted(columns[-1])
    all_two = " AND ".join(f"{name} = 2" for name in map(quoted, columns))
    assert [row.id for row in lake.sql(f"SELECT * FROM t WHERE {all_two}").collect()] == [2]
    more = ", ".join(f"{name} = {name} + 10" for name in map(quoted, columns))
    assert lake.sql(f"UPDATE t SET {more} WHERE {last} IN (SELECT {last} FROM t)").updated == 3
    assert lake.sql(f"UPDATE t SET {last} = {last} - 10 WHERE {last} > 11").updated == 2
    one, sets = quoted(columns[0]), ", ".join(f"{quoted(name)} = s.{quoted(name)} + 1" for name in columns)
    merge = (
        f"MERGE INTO t USING (SELECT * FROM t WHERE id < 3 UNION ALL SELECT id + 20, * EXCEPT (id) FROM t) s "
        f"ON t.{one} = s.{one} AND t.id = s.id WHEN MATCHED AND s.id = 1 THEN UPDATE SET {sets} "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    )
    counts = lake.sql(merge)
    assert (counts.updated, counts.deleted, counts.inserted) == (1, 1, 3)
    assert lake.sql(f"DELETE FROM t WHERE {one} = 13 AND {last} IS NOT NULL").deleted == 2
    assert sorted(row.id for row in lake.read("t").collect()) == [1, 21, 22]
    judge = lv.Lake(root, engine="local")
    assert sorted(judge.read("t").toArrow().column("id").to_pylist()) == [1, 21, 22]


def test_our_names_differ_from_all_columns_in_any_case() -> None:
    assert beside(["id"]) == Names()
    names = beside(["LakeVilla_File", "lakevilla1_x"], ["lakevilla2_"])
    assert names.file == "lakevilla3_file"
    assert metadata_beside(["_Metadata", "__metadata"]) == "___metadata"
