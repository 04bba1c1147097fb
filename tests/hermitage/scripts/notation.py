"""The notation of the scripts: what one step does, as data, as SQL, and on plain rows.

    T1 w1=11; T2 r*; T1 c; T2 r*,c

A step names its transaction, or belongs to the last one named; commas part steps of one transaction.

    w1=11  w2+=5                set, or raise, the value of one id
    set v=12 where v=10         the same where a condition holds
    v+=10 all                   the same for every row
    r1  r*  p(v%3=0)            read an id, all rows, the rows for which a condition holds
    insert(3,30)  delete v=20   add a row, remove rows
    c  a                        commit, abort

Rows are (id, v). Nothing here knows of tables: a `Layout` says where a row lies.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Rows = tuple[tuple[int, int], ...]
"""Rows as (id, v), sorted; a row that is there twice is in it twice."""

COMMIT, ABORT = "c", "a"


@dataclass(frozen=True)
class Condition:
    """`column = equals` or `column % modulo = equals`."""

    column: str
    equals: int
    modulo: int | None = None

    def holds(self, row: tuple[int, int]) -> bool:
        value = row[0] if self.column == "id" else row[1]
        return (value if self.modulo is None else value % self.modulo) == self.equals

    @property
    def sql(self) -> str:
        left = self.column if self.modulo is None else f"{self.column} % {self.modulo}"
        return f"{left} = {self.equals}"


@dataclass(frozen=True)
class Read:
    where: Condition | None

    def on(self, rows: Rows) -> Rows:
        """The rows that it gives."""
        return tuple(row for row in rows if _holds(self.where, row))


@dataclass(frozen=True)
class Update:
    where: Condition | None
    value: int
    adds: bool = False

    @property
    def expression(self) -> str:
        return f"v + {self.value}" if self.adds else str(self.value)

    def on(self, rows: Rows) -> Rows:
        """The rows after it."""
        changed = ((row[0], self._new(row[1])) if _holds(self.where, row) else row for row in rows)
        return tuple(sorted(changed))

    def _new(self, old: int) -> int:
        return old + self.value if self.adds else self.value


@dataclass(frozen=True)
class Delete:
    where: Condition | None

    def on(self, rows: Rows) -> Rows:
        """The rows after it."""
        return tuple(row for row in rows if not _holds(self.where, row))


@dataclass(frozen=True)
class Insert:
    row: tuple[int, int]

    def on(self, rows: Rows) -> Rows:
        """The rows after it."""
        return tuple(sorted([*rows, self.row]))


Operation = Read | Update | Delete | Insert


@dataclass(frozen=True)
class Layout:
    """In which table a row lies, and whether each of the first rows has a file of its own.

    With one table it is the paper's single-table test; with two, ids 1 and 3 lie in the first and 2 and 4
    in the second (-MT). Rows in one file conflict whenever anything is changed; rows in different files do
    not, so that a conflict follows only from what was read.
    """

    tables: tuple[str, ...] = ("t",)
    apart: bool = True
    formats: tuple[str, ...] = ("delta",)
    """Those of the tables, in turn."""
    vectors: bool = False
    """Whether changes write deletion vectors: then rows of one file do not conflict, if they differ."""

    @property
    def several(self) -> bool:
        """Whether rows lie in more than one table."""
        return len(self.tables) > 1

    def format_of(self, table: str) -> str:
        return self.formats[self.tables.index(table) % len(self.formats)]

    def table_of(self, row_id: int) -> str:
        return self.tables[(row_id - 1) % len(self.tables)]

    def tables_of(self, operation: Operation) -> Sequence[str]:
        """The tables that the operation reads or changes."""
        match operation:
            case Insert(row):
                return (self.table_of(row[0]),)
            case (
                Read(Condition("id", row_id))
                | Update(Condition("id", row_id))
                | Delete(Condition("id", row_id))
            ):
                return (self.table_of(row_id),)
        return self.tables

    def inserts(self, rows: Rows) -> list[tuple[str, Rows]]:
        """What to insert into which table, in this order, for tables that hold these rows."""
        if self.apart:
            return [(self.table_of(row[0]), (row,)) for row in rows]
        return [(name, tuple(row for row in rows if self.table_of(row[0]) == name)) for name in self.tables]


def sql_of(operation: Operation, tables: Sequence[str]) -> list[str]:
    """The statements that do it on these tables; a read is one statement."""
    match operation:
        case Read(where):
            return [" UNION ALL ".join(f"SELECT id, v FROM {name}{_where(where)}" for name in tables)]
        case Update(where):
            return [f"UPDATE {name} SET v = {operation.expression}{_where(where)}" for name in tables]
        case Delete(where):
            return [f"DELETE FROM {name}{_where(where)}" for name in tables]
        case Insert(row):
            return [f"INSERT INTO {name} VALUES {row}" for name in tables]


@dataclass(frozen=True)
class Step:
    """One step as it is written, whose it is, and what it does; an end does `c` or `a`."""

    owner: str
    text: str
    does: Operation | str


def parse_steps(text: str) -> list[Step]:
    """The steps in the order of the text."""
    steps: list[Step] = []
    owner = ""
    for part in text.split(";"):
        named = re.fullmatch(r"\s*(?:(T\d)\s+)?(.+?)\s*", part)
        if not named or not (named[1] or owner):
            raise ValueError(f"{part!r} in {text!r}: a step starts with its transaction, as in 'T1 r*'")
        owner = named[1] or owner
        # The comma of insert(3,30) parts no steps.
        words = [word.strip() for word in re.split(r",(?![^(]*\))", named[2])]
        steps += [Step(owner, word, _meaning(word)) for word in words]
    return steps


def _meaning(word: str) -> Operation | str:
    if word in (COMMIT, ABORT):
        return word
    for pattern, make in _STEPS:
        if found := re.fullmatch(pattern, word):
            return make(found)
    raise ValueError(f"{word!r} is not in the notation")


def _condition(text: str) -> Condition:
    found = re.fullmatch(r"(id|v)(?:%(\d+))?=(\d+)", text)
    if not found:
        raise ValueError(f"{text!r} is not a condition like v=20 or v%3=0")
    return Condition(found[1], int(found[3]), int(found[2]) if found[2] else None)


_STEPS: list[tuple[str, Callable[[re.Match[str]], Operation]]] = [
    (r"w(\d)(\+?)=(\d+)", lambda m: Update(Condition("id", int(m[1])), int(m[3]), bool(m[2]))),
    (r"set v=(\d+) where (\S+)", lambda m: Update(_condition(m[2]), int(m[1]))),
    (r"v\+=(\d+) all", lambda m: Update(None, int(m[1]), adds=True)),
    (r"r\*", lambda m: Read(None)),
    (r"r(\d)", lambda m: Read(Condition("id", int(m[1])))),
    (r"p\((\S+)\)", lambda m: Read(_condition(m[1]))),
    (r"insert\((\d+),(\d+)\)", lambda m: Insert((int(m[1]), int(m[2])))),
    (r"delete (\S+)", lambda m: Delete(_condition(m[1]))),
]


def _holds(where: Condition | None, row: tuple[int, int]) -> bool:
    return where is None or where.holds(row)


def _where(where: Condition | None) -> str:
    return "" if where is None else f" WHERE {where.sql}"
