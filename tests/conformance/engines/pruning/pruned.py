"""Tables of many small files with tight bounds, conditions on them, and settings of sessions.

Whether files are pruned rightly shows only where pruning is possible: here a file has one row or two.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

import lakevilla as lv

NAN, INF = float("nan"), float("inf")
LONG = "a common beginning of more than thirty-two letters: "
SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("x", pa.float64()),
        ("d", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("wall", pa.timestamp("us")),
        ("bin", pa.binary()),
        ("ok", pa.bool_()),
        ("st", pa.struct([("f", pa.float32()), ("s", pa.string())])),
    ]
)
_TEXTS = [
    "",
    "a",
    "A",
    "ab%",
    "a/b=c %",
    "\u200bz",
    "é",
    LONG + "1",
    LONG + "2",
    "\U0010ffff\U0010ffff",
    "x'y\\z",
]
_FLOATS = [0.1, -0.0, 0.0, NAN, INF, -INF, 16777216.0, 0.7, 1e-40, 3.5, -3.5]
_DAYS = [date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29), date(1969, 12, 31), date(1582, 10, 10)]
_HOURS = [(2023, 12, 31, 12), (2023, 12, 31, 22), (2024, 1, 1, 0), (2024, 1, 1, 2), (2024, 1, 1, 16)]
_HOURS += [(1, 1, 2, 0), (9999, 12, 30, 0), (2024, 3, 10, 7), (1969, 12, 31, 23)]


def rows() -> pa.Table:
    """One row for each value, and two of NULLs; row by row the values of a column go round."""
    made = []
    for n in range(12):
        at = datetime(*_HOURS[n % len(_HOURS)])
        text, real = _TEXTS[n % len(_TEXTS)], _FLOATS[n % len(_FLOATS)]
        values = (n, n - 3, real, real, Decimal(n * 50 - 100) / 100, text, _DAYS[n % len(_DAYS)])
        values += (at.replace(tzinfo=UTC), at, text.encode(), n % 2 == 0, {"f": real, "s": text})
        made.append(values)
    made.append((12, *[None] * 11))
    made.append((13, 2**63 - 1, 0.1, 0.1, Decimal("99999999.99"), "zz", *[None] * 5, {"f": None, "s": "x"}))
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in made], SCHEMA)


LAYOUTS: dict[str, tuple[str, list[str], int]] = {
    "delta": ("delta", [], 1),
    "iceberg": ("iceberg", [], 2),
    **{f"delta by {name}": ("delta", [name], 20) for name in SCHEMA.names[1:-1]},
    **{f"iceberg by {name}": ("iceberg", [name], 20) for name in SCHEMA.names[1:-1]},
}
"""By name the format, the columns that divide the table, and how many rows are appended at once."""

CONDITIONS = [
    "f = CAST(0.1 AS FLOAT)",
    "f = 0.1",
    "f <= 0.1",
    "f <=> CAST('NaN' AS FLOAT)",
    "f > 3.4",
    "f < -0.0",
    "f >= 0",
    "f = 16777217",
    "f IN (0.7, 16777217, CAST(0.1 AS FLOAT))",
    "f NOT IN (CAST(0.7 AS FLOAT), CAST('NaN' AS FLOAT))",
    "f BETWEEN CAST(0.1 AS FLOAT) AND CAST(0.7 AS FLOAT)",
    "x = CAST('NaN' AS DOUBLE)",
    "NOT (x > 0.1)",
    "x <> 0",
    "x <= 0.1e0",
    "x IN (0, 9007199254740993)",
    "d = 0.5",
    "d < 0.505",
    "d >= -0.995 AND d < 1",
    "d = 0.50000",
    "d > 1e0",
    "d IN (0.5, 1, 2.005)",
    "d <> 0",
    "d = '0.5'",
    "l = 9223372036854775807",
    "l > 3.5",
    "l <= -1e0",
    "l = '5'",
    "l BETWEEN '-1' AND '4'",
    "l IN (1, 2.5, 3)",
    "s = ''",
    "s < 'a'",
    "s > 'a/'",
    "s LIKE 'a%'",
    "s LIKE 'a common beginning of more than thirty-two letters: _'",
    f"s = '{LONG}2'",
    f"s > '{LONG}1'",
    f"s <= '{LONG}1'",
    "s >= '\U0010ffff'",
    "s IN ('\u200bz', 'é', 'a/b=c %')",
    "NOT (s = 'A' OR s IS NULL)",
    "startswith(s, 'ab')",
    "s COLLATE UTF8_LCASE = 'a'",
    "lower(s) = 'a'",
    "day = '2024-02-29'",
    "day < DATE '1600-01-01'",
    "day >= TIMESTAMP '1969-12-31 00:00:00'",
    "day IN ('1582-10-10', '9999-12-31')",
    "day BETWEEN '0001-01-01' AND '1582-10-15'",
    "day > '10000-01-01'",
    "year(day) = 2024",
    "at >= '2024-01-01 00:00:00'",
    "at < '2024-01-01'",
    "at = TIMESTAMP '2024-01-01 02:00:00'",
    "at <= TIMESTAMP '2024-01-01 02:00:00+00:00'",
    "at BETWEEN '2023-12-31 20:00:00' AND '2024-01-01 03:00:00'",
    "at IN ('2023-12-31 17:00:00', '2024-01-01 07:00:00')",
    "at < DATE '2024-01-01'",
    "at > wall",
    "NOT (at < CAST('2024-01-01' AS TIMESTAMP))",
    "at < '0001-01-02 12:00:00'",
    "at >= '9999-12-30'",
    "to_date(at) = '2024-01-01'",
    "wall >= '2024-01-01 00:00:00'",
    "wall < TIMESTAMP_LTZ '2024-01-01 00:00:00'",
    "wall = TIMESTAMP_NTZ '2024-01-01 02:00:00'",
    "wall < '2024-01-01 00:00:00+05:00'",
    "wall <= DATE '2024-01-01'",
    "bin = X'61'",
    "bin > X'7A'",
    "bin < X''",
    "ok",
    "NOT ok",
    "ok = false",
    "ok IS NOT TRUE",
    "st.f = CAST(0.1 AS FLOAT)",
    "st.s >= 'x'",
    "st.s = 'a'",
    "st IS NULL",
    "id = 3 OR f IS NULL",
    "id > 4 AND (s = 'a' OR at > '2024-01-01 12:00:00')",
    "coalesce(l, 0) = 0",
    "CASE WHEN l > 3 THEN s ELSE 'q' END = 'q'",
    "NOT (l > 3 AND x < 1)",
    "l IS NULL AND s IS NULL",
]

SETTINGS: dict[str, dict[str, str]] = {
    "plain": {},
    "New York": {"spark.sql.session.timeZone": "America/New_York"},
    "Tokyo": {"spark.sql.session.timeZone": "Asia/Tokyo"},
    "Kathmandu": {"spark.sql.session.timeZone": "+05:45"},
    "no ANSI": {"spark.sql.ansi.enabled": "false"},
    "no ANSI in Tokyo": {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "Asia/Tokyo"},
    "NTZ": {"spark.sql.timestampType": "TIMESTAMP_NTZ", "spark.sql.session.timeZone": "America/New_York"},
    "case": {"spark.sql.caseSensitive": "true"},
    "escaped": {"spark.sql.parser.escapedStringLiterals": "true"},
    "legacy assignment": {"spark.sql.storeAssignmentPolicy": "LEGACY"},
    "one row": {"spark.sql.execution.arrow.maxRecordsPerBatch": "1"},
    "adaptive": {"spark.sql.adaptive.enabled": "true"},
    "dates as text": {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "true",
    },
}


@contextmanager
def settings(session: Any, given: dict[str, str]) -> Iterator[None]:
    """The session with these settings, and afterwards as it was."""
    before = {name: session.conf.get(name, None) for name in given}
    for name, value in given.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            session.conf.unset(name) if old is None else session.conf.set(name, old)


def fill(folder: Path, layout: str) -> None:
    """A table `t` in this layout."""
    made, columns, at_once = LAYOUTS[layout]
    lake = lv.Lake(folder, engine="local")
    lake.create("t", SCHEMA, format=made, partition_by=columns)
    table = rows()
    for start in range(0, table.num_rows, at_once):
        lake.append("t", table.slice(start, at_once))
