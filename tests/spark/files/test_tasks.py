"""What a write task does with the rows that it gets, without Spark around it."""

import gc
import pickle
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from zipfile import ZipFile
from zipimport import zipimporter

import pyarrow as pa
import pyspark
import pytest

from lakevilla.engines.spark.names import Names
from lakevilla.engines.spark.scan.file_urls import Access
from lakevilla.engines.spark.write import tasks
from lakevilla.engines.spark.write.tasks import DELETED, KEPT, UPDATED, Report, WriteTask, packed_place
from lakevilla.engines.spark.write.writer import joined
from lakevilla.errors import InvalidInput
from lakevilla.model import Partitioning

KIND, REFUSED, SOURCE_FILE = Names().kind, Names().refused, Names().file
SCHEMA = pa.schema([("id", pa.int64())])


def task(folder: Path, whole_rows: dict[int, int | None] | None = None) -> WriteTask:
    return WriteTask(
        place=packed_place(str(folder), Access()),
        schema=SCHEMA,
        partitioning=Partitioning(),
        stem="part-txn-1",
        file_bytes=1 << 20,
        file_rows=1000,
        refusals=(InvalidInput("first"), InvalidInput("second")),
        whole_rows=whole_rows,
    )


def batch(file: int, kinds: Sequence[int]) -> pa.RecordBatch:
    columns = {
        "id": pa.array(range(len(kinds)), pa.int64()),
        KIND: pa.array(kinds, pa.int32()),
        SOURCE_FILE: pa.array([file] * len(kinds), pa.int32()),
    }
    return pa.record_batch(columns)


def run(task: WriteTask, batches: Iterator[pa.RecordBatch] | list[pa.RecordBatch]) -> Report:
    (result,) = task.function()(iter(batches))
    report: Report = pickle.loads(result.column(0)[0].as_py())
    return report


def test_whole_file_without_a_change_is_not_written(tmp_path: Path) -> None:
    report = run(task(tmp_path, {0: 3}), [batch(0, [KEPT, KEPT]), batch(0, [KEPT])])
    assert report == Report()
    assert not list(tmp_path.rglob("*.parquet"))


def test_file_with_a_change_is_written_with_all_rows_but_deleted_ones(tmp_path: Path) -> None:
    batches = [batch(0, [KEPT] * 2), batch(1, [KEPT, DELETED, UPDATED]), batch(2, [KEPT])]
    report = run(task(tmp_path, {0: 2, 1: 3, 2: 1}), batches)
    assert [file.rows for file in report.written] == [2]
    assert report.changed == {1: 2}
    assert report.counts[DELETED] == report.counts[UPDATED] == 1


@pytest.mark.parametrize("whole", [{0: 5}, {0: None}], ids=["more rows elsewhere", "rows unknown"])
def test_part_of_a_file_without_a_change_counts_only_if_another_part_changes(
    tmp_path: Path, whole: dict[int, int | None]
) -> None:
    quiet = run(task(tmp_path, whole), [batch(0, [KEPT] * 3)])
    assert [number for number, _ in quiet.doubtful] == [0]
    assert joined([quiet]).added == ()
    loud = run(task(tmp_path, whole), [batch(0, [KEPT, UPDATED])])
    done = joined([quiet, loud])
    assert sorted(file.rows for file in done.added) == [2, 3]
    assert done.changed == {0}


def test_refused_row_ends_the_task_with_its_sentence(tmp_path: Path) -> None:
    rows = pa.record_batch({"id": [1, 2], REFUSED: pa.array([None, 1], pa.int32())})
    report = run(task(tmp_path), [rows])
    assert isinstance(report.refused, InvalidInput)
    with pytest.raises(InvalidInput, match="second"):
        joined([report])


def test_null_in_a_required_column_is_refused(tmp_path: Path) -> None:
    required = task(tmp_path)
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    strict = WriteTask(required.place, schema, Partitioning(), "s", 1 << 20, 1000)
    report = run(strict, [pa.record_batch({"id": pa.array([None], pa.int64())})])
    assert report.refused is not None


def test_worker_after_a_task_spares_its_modules_and_the_archive_of_pyspark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    importers: dict[str, zipimporter] = {}
    for name in ("pyspark", "users"):
        with ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            archive.writestr(f"{name}/inside/__init__.py", "")
        for path in (tmp_path / f"{name}.zip", tmp_path / f"{name}.zip" / name):
            importers[str(path)] = zipimporter(str(path))
    monkeypatch.setattr(sys, "path_importer_cache", dict(importers))
    monkeypatch.setattr(pyspark, "__file__", str(tmp_path / "pyspark.zip" / "pyspark" / "__init__.py"))
    monkeypatch.setattr(tasks, "_freeze_once", cache(gc.freeze))
    gc.unfreeze()
    try:
        run(task(tmp_path), [batch(0, [KEPT])])
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
    # The importers of other archives look again whether there is more to import.
    assert {path for path in sys.path_importer_cache if "zip" in path} == {
        path for path in importers if "users.zip" in path
    }
