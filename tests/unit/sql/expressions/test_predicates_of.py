"""Predicates from expressions: what is read, what is weakened, and that no matching row is ever excluded."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakevilla.engines.local.engine import LocalEngine
from lakevilla.engines.port import Source
from lakevilla.environment import SystemEnvironment
from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.predicates import (
    ANYTHING,
    NOTHING,
    And,
    Column,
    Compare,
    IsNotNull,
    IsNull,
    Or,
    Predicate,
)
from lakevilla.pruning import Bounds, may_match
from lakevilla.sql.expressions.predicate_extraction import columns_in, predicate_of, predicate_unless
from lakevilla.sql.parser import parse_expression

SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("x", pa.float64()),
        ("f", pa.float32()),
        ("d", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("ntz", pa.timestamp("us")),
        ("p", pa.struct([("Q", pa.int32())])),
    ]
)
NUMBER, TEXT = ("i",), ("s",)
TEN = datetime(2024, 1, 2, 10, tzinfo=UTC)


def of(text: str) -> Predicate:
    return predicate_of(parse_expression(text), columns_in(SCHEMA, ["t"]))


READ: list[tuple[str, Predicate]] = [
    ("i = 1", Compare(NUMBER, "=", 1)),
    ("T.I = 1", Compare(NUMBER, "=", 1)),
    ("1 < i", Compare(NUMBER, ">", 1)),
    ("i <> 1", Or((Compare(NUMBER, "<", 1), Compare(NUMBER, ">", 1)))),
    ("NOT i = 1", Or((Compare(NUMBER, "<", 1), Compare(NUMBER, ">", 1)))),
    ("NOT (i < 1 OR i > 5)", And((Compare(NUMBER, ">=", 1), Compare(NUMBER, "<=", 5)))),
    ("i <=> 1", Compare(NUMBER, "=", 1)),
    ("i <=> NULL", IsNull(NUMBER)),
    ("i = NULL", NOTHING),
    ("i = -1", Compare(NUMBER, "=", -1)),
    ("i > 1.5", Compare(NUMBER, ">=", 2)),
    ("i <= 1.5", Compare(NUMBER, "<=", 1)),
    ("i = 1.5", NOTHING),
    ("i = 2.0", Compare(NUMBER, "=", 2)),
    ("i = '7'", Compare(NUMBER, "=", 7)),
    ("i = 'x'", IsNotNull(NUMBER)),
    ("i = 1L", Compare(NUMBER, "=", 1)),
    ("i IN (1, NULL)", Or((Compare(NUMBER, "=", 1), NOTHING))),
    ("i NOT IN (1)", Or((Compare(NUMBER, "<", 1), Compare(NUMBER, ">", 1)))),
    ("i NOT IN (1, NULL)", And((Or((Compare(NUMBER, "<", 1), Compare(NUMBER, ">", 1))), NOTHING))),
    ("i BETWEEN 1 AND 3", And((Compare(NUMBER, ">=", 1), Compare(NUMBER, "<=", 3)))),
    ("i IS NULL", IsNull(NUMBER)),
    ("i IS NOT NULL", IsNotNull(NUMBER)),
    ("b", Compare(("b",), "=", True)),
    ("NOT b", Compare(("b",), "=", False)),
    ("true", ANYTHING),
    ("false", NOTHING),
    ("NULL", NOTHING),
    ("x > 1", Compare(("x",), ">", 1.0)),
    ("x = 0.1", Compare(("x",), "=", 0.1)),
    ("d = 1.5", Compare(("d",), "=", Decimal("1.5"))),
    ("d = 1.5e0", IsNotNull(("d",))),
    ("s = 'a'", Compare(TEXT, "=", "a")),
    ("s = 1", IsNotNull(TEXT)),
    ("s LIKE 'ab%'", And((Compare(TEXT, ">=", "ab"), Compare(TEXT, "<", "ac")))),
    ("s LIKE 'ab'", Compare(TEXT, "=", "ab")),
    ("s LIKE 'a\\\\_b%'", And((Compare(TEXT, ">=", "a_b"), Compare(TEXT, "<", "a_c")))),
    ("s LIKE '%b'", IsNotNull(TEXT)),
    ("s NOT LIKE 'a%'", ANYTHING),
    ("day = '2024-01-02'", Compare(("day",), "=", date(2024, 1, 2))),
    ("day >= DATE '2024-01-02'", Compare(("day",), ">=", date(2024, 1, 2))),
    ("day = '2024-1-2'", IsNotNull(("day",))),
    ("at = '2024-01-02 10:00:00'", Compare(("at",), "=", TEN)),
    ("at = '2024-01-02T12:00:00+02:00'", Compare(("at",), "=", TEN)),
    ("at > DATE '2024-01-02'", Compare(("at",), ">", datetime(2024, 1, 2, tzinfo=UTC))),
    ("ntz = '2024-01-02 10:00:00'", Compare(("ntz",), "=", TEN.replace(tzinfo=None))),
    ("ntz = '2024-01-02 10:00:00+05:00'", IsNotNull(("ntz",))),
    ("ntz < '2024-01-02 10:00:00Z'", IsNotNull(("ntz",))),
    ("ntz = TIMESTAMP '2024-01-02 10:00:00'", Compare(("ntz",), "=", TEN.replace(tzinfo=None))),
    ("p.q = 1", Compare(("p", "Q"), "=", 1)),
    ("t.p.q = 1", Compare(("p", "Q"), "=", 1)),
    ("i + 1 = 2", ANYTHING),
    ("i = l", ANYTHING),
    ("upper(s) = 'A'", ANYTHING),
    ("i = 1 AND upper(s) = 'A'", Compare(NUMBER, "=", 1)),
    ("i = 1 OR upper(s) = 'A'", ANYTHING),
    ("i IN (SELECT 1)", IsNotNull(NUMBER)),
    ("nope = 1", ANYTHING),
    ("i = 99999999999999999999", Compare(NUMBER, "=", 99999999999999999999)),
    ("l IN (9007199254740992, 0.5e0)", IsNotNull(("l",))),
    ("l = 9007199254740991e0", Compare(("l",), "=", 2**53 - 1)),
    ("l = 9007199254740992e0", IsNotNull(("l",))),
]


@pytest.mark.parametrize(("text", "predicate"), READ, ids=[r[0] for r in READ])
def test_expression_becomes_the_predicate(text: str, predicate: Predicate) -> None:
    assert of(text) == predicate


def test_counterpart_covers_false_and_null() -> None:
    unless = predicate_unless(parse_expression("i >= 3"), columns_in(SCHEMA))
    assert unless == Or((Compare(NUMBER, "<", 3), IsNull(NUMBER)))
    assert predicate_unless(parse_expression("upper(s) = 'A'"), columns_in(SCHEMA)) == ANYTHING


NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from(["1.5", "-0.5", "2e0", "0.5e0", "1L"]))
LITERALS = st.one_of(
    NUMBERS.map(str),
    st.sampled_from(["NULL", "'1'", "'b'", "'ab'", "true", "DATE '2024-01-02'", "'2024-01-02'"]),
    st.sampled_from(
        ["TIMESTAMP '2024-01-02 10:00:00'", "CAST('NaN' AS DOUBLE)", "9007199254740993", "-0.0e0"]
    ),
)
COLUMNS = st.sampled_from(["i", "l", "x", "f", "d", "s", "b", "day", "at", "ntz", "p.q"])
LEAVES = st.one_of(
    st.builds(
        "{} {} {}".format, COLUMNS, st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"]), LITERALS
    ),
    st.builds("{} {} {}".format, LITERALS, st.sampled_from(["=", "<", ">="]), COLUMNS),
    st.builds("{} IS {}NULL".format, COLUMNS, st.sampled_from(["", "NOT "])),
    st.builds("{} {}IN ({}, {})".format, COLUMNS, st.sampled_from(["", "NOT "]), LITERALS, LITERALS),
    st.builds("{} BETWEEN {} AND {}".format, COLUMNS, LITERALS, LITERALS),
    st.builds("s LIKE '{}'".format, st.sampled_from(["a%", "%", "_b", "ab", "a_%", "a\\\\%%"])),
    st.sampled_from(["b", "abs(i) = 1", "i = l"]),
)
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("(NOT {})".format, inner),
    ),
    max_leaves=4,
)
ROWS = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-3, 3),
        "l": st.none() | st.sampled_from([0, 1, 2**53, 2**53 + 1]),
        "x": st.none() | st.sampled_from([0.0, -0.0, 0.5, 1.5, 2.0, float("nan"), float("inf")]),
        "f": st.none() | st.sampled_from([0.5, 1.5, float("nan")]),
        "d": st.none() | st.sampled_from([Decimal("1.50"), Decimal("-0.50"), Decimal("2.00")]),
        "s": st.none() | st.sampled_from(["", "a", "ab", "b", "1", "a%", "2024-01-02"]),
        "b": st.none() | st.booleans(),
        "day": st.none() | st.sampled_from([date(2024, 1, 2), date(2024, 1, 3)]),
        "at": st.none() | st.sampled_from([TEN, datetime(2024, 1, 2, tzinfo=UTC)]),
        "ntz": st.none() | st.sampled_from([TEN.replace(tzinfo=None), datetime(2024, 1, 2)]),
        "p": st.none() | st.fixed_dictionaries({"Q": st.none() | st.integers(0, 2)}),
    }
)

ENGINE = LocalEngine(SystemEnvironment())


def truth(text: str, row: dict[str, Any]) -> bool | None:
    """The engine's answer for the expression and one row, without a predicate."""
    values = Source("t", SCHEMA, (), lambda _: [], lambda _: (None, ""))  # type: ignore[arg-type,return-value]
    rows = pa.Table.from_pylist([row], schema=SCHEMA)
    queries_rows = _evaluate(text, rows, values)
    result: bool | None = queries_rows.column(0)[0].as_py()
    return result


def _evaluate(text: str, rows: pa.Table, source: Source) -> pa.Table:
    from lakevilla.engines.local.arrow import inward
    from lakevilla.engines.local.change import rows_of
    from lakevilla.engines.local.translation.expressions import Expressions
    from lakevilla.engines.local.translation.queries.queries import Queries
    from lakevilla.engines.local.translation.queries.scope import Relation, Scope

    queries = Queries({}, 0)
    outputs = queries.outputs([(field.name, field.type) for field in source.schema])
    relation = Relation("t0", (("t",),), outputs)
    value = Expressions(queries, Scope([relation])).condition(parse_expression(text))
    registered = inward(rows, [output.sql for output in outputs])
    return ENGINE._connections.run(f"SELECT {value.sql} FROM {rows_of(relation)}", {"t0": registered})


def excluded(predicate: Predicate, row: dict[str, Any]) -> bool:
    """Whether a file that holds just this row would be skipped."""

    def bounds(column: Column) -> Bounds | None:
        value: Any = row
        data_type: Any = pa.struct(list(SCHEMA))
        for name in column:
            value = None if value is None else value[name]
            data_type = data_type.field(name).type
        # As writers do: a column that holds a NaN has no bounds.
        known = None if isinstance(value, float) and value != value else value
        array = pa.array([known], data_type)
        return Bounds(array, array, pa.array([1 if value is None else 0]), pa.array([1]))

    return not bool(may_match(predicate, bounds, 1)[0])


@settings(max_examples=400, deadline=None)
@given(EXPRESSIONS, ROWS)
def test_row_that_satisfies_the_expression_is_never_excluded(text: str, row: dict[str, Any]) -> None:
    try:
        value = truth(text, row)
    except (InvalidInput, Unsupported):
        return
    expression = parse_expression(text)
    resolve = columns_in(SCHEMA, ["t"])
    if value is True:
        assert not excluded(predicate_of(expression, resolve), row)
    else:
        assert not excluded(predicate_unless(expression, resolve), row)
