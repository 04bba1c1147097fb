# ruff: noqa: E501 - statements are easier to read on one line
"""Random statements over typed columns. One seed makes one statement, always the same."""

from dataclasses import dataclass
from random import Random

# Columns by type; `key` is unique. Wide integers are compared, not added: sums of them overflow, and where
# in a statement an error strikes is nobody's promise.
_COLUMNS: dict[str, dict[str, list[str]]] = {
    "people": {
        "key": ["id"],
        "int": ["id", "tiny", "small"],
        "wide": ["big"],
        "double": ["x", "f"],
        "decimal": ["d"],
        "text": ["name"],
        "bool": ["ok"],
        "date": ["day"],
        "moment": ["at"],
    },
    "orders": {
        "key": ["no"],
        "int": ["person", "qty"],
        "wide": ["no"],
        "decimal": ["amount"],
        "text": ["status"],
        "date": ["day"],
    },
    "numbers": {"key": ["i"], "wide": ["i", "l"], "double": ["x", "f"], "decimal": ["d"]},
    "words": {"key": ["n"], "int": ["n"], "text": ["w", "p"]},
}

_LITERALS = {
    "int": ["0", "1", "-1", "3", "10", "CAST(NULL AS INT)"],
    "wide": ["0", "7", "9007199254740993L", "-9000000000L"],
    "double": ["0e0", "-0e0", "1.5e0", "-2.5e0", "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)"],
    "decimal": ["0.5", "2.25", "-3.10", "100.005", "1.0"],
    "text": ["''", "'a'", "'Ann'", "'bob'", "'x,y'", "'Ünal'"],
    "bool": ["true", "false", "CAST(NULL AS BOOLEAN)"],
    "date": ["DATE '2024-02-29'", "DATE '1970-01-01'", "DATE '1969-12-31'"],
    "moment": ["TIMESTAMP '2024-02-29 13:14:15.600'", "TIMESTAMP '1969-12-31 23:59:59'"],
}

# What gives a type, of arguments of types; {0}, {1}, ... are the arguments.
_CALLS: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "int": [
        ("({0} + {1})", ("int", "int")),
        ("({0} - {1})", ("int", "int")),
        ("({0} % 7)", ("int",)),
        ("pmod({0}, 5)", ("int",)),
        ("length({0})", ("text",)),
        ("year({0})", ("date",)),
        ("month({0})", ("date",)),
        ("dayofweek({0})", ("date",)),
        ("hour({0})", ("moment",)),
        ("instr({0}, {1})", ("text", "text")),
        ("CAST({0} AS INT)", ("bool",)),
        ("datediff({0}, {1})", ("date", "date")),
    ],
    "wide": [
        ("CAST({0} AS BIGINT)", ("int",)),
        ("CAST({0} AS BIGINT)", ("moment",)),
        ("unix_date({0})", ("date",)),
    ],
    "double": [
        ("({0} + {1})", ("double", "double")),
        ("({0} * {1})", ("double", "double")),
        ("({0} / 3)", ("double",)),
        ("({0} - {1})", ("double", "int")),
        ("({0} / 2)", ("int",)),
        ("abs({0})", ("double",)),
        ("sqrt({0})", ("double",)),
        ("round({0}, 2)", ("double",)),
        ("nanvl({0}, {1})", ("double", "double")),
        ("CAST({0} AS DOUBLE)", ("decimal",)),
        ("CAST({0} AS FLOAT)", ("int",)),
        ("(- {0})", ("double",)),
    ],
    "decimal": [
        ("({0} + {1})", ("decimal", "decimal")),
        ("({0} - {1})", ("decimal", "decimal")),
        ("({0} * {1})", ("decimal", "decimal")),
        ("({0} / 3)", ("decimal",)),
        ("({0} + {1})", ("decimal", "int")),
        ("round({0}, 1)", ("decimal",)),
        ("abs({0})", ("decimal",)),
        ("CAST({0} AS DECIMAL(12,3))", ("int",)),
    ],
    "text": [
        ("concat({0}, {1})", ("text", "text")),
        ("upper({0})", ("text",)),
        ("lower({0})", ("text",)),
        ("trim({0})", ("text",)),
        ("substring({0}, {1}, 3)", ("text", "int")),
        ("left({0}, 2)", ("text",)),
        ("replace({0}, 'a', {1})", ("text", "text")),
        ("lpad({0}, 6, '-')", ("text",)),
        ("CAST({0} AS STRING)", ("int",)),
        ("CAST({0} AS STRING)", ("decimal",)),
        ("CAST({0} AS STRING)", ("date",)),
        ("CAST({0} AS STRING)", ("bool",)),
        ("date_format({0}, 'yyyy/MM')", ("moment",)),
    ],
    "bool": [
        *(
            (f"({{0}} {sign} {{1}})", (kind, kind))
            for sign in ("=", "<", ">=", "<>", "<=>")
            for kind in _LITERALS
        ),
        *(("({0} IS NULL)", (kind,)) for kind in _LITERALS),
        ("({0} AND {1})", ("bool", "bool")),
        ("({0} OR {1})", ("bool", "bool")),
        ("(NOT {0})", ("bool",)),
        ("({0} IN ({1}, {2}))", ("int", "int", "int")),
        ("({0} IN ({1}, NULL))", ("text", "text")),
        ("({0} BETWEEN {1} AND {2})", ("double", "double", "double")),
        ("({0} BETWEEN {1} AND {2})", ("decimal", "decimal", "int")),
        ("({0} LIKE '%a%')", ("text",)),
        ("startswith({0}, {1})", ("text", "text")),
        ("({0} < {1})", ("int", "double")),
        ("({0} = {1})", ("decimal", "double")),
        ("({0} > {1})", ("moment", "date")),
    ],
    "date": [
        ("date_add({0}, 3)", ("date",)),
        ("last_day({0})", ("date",)),
        ("trunc({0}, 'MONTH')", ("date",)),
        ("CAST({0} AS DATE)", ("moment",)),
    ],
    "moment": [
        ("date_trunc('HOUR', {0})", ("moment",)),
        ("({0} + INTERVAL 90 MINUTES)", ("moment",)),
        ("CAST({0} AS TIMESTAMP)", ("date",)),
    ],
}
_CHOICES = [
    ("CASE WHEN {0} THEN {1} ELSE {2} END", 2),
    ("if({0}, {1}, {2})", 2),
    ("coalesce({1}, {2})", 2),
    ("nullif({1}, {2})", 2),
]


@dataclass
class Generator:
    """Writes one statement. `prefix` stands before columns."""

    random: Random
    table: str
    prefix: str = ""

    def expression(self, kind: str, depth: int = 2) -> str:
        columns = _COLUMNS[self.table].get(kind, [])
        if depth == 0 or self.random.random() < 0.2:
            if columns and self.random.random() < 0.85:
                return self.prefix + self.random.choice(columns)
            return self.random.choice(_LITERALS[kind])
        if self.random.random() < 0.2:
            form, _ = self.random.choice(_CHOICES)
            parts = [
                self.expression("bool", depth - 1),
                *(self.expression(kind, depth - 1) for _ in range(2)),
            ]
            return form.format(*parts)
        form, kinds = self.random.choice(_CALLS[kind])
        return form.format(*(self.expression(one, depth - 1) for one in kinds))

    def any(self, *kinds: str) -> str:
        return self.expression(self.random.choice(kinds or list(_LITERALS)))

    @property
    def key(self) -> str:
        return self.prefix + _COLUMNS[self.table]["key"][0]


def statement(seed: int) -> str:
    """The statement of this seed."""
    random = Random(seed)
    return random.choice(
        [_projection, _filtered, _grouped, _joined, _windowed, _combined, _ordered, _nested]
    )(random)


def _some(random: Random) -> Generator:
    return Generator(random, random.choice(list(_COLUMNS)))


def _projection(random: Random) -> str:
    one = _some(random)
    return f"SELECT {one.key}, {one.any()} AS a, {one.any()} AS b, {one.any()} AS c FROM {one.table}"


def _filtered(random: Random) -> str:
    one = _some(random)
    return f"SELECT {one.key}, {one.any()} AS a FROM {one.table} WHERE {one.expression('bool', 3)}"


def _grouped(random: Random) -> str:
    one = _some(random)
    return (
        f"SELECT {one.any()} AS k, count(*) AS n, count({one.any()}) AS c, min({one.any('int', 'decimal', 'text')}) AS lo, "
        f"max({one.any('double', 'date', 'moment')}) AS hi, sum({one.any('int', 'decimal')}) AS s FROM {one.table} "
        f"GROUP BY k HAVING count(*) > {random.choice([0, 0, 1])}"
    )


def _joined(random: Random) -> str:
    left, right = (
        Generator(random, "people", "l."),
        Generator(random, random.choice(["orders", "words"]), "r."),
    )
    kind = random.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
    meeting = random.choice(["int", "text", "int"])
    on = f"{left.expression(meeting, 1)} = {right.expression(meeting, 1)}"
    return (
        f"SELECT {left.key} AS lk, {right.key} AS rk, {left.any()} AS a, {right.any()} AS b "
        f"FROM people l {kind} {right.table} r ON {on}"
    )


def _windowed(random: Random) -> str:
    one = _some(random)
    parts, order = (
        one.any("int", "text", "bool", "double"),
        f"{one.any('int', 'double', 'date', 'text')}, {one.key}",
    )
    descending = random.choice(["", " DESC"])
    over = f"OVER (PARTITION BY {parts} ORDER BY {order}{descending})"
    return (
        f"SELECT {one.key}, row_number() {over} AS r, sum({one.expression('int', 1)}) {over} AS s, "
        f"lag({one.any('text', 'int', 'decimal')}) {over} AS p FROM {one.table}"
    )


def _combined(random: Random) -> str:
    one, other = _some(random), _some(random)
    kinds = [random.choice(list(_LITERALS)) for _ in range(2)]
    sides = [
        f"SELECT {side.expression(kinds[0])} AS a, {side.expression(kinds[1])} AS b FROM {side.table}"
        for side in (one, other)
    ]
    return random.choice([" UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT "]).join(sides)


def _ordered(random: Random) -> str:
    one = _some(random)
    ends = random.choice(["", " DESC", " NULLS LAST", " DESC NULLS FIRST"])
    limit = random.choice(["", " LIMIT 3", " LIMIT 2 OFFSET 1"])
    return f"SELECT {one.key}, {one.any()} AS a FROM {one.table} ORDER BY {one.any()}{ends}, {one.key}{limit}"


def _nested(random: Random) -> str:
    one, other = _some(random), Generator(random, random.choice(list(_COLUMNS)), "q.")
    kind = random.choice(["int", "text", "date", "decimal"])
    inner = f"SELECT {other.expression(kind, 1)} FROM {other.table} q"
    form = random.choice(["{0} IN ({1})", "{0} NOT IN ({1})", "{0} > (SELECT max(v) FROM ({1}) AS t(v))"])
    return f"SELECT {one.key} FROM {one.table} WHERE {form.format(one.expression(kind, 1), inner)}"
