"""The tables that all statements run on: small, with every type and every awkward value."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

NAN, INF = float("nan"), float("inf")

PEOPLE = pa.schema(
    [
        ("id", pa.int32()),
        ("name", pa.string()),
        ("x", pa.float64()),
        ("f", pa.float32()),
        ("d", pa.decimal128(10, 2)),
        ("ok", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("wall", pa.timestamp("us")),
        ("big", pa.int64()),
        ("small", pa.int16()),
        ("tiny", pa.int8()),
        ("bin", pa.binary()),
    ]
)
NESTED = pa.schema(
    [
        ("id", pa.int32()),
        ("tags", pa.list_(pa.field("element", pa.string()))),
        ("nums", pa.list_(pa.field("element", pa.int32()))),
        ("xs", pa.list_(pa.field("element", pa.float64()))),
        ("place", pa.struct([("city", pa.string()), ("zip", pa.int32())])),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("deep", pa.list_(pa.field("element", pa.struct([("k", pa.string()), ("v", pa.int64())])))),
        ("grid", pa.list_(pa.field("element", pa.list_(pa.field("element", pa.int32()))))),
    ]
)
ORDERS = pa.schema(
    [
        ("no", pa.int64()),
        ("person", pa.int32()),
        ("amount", pa.decimal128(12, 2)),
        ("qty", pa.int32()),
        ("day", pa.date32()),
        ("status", pa.string()),
    ]
)
NUMBERS = pa.schema(
    [
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("x", pa.float64()),
        ("f", pa.float32()),
        ("d", pa.decimal128(10, 2)),
        ("e", pa.decimal128(20, 6)),
    ]
)
WORDS = pa.schema([("n", pa.int32()), ("w", pa.string()), ("p", pa.string())])
PAIRS = pa.schema([("a", pa.int32()), ("b", pa.int64())])


def _people() -> list[tuple[Any, ...]]:
    leap, at = date(2024, 2, 29), datetime(2024, 2, 29, 13, 14, 15, 600_000, tzinfo=UTC)
    old, early = datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(1582, 10, 20, 1, 2, 3)
    new_year = datetime(2020, 12, 31, 23, 30)
    big = 9_000_000_000
    return [
        (1, "Ann", 1.5, 0.5, "1.50", True, leap, at, at.replace(tzinfo=None), big, 300, 7, b"ann"),
        (2, "bob", NAN, NAN, "2.25", False, date(1969, 12, 31), old, old, -big, -300, -7, b""),
        (3, None, None, None, None, None, None, None, None, None, None, None, None),
        (4, "Ann", -0.0, -0.0, "-3.10", True, date(2024, 3, 1), at, new_year, 0, 0, 0, b"\x00\xff"),
        (5, "", 0.0, 0.0, "0.00", None, date(2020, 12, 31), new_year, early, 1, 1, 1, b"a"),
        (
            6,
            "Émile Ünal",
            -INF,
            -INF,
            "99999999.99",
            False,
            date(1, 1, 1),
            early,
            at,
            2**63 - 1,
            32767,
            127,
            b"zz",
        ),
        (
            7,
            "  padded ",
            INF,
            INF,
            "-99999999.99",
            True,
            date(9999, 12, 31),
            None,
            None,
            -(2**63),
            -32768,
            -128,
            None,
        ),
        (
            8,
            "bob",
            2.5,
            1.25,
            "2.25",
            None,
            leap,
            datetime(2024, 7, 1),
            datetime(2024, 7, 1),
            5,
            5,
            5,
            b"bob",
        ),
    ]


_NESTED: list[tuple[Any, ...]] = [
    (
        1,
        ["a", "b"],
        [3, 1, 2],
        [1.5, NAN],
        {"city": "Oslo", "zip": 1},
        {"k": 1, "l": 2},
        [{"k": "p", "v": 1}, {"k": "q", "v": None}],
        [[1, 2], [3]],
    ),
    (2, [], [], [], {"city": "Rome", "zip": None}, {}, [], []),
    (3, None, None, None, None, None, None, None),
    (
        4,
        [None, "c"],
        [None, 5, 5],
        [-0.0, 0.0, None],
        {"city": None, "zip": 4},
        {"k": None},
        [None],
        [None, [4]],
    ),
    (
        5,
        ["b", "a", "b"],
        [7],
        [INF],
        {"city": "Oslo", "zip": 1},
        {"z": 26},
        [{"k": None, "v": 9}],
        [[], [None]],
    ),
]

_ORDERS: list[tuple[Any, ...]] = [
    (100, 1, "10.00", 1, date(2024, 1, 1), "open"),
    (101, 1, "20.50", 2, date(2024, 1, 2), "done"),
    (102, 2, "5.25", 3, date(2024, 1, 2), "done"),
    (103, 2, None, None, None, None),
    (104, 4, "99.99", 10, date(2024, 2, 1), "open"),
    (105, None, "1.00", 1, date(2024, 2, 2), "done"),
    (106, 42, "0.01", 1, date(2024, 2, 3), "lost"),
    (107, 8, "-7.00", -1, date(2024, 2, 3), "open"),
    (108, 1, "20.50", 2, date(2024, 3, 1), ""),
]

_NUMBERS: list[tuple[Any, ...]] = [
    (0, 0, 0.0, 0.0, "0.00", "0.000000"),
    (1, 1, 0.1, 0.1, "0.01", "0.000001"),
    (-1, -1, -0.1, -0.1, "-0.01", "-0.500000"),
    (7, 1_000_000_007, 2.5, 2.5, "2.50", "2.500000"),
    (-7, -1_000_000_007, -2.5, -2.5, "-2.50", "-2.500000"),
    (2**31 - 1, 2**53, 1234.5678, 16777216.0, "12345678.90", "12345678901234.567891"),
    (-(2**31), -(2**53), 1e-7, 1e-3, "-12345678.95", "-0.123456"),
    (100, 3, 1e7, 1e6, "1.05", "1.005000"),
    (3, 10, 9999999.5, 3.14159, "3.33", "33.333333"),
    (None, None, None, None, None, None),
]

_WORDS: list[tuple[Any, ...]] = [
    (1, "Hello World", "World"),
    (2, "", ""),
    (3, None, "x"),
    (4, "a,b,,c", ","),
    (5, "äöüß", "ö"),
    (6, "  trim me  ", " "),
    (7, "100%_sure", "%"),
    (8, "back\\slash", "\\"),
    (9, "日本語テキスト", "語"),
    (10, "tab\tnew\nline", "\n"),
    (11, "😀 smile", "😀"),
    (12, "aaa", "aa"),
    (13, "MiXeD123", None),
    (14, "2024-02-29", "-"),
    (15, "12.50", "."),
    (16, "xXxXx", "x"),
]

_PAIRS: list[tuple[Any, ...]] = [(1, 10), (1, 20), (2, None), (None, 40), (3, 30), (3, 30), (2, 5)]


def _table(schema: pa.Schema, rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = []
    for position, field in enumerate(schema):
        values = [row[position] for row in rows]
        if pa.types.is_decimal(field.type):
            values = [None if value is None else Decimal(value) for value in values]
        if pa.types.is_map(field.type):
            values = [None if value is None else list(value.items()) for value in values]
        columns.append(pa.array(values, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


TABLES: dict[str, pa.Table] = {
    "people": _table(PEOPLE, _people()),
    "nested": _table(NESTED, _NESTED),
    "orders": _table(ORDERS, _ORDERS),
    "numbers": _table(NUMBERS, _NUMBERS),
    "words": _table(WORDS, _WORDS),
    "pairs": _table(PAIRS, _PAIRS),
    "empty": PEOPLE.empty_table(),
}
