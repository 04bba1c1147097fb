"""Progress of statements on the local engine: each file counts once, whatever the statement does with it."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla import progress
from lakevilla.engines.local import change, engine, scan


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[lv.Progress]:
    """Reports of statements whose every file takes a moment to read."""
    monkeypatch.setattr(progress, "SILENT_SECONDS", 0.02)
    monkeypatch.setattr(progress, "REPORT_SECONDS", 0.01)
    read_files = scan.read_files

    def slowly(*arguments: object) -> Iterator[object]:
        for table in read_files(*arguments):  # type: ignore[arg-type]
            time.sleep(0.05)
            yield table

    open_file = change.open_file

    def open_slowly(*arguments: object) -> object:
        time.sleep(0.05)
        return open_file(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(scan, "read_files", slowly)
    monkeypatch.setattr(change, "open_file", open_slowly)
    return []


@pytest.fixture
def lake(tmp_path: Path, told: list[lv.Progress]) -> lv.Lake:
    lake = lv.Lake(tmp_path, engine="local", progress=told.append, storage_options={"fsync": "false"})
    lake.create("t", "id BIGINT, name STRING")
    for start in range(4):
        lake.append("t", [{"id": start * 10 + i, "name": "x"} for i in range(10)])
    return lake


STATEMENTS = {
    "SELECT count(name) FROM t": "reading t",
    "UPDATE t SET name = 'y' WHERE id % 2 = 0": "UPDATE t",
    "DELETE FROM t WHERE id % 2 = 0": "DELETE FROM t",
    "INSERT INTO t SELECT * FROM t": "INSERT INTO t",
    "MERGE INTO t USING (SELECT 1 AS k) s ON t.id % 7 = s.k WHEN MATCHED THEN DELETE": "MERGE INTO t",
}


@pytest.mark.parametrize(("statement", "what"), STATEMENTS.items(), ids=STATEMENTS.values())
def test_slow_statement_reports_its_files_and_an_end(
    lake: lv.Lake, told: list[lv.Progress], statement: str, what: str
) -> None:
    told.clear()
    lake.sql(statement)
    mine = [one for one in told if one.what == what]
    assert mine, told
    assert [one.finished for one in mine] == [False] * (len(mine) - 1) + [True]
    assert mine[-1].total
    assert mine[-1].done == mine[-1].total
    assert mine[-1].unit == "bytes"
    assert sorted(one.done for one in mine) == [one.done for one in mine]


@pytest.mark.parametrize("is_list", [True, False])
def test_slow_rows_are_reported_as_they_are_written(
    lake: lv.Lake,
    told: list[lv.Progress],
    is_list: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write = engine.write

    def slowly(*arguments: object) -> object:
        time.sleep(0.1)
        return write(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "write", slowly)
    rows = [{"id": 1}] * 3
    told.clear()
    lake.append("t", rows if is_list else iter(rows))
    (last,) = [one for one in told if one.finished and one.what == "INSERT INTO t"]
    assert (last.done, last.unit) == (3, "rows")
    assert last.total in (3, 3 if is_list else None)


def test_lazy_read_reports_while_its_rows_are_asked_for(lake: lv.Lake, told: list[lv.Progress]) -> None:
    result = lake.read("t")
    told.clear()
    assert result.toArrow().num_rows == 40
    assert told[-1].finished
    assert told[-1].done == told[-1].total


def test_failed_statement_ends_its_report(lake: lv.Lake, told: list[lv.Progress]) -> None:
    with pytest.raises(lv.InvalidInput):
        lake.sql("SELECT CAST(name AS INT) FROM t")
    assert told[-1].finished


def test_lake_without_callback_reports_nothing(lake: lv.Lake, told: list[lv.Progress]) -> None:
    told.clear()
    lv.Lake(lake.url, engine="local").sql("SELECT count(name) FROM t")
    assert not told
