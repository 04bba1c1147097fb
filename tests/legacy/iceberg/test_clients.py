"""Other clients of the Iceberg tables that we write: PyIceberg, and DuckDB's iceberg extension.

They read what we wrote with equal rows; PyIceberg also changes it, and we read on. Spark: test_spark.
"""

from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.transforms import BucketTransform, DayTransform
from pyiceberg.types import LongType, StringType

import lakevilla as lv
from bench.stores.seaweed import S3Server
from tests.legacy.clients.iceberg_readers import Rows, by_duckdb, by_pyiceberg
from tests.legacy.test_delta_clients import AWKWARD, EVERY_TYPE, every_type, sorted_rows
from tests.support.iceberg_files import FilesCatalog

Reader = Callable[..., Rows]


@pytest.fixture(params=[by_pyiceberg, by_duckdb])
def read(request: pytest.FixtureRequest) -> Reader:
    reader: Reader = request.param
    return reader


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    return _open(tmp_path)


def _open(path: Path) -> lv.Lake:
    return lv.Lake(path, engine="local", default_format="iceberg", storage_options={"fsync": "false"})


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Where the table `t` lies."""
    return str(tmp_path / "t")


def ours(lake: lv.Lake, version: int | None = None) -> Rows:
    return sorted_rows(lake.read("t", version=version).toArrow())


@pytest.mark.parametrize("format_version", ["1", "2"])
def test_every_type_is_read_as_we_wrote_it(
    lake: lv.Lake, url: str, read: Reader, format_version: str
) -> None:
    lake.create("t", every_type(), properties={"format-version": format_version})
    lake.append("t", pa.Table.from_pylist([{"id": 4, "text": "other"}], EVERY_TYPE))
    assert read(url) == ours(lake)
    assert len(ours(lake)) == 4


SIMPLE = ["flag", "whole", "single", "double", "price", "huge", "text", "raw", "day", "at", "local"]


def test_partition_values_of_every_type_are_read_as_we_wrote_them(
    lake: lv.Lake, url: str, read: Reader
) -> None:
    rows = every_type().select([*SIMPLE, "id"])
    lake.create("t", rows, partition_by=SIMPLE)
    assert read(url) == ours(lake) == sorted_rows(rows)


def test_awkward_partition_values_are_read_as_we_wrote_them(lake: lv.Lake, url: str, read: Reader) -> None:
    rows = pa.table({"p": AWKWARD, "v": list(range(len(AWKWARD)))})
    lake.create("t", rows, partition_by=["p"])
    assert read(url) == ours(lake) == sorted_rows(rows)


TRANSFORMS = [
    "bucket(4, id)",
    "bucket(3, text)",
    "truncate(2, text)",
    "truncate(10, id)",
    "truncate(50, price)",
    "years(day)",
    "months(day)",
    "days(at)",
    "hours(at)",
    "days(local)",
    "bucket(5, huge)",
    "bucket(5, at)",
    "truncate(1, raw)",
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("by", TRANSFORMS)
def test_rows_divided_by_a_transform_are_read_also_by_conditions_on_its_column(
    lake: lv.Lake, url: str, by: str
) -> None:
    rows = every_type().select([*SIMPLE, "id"])
    lake.create("t", rows, partition_by=[by])
    lake.append("t", pa.Table.from_pylist([{"id": 17, "text": "tx", "day": date(1969, 7, 20)}], rows.schema))
    lake.sql("UPDATE t SET flag = false WHERE id = 3")
    assert by_pyiceberg(url) == by_duckdb(url) == ours(lake)
    table = FilesCatalog().load_table(url)
    for condition in ("id = 17", "text = 'tx'", "day < '1970-01-01'", "text is null", "price < 0", "id > 3"):
        found = table.scan(row_filter=condition).to_arrow()
        assert sorted_rows(found) == sorted_rows(lake.sql(f"SELECT * FROM t WHERE {condition}").toArrow())
        assert len(found) in (1, 2), condition


def test_every_version_of_updates_deletes_and_merges_is_read_alike(
    lake: lv.Lake, url: str, read: Reader
) -> None:
    lake.create("t", "id BIGINT, v STRING, p STRING", partition_by=["p"])
    lake.append("t", _simple(1, 2, 3))
    lake.append("t", _simple(4, 5, p=None))
    lake.sql("UPDATE t SET v = 'changed' WHERE id IN (2, 4)")
    lake.delete("t", "id = 3")
    lake.merge(
        "t", _simple(5, 9, v="merged"), "source.id = target.id", matched="update", not_matched="insert"
    )
    lake.overwrite("t", _simple(1, v="over"), where="id = 1")
    lake.sql("DELETE FROM t")
    lake.append("t", _simple(7))
    with lake.transaction(lv.R) as tx:
        tx.append("t", _simple(8))
        tx.update("t", {"v": "'both'"}, where="id > 6")
    counts = [len(ours(lake, version)) for version in range(1, 11)]
    assert counts == [0, 3, 5, 5, 4, 5, 5, 0, 1, 2]
    for version in range(1, 11):
        assert read(url, version) == ours(lake, version), version


def _simple(*numbers: int, v: str = "new", p: str | None = "a b") -> pa.Table:
    count = len(numbers)
    schema = pa.schema([("id", pa.int64()), ("v", pa.string()), ("p", pa.string())])
    return pa.table({"id": list(numbers), "v": [v] * count, "p": [p] * count}, schema)


def test_columns_that_we_added_renamed_and_dropped_are_read_by_their_new_names(
    lake: lv.Lake, url: str, read: Reader
) -> None:
    lake.create("t", "a BIGINT, s STRUCT<x: STRING>, gone BIGINT, p STRING", partition_by=["p"])
    lake.append("t", pa.table({"a": [1], "s": [{"x": "q"}], "gone": [7], "p": ["k"]}))
    lake.sql("ALTER TABLE t RENAME COLUMN a TO b")
    lake.sql("ALTER TABLE t RENAME COLUMN p TO part")
    lake.sql("ALTER TABLE t DROP COLUMN gone")
    lake.add_column("t", "gone", "STRING")
    lake.sql("INSERT INTO t (b, s, part, gone) VALUES (2, struct('r'), NULL, 'new')")
    expected = [
        {"b": 1, "s": {"x": "q"}, "part": "k", "gone": None},
        {"b": 2, "s": {"x": "r"}, "part": None, "gone": "new"},
    ]
    assert read(url) == sorted(expected, key=repr) == ours(lake)
    lake.sql("UPDATE t SET b = 10 WHERE part = 'k'")
    assert read(url) == ours(lake)


def test_snapshots_tell_counts_parents_and_who_wrote_them(lake: lv.Lake, url: str) -> None:
    lake.create("t", _simple(1, 2, 3))
    lake.append("t", _simple(4))
    lake.delete("t", "id <= 3")
    table = FilesCatalog().load_table(url)
    snapshots = [(s.summary.operation.value, s.summary["total-records"]) for s in table.snapshots()]  # type: ignore[index,union-attr]
    assert snapshots == [("append", "3"), ("append", "4"), ("delete", "1")]
    parents = [snapshot.parent_snapshot_id for snapshot in table.snapshots()]
    assert parents == [None, *(snapshot.snapshot_id for snapshot in table.snapshots()[:-1])]
    counts = [table.scan(snapshot_id=snapshot.snapshot_id).count() for snapshot in table.snapshots()]
    assert counts == [3, 4, 1]
    assert {snapshot.summary["engine-name"] for snapshot in table.snapshots()} == {"lakevilla"}  # type: ignore[index]


def test_pyiceberg_appends_overwrites_deletes_and_upserts_and_we_go_on(lake: lv.Lake, url: str) -> None:
    lake.create("t", _simple(1, 2, 3), partition_by=["p"])
    theirs = FilesCatalog()
    theirs.load_table(url).append(_simple(4, 5, p="c/d"))
    theirs.load_table(url).delete("id = 3")
    theirs.load_table(url).overwrite(_simple(2, v="over"), overwrite_filter="id = 2")
    theirs.load_table(url).upsert(_simple(1, 9, v="upserted"), join_cols=["id"])
    expected = {(1, "upserted"), (2, "over"), (4, "new"), (5, "new"), (9, "upserted")}
    assert {(row["id"], row["v"]) for row in ours(lake)} == expected
    lake.update("t", {"v": "'ours'"}, "id IN (2, 4)")
    lake.delete("t", "id = 5")
    theirs.load_table(url).append(_simple(10, p=None))
    with lake.transaction() as tx:
        tx.update("t", {"v": "'late'"}, "id >= 9")
        theirs.load_table(url).append(_simple(11))
    expected = {(1, "upserted"), (2, "ours"), (4, "ours"), (9, "late"), (10, "late"), (11, "late")}
    assert {(row["id"], row["v"]) for row in ours(lake)} == expected
    assert by_pyiceberg(url) == by_duckdb(url) == ours(lake) == ours(_open(Path(url).parent))


def test_pyiceberg_changes_columns_and_partitioning_and_we_go_on(lake: lv.Lake, url: str) -> None:
    lake.create("t", "id INT, at TIMESTAMP, v STRING", partition_by=["v"])
    lake.sql("INSERT INTO t VALUES (1, TIMESTAMP '2026-01-02 03:04:05', 'a')")
    table = FilesCatalog().load_table(url)
    with table.update_schema() as update:
        update.rename_column("v", "w").add_column("note", StringType(), "a note").update_column(
            "id", LongType()
        )
    with table.update_spec() as spec:
        spec.remove_field("v").add_field("at", DayTransform()).add_field("id", BucketTransform(4), "kind")
    lake.sql("INSERT INTO t VALUES (5000000000, TIMESTAMP '2026-01-03 03:04:05', 'b', 'n')")
    lake.sql("UPDATE t SET note = 'old' WHERE w = 'a'")
    assert by_pyiceberg(url) == by_duckdb(url) == ours(lake)
    assert {(row["id"], row["w"], row["note"]) for row in ours(lake)} == {
        (1, "a", "old"),
        (5 * 10**9, "b", "n"),
    }
    assert ours(lake, 1) == by_pyiceberg(url, 1)
    assert [entry.operation for entry in lake.history("t")][2:4] == ["ALTER TABLE", "ALTER TABLE"]
    files = FilesCatalog().load_table(url).inspect.files().to_pylist()
    assert {file["spec_id"] for file in files} == {1}, "what we wrote goes by the new partitioning"


def test_pyiceberg_expires_snapshots_and_we_go_on(lake: lv.Lake, url: str) -> None:
    lake.create("t", _simple(1))
    for number in range(2, 5):
        lake.append("t", _simple(number))
    table = FilesCatalog().load_table(url)
    old = [snapshot.snapshot_id for snapshot in table.snapshots()][:2]
    table.maintenance.expire_snapshots().by_ids(old).commit()
    assert ours(lake) == ours(_open(Path(url).parent)) == sorted_rows(_simple(1, 2, 3, 4))
    lake.sql("UPDATE t SET v = 'late' WHERE id = 1")
    assert by_pyiceberg(url) == ours(lake)
    assert len(FilesCatalog().load_table(url).snapshots()) == 3


def test_table_that_pyiceberg_made_is_registered_and_changed_by_both(tmp_path: Path, read: Reader) -> None:
    url = (tmp_path / "far away" / "t").as_uri().replace("%20", " ")
    theirs = FilesCatalog()
    theirs.create(url, _simple().schema, properties={"owner": "them"}).append(_simple(1, 2))
    lake = _open(tmp_path / "lake")
    lake.register("t", (tmp_path / "far away" / "t").as_uri())
    assert ours(lake) == sorted_rows(_simple(1, 2))
    lake.sql("UPDATE t SET v = 'ours' WHERE id = 1")
    theirs.load_table(url).append(_simple(3))
    lake.delete("t", "id = 2")
    expected = pa.concat_tables([_simple(1, v="ours"), _simple(3)])
    assert read(url) == ours(lake) == sorted_rows(expected)
    assert theirs.load_table(url).properties["owner"] == "them"


def test_an_old_missing_or_padded_hint_leads_us_to_the_newest_version(lake: lv.Lake, url: str) -> None:
    lake.create("t", _simple(1))
    for number in range(2, 5):
        lake.append("t", _simple(number))
    hint = Path(url, "metadata", "version-hint.text")
    assert hint.read_text() == "4"
    for text in ("1", " 2\n", "99", "nonsense", ""):
        hint.write_text(text)
        assert len(ours(_open(Path(url).parent))) == 4, text
    hint.unlink()
    assert len(ours(_open(Path(url).parent))) == 4


def test_times_that_we_wrote_are_found_by_their_days(lake: lv.Lake, url: str) -> None:
    lake.create("t", "at TIMESTAMP, local TIMESTAMP_NTZ, id INT", partition_by=["days(at)", "hours(local)"])
    before = "TIMESTAMP '1969-12-31 23:59:59.999999', TIMESTAMP_NTZ '1969-12-31 23:30:00'"
    lake.sql(f"INSERT INTO t VALUES ({before}, 1)")
    lake.sql("INSERT INTO t VALUES (TIMESTAMP '2026-01-02 00:00:00', TIMESTAMP_NTZ '2026-01-02 00:00:00', 2)")
    partitions = FilesCatalog().load_table(url).inspect.files().to_pylist()
    assert sorted(tuple(file["partition"].values()) for file in partitions) == [
        (date(1969, 12, 31), -1),
        (date(2026, 1, 2), 490920),
    ]
    found = FilesCatalog().load_table(url).scan(row_filter="local < '1970-01-01T00:00:00'").to_arrow()
    assert found["local"].to_pylist() == [datetime(1969, 12, 31, 23, 30)]


def test_the_same_round_on_s3(s3: S3Server) -> None:
    root, options = s3.new_url(), s3.storage_options
    lake = lv.Lake(root, engine="local", default_format="iceberg", storage_options=options)
    lake.create("t", _simple(1, 2, p="ü/%"), partition_by=["p"])
    for number in range(3, 5):
        lake.append("t", _simple(number))
    lake.sql("UPDATE t SET v = 'ours' WHERE id = 1")
    url, theirs = f"{root}/t", FilesCatalog(options)
    assert by_pyiceberg(url, options=options) == by_duckdb(url, options=options) == ours(lake)
    theirs.load_table(url).append(_simple(9))
    theirs.load_table(url).delete("id = 2")
    lake.sql("UPDATE t SET v = 'late' WHERE id = 9")
    found = {(row["id"], row["v"]) for row in ours(lake)}
    assert found == {(1, "ours"), (3, "new"), (4, "new"), (9, "late")}
    assert by_pyiceberg(url, options=options) == by_duckdb(url, options=options) == ours(lake)
