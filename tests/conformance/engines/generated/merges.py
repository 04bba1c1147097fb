"""Random MERGE statements over two small tables. One seed makes one statement, always the same.

`{t}` and `{u}` stand for the target and the source.
"""

from collections.abc import Callable
from random import Random

import pyarrow as pa

TARGET = pa.schema([("id", pa.int32()), ("k", pa.int32()), ("v", pa.int64()), ("s", pa.string())])
SOURCE = pa.schema([("k", pa.int32()), ("v", pa.int64()), ("s", pa.string()), ("ok", pa.bool_())])

TARGET_FILES = [
    [(1, 1, 10, "a"), (2, 2, 20, None)],
    [(3, 3, None, "c"), (4, None, 40, "d"), (5, 5, 50, "e")],
    [(6, 7, 70, "x"), (7, 7, 71, "y"), (8, 90, -1, "")],
]
SOURCE_ROWS = [
    (1, 11, "a", True),
    (2, None, "b", False),
    (7, 700, "x", None),
    (8, 80, None, True),
    (None, 5, "n", True),
    (90, -1, "z", False),
]
TWICE = [*SOURCE_ROWS, (7, 701, "y", True), (8, 81, "e", True)]

_ON = ["t.k = u.k", "t.k = u.k", "t.k <=> u.k", "t.k = u.k AND t.v > 15", "t.k = u.k AND u.ok", "t.s = u.s"]
_ON += [
    "t.id = u.k",
    "t.k = u.k OR t.s = u.s",
    "t.k = u.k + 1",
    "t.k > 5 AND u.k > 50",
    "t.k IN (1, 7)",
    "false",
]
_BOTH = ["u.ok", "t.v > u.v", "t.v IS NULL", "u.v > 100", "t.s = u.s", "NOT u.ok", "t.id % 2 = 0", "true"]
_SOURCE = ["u.ok", "u.v > 50", "u.k IS NULL", "u.s IS NOT NULL", "length(u.s) = 1"]
_TARGET = ["t.v > 30", "t.s IS NULL", "t.id % 2 = 1", "t.k BETWEEN 3 AND 7"]
_VALUES = {
    "id": ["t.id + 100", "u.k", "CAST(u.v AS INT)"],
    "k": ["u.k", "t.k * 2", "NULL", "u.k + 1000"],
    "v": ["u.v", "t.v + u.v", "coalesce(u.v, 0) - t.id", "7", "3000000000"],
    "s": ["u.s", "concat(t.s, '!')", "upper(u.s)", "NULL", "CAST(u.v AS STRING)"],
}
_INSERTED = {
    "id": ["u.k", "1000", "CAST(u.v AS INT)"],
    "k": ["u.k", "NULL", "u.k * 2"],
    "v": ["u.v", "u.v * u.k", "0"],
    "s": ["u.s", "'new'", "concat(u.s, u.s)"],
}
_ALONE = {"k": ["t.k + 1", "0"], "v": ["t.v * 2", "NULL", "-1"], "s": ["'gone'", "lower(t.s)"]}


def statement(seed: int) -> tuple[bool, str]:
    """Whether the source has several rows for a key, and the MERGE."""
    chance = Random(seed)
    twice = chance.random() < 0.25
    source = chance.choice(["{u} u", "{u} u", "(SELECT * FROM {u} WHERE k IS NOT NULL) u"])
    parts = [f"MERGE INTO {{t}} t USING {source} ON {chance.choice(_ON)}"]
    kinds = chance.choice(["m", "n", "mn", "mn", "mb", "mnb", "b", "nb"])
    if "m" in kinds:
        parts += _clauses(chance, "WHEN MATCHED", _BOTH, lambda: _change(chance, _VALUES))
    if "n" in kinds:
        parts += _clauses(chance, "WHEN NOT MATCHED", _SOURCE, lambda: _insert(chance))
    if "b" in kinds:
        parts += _clauses(chance, "WHEN NOT MATCHED BY SOURCE", _TARGET, lambda: _change(chance, _ALONE))
    return twice, " ".join(parts)


def _clauses(chance: Random, when: str, conditions: list[str], action: Callable[[], str]) -> list[str]:
    count = chance.choice([1, 1, 2, 3])
    made = []
    for number in range(count):
        last = number == count - 1
        bare = last and chance.random() < 0.6
        condition = "" if bare else f" AND {chance.choice(conditions)}"
        made.append(f"{when}{condition} THEN {action()}")
    return made


def _change(chance: Random, values: dict[str, list[str]]) -> str:
    if chance.random() < 0.3:
        return "DELETE"
    columns = chance.sample(sorted(values), chance.randint(1, len(values)))
    return "UPDATE SET " + ", ".join(f"{column} = {chance.choice(values[column])}" for column in columns)


def _insert(chance: Random) -> str:
    columns = chance.sample(sorted(_INSERTED), chance.randint(1, 4))
    values = ", ".join(chance.choice(_INSERTED[column]) for column in columns)
    return f"INSERT ({', '.join(columns)}) VALUES ({values})"
