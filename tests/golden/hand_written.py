"""Delta tables written by hand that bend the specification as tables in public test suites do.

Each has the rows that every reader should find, or None where an error of ours is right.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.unit.formats.delta.raw_log import PROTOCOL, add, metadata

Rows = list[tuple[Any, ...]]
ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "s": ["a", "b"]})
COLUMNS = (("id", "long"), ("s", "string"))
BOTH: Rows = [(1, "a"), (2, "b")]
EARLY = datetime(1500, 1, 1, tzinfo=UTC)


def _member(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


class Folder:
    """A table in the making."""

    def __init__(self, place: Path) -> None:
        self.place = place
        (place / "_delta_log").mkdir(parents=True)

    def put(self, name: str, rows: pa.Table = ROWS, **how: Any) -> int:
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path, **how)
        return path.stat().st_size

    def log(self, *actions: Any, version: int = 0) -> None:
        lines = [each if isinstance(each, str) else json.dumps(each) for each in actions]
        (self.place / "_delta_log" / f"{version:020}.json").write_text("\n".join(lines) + "\n")

    def one(self, rows: pa.Table, *columns: tuple[str, Any], **told: Any) -> None:
        """A table of one file."""
        size = self.put("f.parquet", rows)
        self.log(PROTOCOL, metadata(*columns), add("f.parquet", size=size, **told))


def _escaped(to: Folder) -> None:
    size = to.put("x=a b%3D/part 1#?.parquet", ROWS.select(["id"]))
    named = add("x=a%20b%253D/part%201%23%3F.parquet", size=size, partitionValues={"x": "a b="})
    to.log(PROTOCOL, metadata(("id", "long"), ("x", "string"), partition_by=("x",)), named)


def _old_moments(to: Folder) -> None:
    moments = pa.array([EARLY], pa.timestamp("us", "UTC"))
    size = to.put("f.parquet", pa.table({"at": moments}), use_deprecated_int96_timestamps=True)
    coarse = to.put("g.parquet", pa.table({"at": moments.cast(pa.timestamp("ms", "UTC"))}))
    files = add("f.parquet", size=size), add("g.parquet", size=coarse)
    to.log(PROTOCOL, metadata(("at", "timestamp")), *files)


def _unknown_actions(to: Folder) -> None:
    known = add("f.parquet", size=to.put("f.parquet"))
    odd = {"commitInfo": {"operation": None, "operationParameters": "x", "timestamp": "y"}}
    to.log(json.dumps(PROTOCOL) + "\r", "", {"new": {"x": [1]}}, odd, metadata(*COLUMNS), known)


def _partition_values(to: Folder) -> None:
    size = to.put("f.parquet", ROWS.select(["id"]))
    files = [add("f.parquet", size=size), add("g.parquet", size=size, partitionValues={"P": ""})]
    to.put("g.parquet", ROWS.select(["id"]))
    to.log(PROTOCOL, metadata(("id", "long"), ("P", "integer"), partition_by=("P",)), *files)


def _stored_partition(to: Folder) -> None:
    file = add("f.parquet", size=to.put("f.parquet"), partitionValues={"s": "log"})
    to.log(PROTOCOL, metadata(*COLUMNS, partition_by=("s",)), file)


def _nested(to: Folder) -> None:
    structs = pa.array([{"B": 2, "a": None}], pa.struct([("B", pa.int32()), ("a", pa.string())]))
    lists = pa.array([[{"a": 1}]], pa.list_(pa.struct([("a", pa.int64())])))
    members = [_member("a", "long"), _member("b", "string")]
    element = {"type": "struct", "fields": members}
    struct = {"type": "struct", "fields": [_member("a", "string"), _member("b", "integer")]}
    array = {"type": "array", "elementType": element, "containsNull": True}
    to.one(pa.table({"st": structs, "l": lists}), ("st", struct), ("l", array))


def _small_sizes(to: Folder) -> None:
    to.put("f.parquet"), to.put("g.parquet")
    to.log(PROTOCOL, metadata(*COLUMNS), add("f.parquet", size=1), add("g.parquet", size=0))


def _garbage(to: Folder) -> None:
    to.one(ROWS, *COLUMNS)
    for name, text in (
        ("_last_checkpoint", '{"version": 10, "size": 3}'),
        (f"{0:020}.crc", "{"),
        ("0.json", "x"),
    ):
        (to.place / "_delta_log" / name).write_text(text)


def _gap(to: Folder) -> None:
    to.one(ROWS, *COLUMNS)
    to.log(add("g.parquet", size=to.put("g.parquet")), version=2)


def _truncated(to: Folder) -> None:
    to.one(ROWS, *COLUMNS)
    entry = to.place / "_delta_log" / f"{0:020}.json"
    entry.write_bytes(entry.read_bytes()[:-30])


def _statistics(text: str) -> Callable[[Folder], None]:
    return lambda to: to.one(ROWS, *COLUMNS, stats=text)


NUMBERS = {"numRecords": 2, "minValues": {"id": "1"}, "maxValues": {"id": "2"}, "nullCount": {"id": "0"}}
UNKNOWN = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["x"], "writerFeatures": ["x"]}

TABLES: dict[str, tuple[Callable[[Folder], None], Rows | None]] = {
    "escaped paths": (_escaped, [(1, "a b="), (2, "a b=")]),
    "old types of moments": (_old_moments, [(EARLY,), (EARLY,)]),
    "unknown actions": (_unknown_actions, BOTH),
    "partition values missing": (_partition_values, [(1, None), (1, None), (2, None), (2, None)]),
    "partition column in the file": (_stored_partition, [(1, "log"), (2, "log")]),
    "nested in other order": (_nested, [({"a": None, "b": 2}, [{"a": 1, "b": None}])]),
    "sizes of 0 and 1": (_small_sizes, [*BOTH, *BOTH]),
    "garbage in the log": (_garbage, BOTH),
    "statistics as texts": (_statistics(json.dumps(NUMBERS)), BOTH),
    "statistics that are not JSON": (
        _statistics('{"minValues":{"id":NaN},"maxValues":[1],"nullCount":5}'),
        BOTH,
    ),
    "statistics beyond all types": (_statistics('{"minValues":{"id":1e400,"s":"\\ud800"}}'), BOTH),
    "no statistics": (_statistics(""), BOTH),
    "columns in another case": (lambda to: to.one(ROWS.rename_columns(["ID", "S"]), *COLUMNS), BOTH),
    "narrow and unsigned numbers": (
        lambda to: to.one(pa.table({"id": pa.array([1], pa.uint32()), "s": ["a"]}), *COLUMNS),
        [(1, "a")],
    ),
    "decimals of another scale": (
        lambda to: to.one(
            pa.table({"d": pa.array([Decimal("1.5")], pa.decimal128(5, 1))}), ("d", "decimal(10,2)")
        ),
        [(Decimal("1.50"),)],
    ),
    "none of the columns": (lambda to: to.one(pa.table({"x": [1, 2]}), *COLUMNS), [(None, None)] * 2),
    "gap in the log": (_gap, None),
    "truncated entry": (_truncated, None),
    "unknown type": (lambda to: to.one(ROWS, ("id", "long"), ("s", "interval day")), None),
    "unknown feature": (lambda to: to.log({"protocol": UNKNOWN}, metadata(*COLUMNS)), None),
    "no metadata": (lambda to: to.log(PROTOCOL), None),
}


def texts(rows: pa.Table) -> list[str]:
    """Rows that can be compared, whatever their order."""
    return sorted(text(tuple(row.values())) for row in rows.to_pylist())


def text(row: tuple[Any, ...]) -> str:
    return repr(tuple(v.astimezone(UTC).isoformat() if isinstance(v, datetime) else v for v in row))
