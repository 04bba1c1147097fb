"""Other clients of the tables that we write: delta-rs (deltalake) and DuckDB's delta extension.

They read what we wrote with equal rows; delta-rs also changes it, and we read on.
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from bench.stores.seaweed import S3Server
from lakevilla.formats.delta.checkpoints.writer import write_checkpoint
from lakevilla.predicates import Compare
from lakevilla.sql import statements as sql
from lakevilla.store.open import open_store
from tests.support.delta_writer import Writer

Rows = list[dict[str, Any]]
Reader = Callable[[str], Rows]


def canonical(value: Any) -> Any:
    """A value such that equal rows compare equal: NaN by name, -0.0 by sign, instants in UTC."""
    match value:
        case float():
            return repr(value)
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).replace(tzinfo=UTC)
        case dict():
            return {name: canonical(member) for name, member in value.items()}
        case list() | tuple():
            return [canonical(member) for member in value]
        case _:
            return value


def sorted_rows(table: Any) -> Rows:
    return sorted((canonical(row) for row in pa.table(table).to_pylist()), key=repr)


def by_deltalake(url: str, options: Mapping[str, str] | None = None) -> Rows:
    table = DeltaTable(url, storage_options=dict(options or {}) or None)
    return sorted_rows(QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all())


def by_duckdb(url: str) -> Rows:
    (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("*.duckdb_extension")
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        connection.execute(f"LOAD '{extension}'")
        return sorted_rows(connection.sql(f"SELECT * FROM delta_scan('{url}')").to_arrow_table())


@pytest.fixture(params=[by_deltalake, by_duckdb])
def read(request: pytest.FixtureRequest) -> Reader:
    reader: Reader = request.param
    return reader


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.fixture
def writer(url: str) -> Writer:
    return Writer(open_store(url, {"fsync": "false"}))


EVERY_TYPE = pa.schema(
    [
        pa.field("id", pa.int64(), False),
        pa.field("flag", pa.bool_()),
        pa.field("tiny", pa.int8()),
        pa.field("small", pa.int16()),
        pa.field("whole", pa.int32()),
        pa.field("single", pa.float32()),
        pa.field("double", pa.float64()),
        pa.field("price", pa.decimal128(9, 2)),
        pa.field("amount", pa.decimal128(18, 4)),
        pa.field("huge", pa.decimal128(38, 10)),
        pa.field("text", pa.string()),
        pa.field("raw", pa.binary()),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("local", pa.timestamp("us")),
        pa.field("list", pa.list_(pa.field("element", pa.int64()))),
        pa.field("map", pa.map_(pa.string(), pa.float64())),
        pa.field(
            "struct",
            pa.struct(
                [
                    pa.field("x", pa.int64()),
                    pa.field("deep", pa.struct([pa.field("y", pa.string())])),
                    pa.field("items", pa.list_(pa.field("element", pa.struct([pa.field("z", pa.date32())])))),
                ]
            ),
        ),
    ]
)


def every_type() -> pa.Table:
    full = {
        "id": 1,
        "flag": True,
        "tiny": -128,
        "small": 32767,
        "whole": -(2**31),
        "single": 1.5,
        "double": -0.0,
        "price": Decimal("-1234567.89"),
        "amount": Decimal("12345678901234.5678"),
        "huge": Decimal("1234567890123456789012345678.0123456789"),
        "text": "Ünï'\"\\\u2028 " + "x" * 50,
        "raw": b"\x00\xff",
        "day": date(1582, 10, 15),
        "at": datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
        "local": datetime(1969, 12, 31, 23, 59, 59, 999999),
        "list": [1, None, 3],
        "map": [("a", 1.0), ("b", None)],
        "struct": {"x": 1, "deep": {"y": "q"}, "items": [{"z": date(2026, 1, 1)}, None]},
    }
    odd = {
        "id": 2**63 - 1,
        "single": float("nan"),
        "double": float("inf"),
        "text": "",
        "raw": b"",
        "list": [],
        "map": [],
        "struct": {"x": None, "deep": None, "items": []},
    }
    return pa.Table.from_pylist([full, odd, {"id": 3, "double": float("nan")}], EVERY_TYPE)


def test_every_type_is_read_as_we_wrote_it(writer: Writer, url: str, read: Reader) -> None:
    writer.create(EVERY_TYPE, rows=every_type())
    assert read(url) == sorted_rows(every_type()) == sorted_rows(writer.rows())


AWKWARD = [
    "plain",
    "a/b",
    "a=b",
    "50%",
    "sp ace",
    "ü🎉",
    "x:y?z#&",
    "'\"",
    "back\\slash",
    "..",
    "%2F",
    "tab\there",
    None,
]


def test_awkward_partition_values_are_read_as_we_wrote_them(writer: Writer, url: str, read: Reader) -> None:
    rows = pa.table({"p": AWKWARD, "v": list(range(len(AWKWARD)))})
    writer.create(rows.schema, by=["p"], rows=rows)
    assert read(url) == sorted_rows(rows.select(["p", "v"])) == sorted_rows(writer.rows())


def test_partition_values_of_every_type_are_read_as_we_wrote_them(
    writer: Writer, url: str, read: Reader
) -> None:
    simple = ["flag", "tiny", "whole", "single", "double", "price", "huge", "day", "at", "local"]
    rows = every_type().select([*simple, "id"])
    writer.create(rows.schema, by=simple, rows=rows)
    assert read(url) == sorted_rows(rows) == sorted_rows(writer.rows())


@pytest.mark.parametrize("mode", ["name", "id"])
def test_renamed_and_dropped_columns_are_read_by_their_new_names(
    writer: Writer, url: str, read: Reader, mode: str
) -> None:
    schema = pa.schema(
        [("a", pa.int64()), ("s", pa.struct([("x", pa.string())])), ("gone", pa.int64()), ("p", pa.string())]
    )
    # DuckDB reads every partition value of a table with column mapping as NULL (duckdb-delta issue 343).
    by = [] if read is by_duckdb else ["p"]
    writer.create(schema, by=by, properties={"delta.columnMapping.mode": mode})
    writer.append(pa.table({"a": [1], "s": [{"x": "q"}], "gone": [7], "p": ["k"]}))
    writer.alter(sql.RenameColumn("a", "b"))
    writer.alter(sql.DropColumns(("gone",)))
    writer.alter(sql.AddColumns((pa.field("gone", pa.string()),)))
    writer.append(
        pa.table({"b": [2], "s": [{"x": "r"}], "p": [None], "gone": ["new"]}, writer.latest().schema)
    )
    expected = [
        {"b": 1, "s": {"x": "q"}, "p": "k", "gone": None},
        {"b": 2, "s": {"x": "r"}, "p": None, "gone": "new"},
    ]
    assert read(url) == sorted(expected, key=repr) == sorted_rows(writer.rows())


def test_column_mapping_turned_on_later_keeps_old_rows(writer: Writer, url: str, read: Reader) -> None:
    writer.create(pa.schema([("a", pa.int64()), ("b", pa.int64())]), rows=pa.table({"a": [1], "b": [2]}))
    writer.alter(sql.SetProperties({"delta.columnMapping.mode": "name"}))
    writer.alter(sql.RenameColumn("b", "c"))
    writer.append(pa.table({"a": [3], "c": [4]}))
    assert read(url) == [{"a": 1, "c": 2}, {"a": 3, "c": 4}] == sorted_rows(writer.rows())


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"delta.checkpoint.writeStatsAsStruct": "true"},
        {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"},
        {"delta.checkpointPolicy": "v2"},
    ],
)
def test_a_table_is_opened_cold_from_our_checkpoint_alone(
    writer: Writer, url: str, read: Reader, properties: dict[str, str]
) -> None:
    schema = pa.schema([*EVERY_TYPE, pa.field("p", pa.string())])
    rows = every_type().append_column("p", pa.array(["a/b", None, "c"]))
    writer.create(schema, by=["p"], properties=properties, rows=rows)
    writer.append(rows)
    writer.rewrite(rows)
    last = writer.append(rows.slice(0, 1))
    write_checkpoint(writer.store, writer.environment, last)
    for entry in Path(url, "_delta_log").glob("*.json"):
        # A V2 checkpoint may be JSON by name; ours are Parquet, so these are log entries.
        if int(entry.name[:20]) <= last.version:
            entry.unlink()
    expected = sorted_rows(pa.concat_tables([rows, rows.slice(0, 1)]))
    assert read(url) == expected == sorted_rows(writer.rows())


def test_a_predicate_finds_its_rows_through_our_statistics(writer: Writer, url: str) -> None:
    writer.create(EVERY_TYPE)
    for number in range(5):
        row = every_type().slice(0, 1).set_column(0, EVERY_TYPE.field("id"), pa.array([number]))
        writer.append(row)
    assert [file.rows for file in writer.latest().files(Compare(("id",), "=", 3))] == [1]
    table = QueryBuilder().register("t", DeltaTable(url))
    for condition in (
        "id = 3",
        "id = 3 AND price = CAST('-1234567.89' AS DECIMAL(9,2))",
        "id = 3 AND text LIKE 'Ünï%'",
        "id = 3 AND at = '2026-01-02T03:04:05.678901Z'",
        "id = 3 AND huge = CAST('1234567890123456789012345678.0123456789' AS DECIMAL(38,10))",
    ):
        assert len(pa.table(table.execute(f"SELECT id FROM t WHERE {condition}").read_all())) == 1, condition


SIMPLE = pa.schema([pa.field("id", pa.int64()), pa.field("v", pa.string()), pa.field("p", pa.string())])


def simple(*numbers: int, v: str = "new", p: str | None = "a b") -> pa.Table:
    return pa.table({"id": list(numbers), "v": [v] * len(numbers), "p": [p] * len(numbers)}, SIMPLE)


def test_delta_rs_appends_updates_deletes_and_merges_and_we_read_on(writer: Writer, url: str) -> None:
    snapshot = writer.create(SIMPLE, by=["p"], rows=simple(1, 2, 3))
    write_deltalake(url, simple(4, 5, p="c/d"), mode="append")
    DeltaTable(url).update(predicate="id = 2", updates={"v": "'updated'"})
    DeltaTable(url).delete("id = 3")
    source = simple(1, 9, v="merged")
    merge = DeltaTable(url).merge(source, "s.id = t.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    expected = [(1, "merged"), (2, "updated"), (4, "new"), (5, "new"), (9, "merged")]
    followed = writer.table.latest(snapshot)
    assert followed is not None
    assert followed.version == 4
    for seen in (writer.rows(followed), writer.rows()):
        assert sorted((row["id"], row["v"]) for row in seen.to_pylist()) == expected
    writer.rewrite(simple(1, 2))
    assert by_deltalake(url) == by_duckdb(url) == sorted_rows(simple(1, 2))


def test_delta_rs_checkpoints_optimizes_and_vacuums_and_we_read_on(writer: Writer, url: str) -> None:
    writer.create(SIMPLE, by=["p"])
    for number in range(4):
        writer.append(simple(number))
    DeltaTable(url).create_checkpoint()
    writer.append(simple(4))
    DeltaTable(url).optimize.compact()
    assert len(writer.latest().files()) == 1
    removed = DeltaTable(url).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert len(removed) == 5
    expected = sorted_rows(simple(0, 1, 2, 3, 4))
    assert sorted_rows(writer.rows()) == expected == by_duckdb(url)
    writer.append(simple(5))
    assert by_deltalake(url) == sorted_rows(simple(0, 1, 2, 3, 4, 5))


def test_delta_rs_vacuum_spares_what_our_checkpoint_calls_live_and_takes_our_tombstones(
    writer: Writer, url: str
) -> None:
    writer.create(SIMPLE, by=["p"], properties={"delta.checkpointInterval": "3"}, rows=simple(1))
    writer.append(simple(2))
    writer.rewrite(simple(3))
    writer.append(simple(4))
    assert json.loads(Path(url, "_delta_log", "_last_checkpoint").read_text())["version"] == 3
    for version in range(3):
        Path(url, "_delta_log", f"{version:020}.json").unlink()
    removed = DeltaTable(url).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert len(removed) == 2
    assert by_deltalake(url) == sorted_rows(simple(3, 4)) == sorted_rows(writer.rows())


def test_delta_rs_respects_our_constraints_and_append_only(writer: Writer, url: str) -> None:
    writer.create(SIMPLE, properties={"delta.appendOnly": "true"}, rows=simple(1))
    with pytest.raises(Exception, match="append"):
        DeltaTable(url).delete()
    writer.alter(sql.AddConstraint("positive", "id > 0"))
    with pytest.raises(Exception, match="1 rows failed validation"):
        write_deltalake(url, simple(-1), mode="append")
    write_deltalake(url, simple(2), mode="append")
    assert sorted_rows(writer.rows()) == sorted_rows(simple(1, 2))


def test_tables_with_in_commit_timestamps_are_read_by_others(writer: Writer, url: str, read: Reader) -> None:
    writer.create(SIMPLE, properties={"delta.enableInCommitTimestamps": "true"}, rows=simple(1))
    writer.append(simple(2))
    assert read(url) == sorted_rows(simple(1, 2))


def test_the_same_round_on_s3(s3: S3Server) -> None:
    url = s3.new_url()
    writer = Writer(open_store(url, s3.storage_options))
    writer.create(SIMPLE, by=["p"], properties={"delta.checkpointInterval": "2"}, rows=simple(1, 2, p="ü/%"))
    for number in range(3, 6):
        writer.append(simple(number))
    assert by_deltalake(url, s3.storage_options) == sorted_rows(writer.rows())
    write_deltalake(url, simple(9), mode="append", storage_options=s3.storage_options)
    DeltaTable(url, storage_options=s3.storage_options).update(updates={"v": "'u'"}, predicate="id = 1")
    ids = [(row["id"], row["v"]) for row in writer.rows().to_pylist()]
    assert sorted(ids) == [(1, "u"), (2, "new"), (3, "new"), (4, "new"), (5, "new"), (9, "new")]
