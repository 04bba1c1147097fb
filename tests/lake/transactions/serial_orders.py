"""Small random transactions that run on a lake, in steps, and on plain lists, one after the other.

What they do is a list of steps over a `Player`: the lake's transaction, or a model of it. So a run can be
judged: some order of the transactions that committed must give the same tables, and show each of them what
it saw.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from random import Random
from typing import Any, Protocol

import lakevilla as lv

Row = tuple[int, int, int]
Tables = dict[str, list[Row]]
Numbers = tuple[int, int, int]
"""Rows inserted, updated and deleted."""

COLUMNS = "id BIGINT, p BIGINT, v BIGINT"


class Player(Protocol):
    """What steps are made of. `low` and `high` are bounds of ids, both included."""

    def select(self, table: str, low: int, high: int) -> list[Row]: ...
    def total(self, table: str) -> int: ...
    def add(self, table: str, more: int, low: int, high: int) -> Any: ...
    def lift(self, table: str, above: str, low: int, high: int) -> Any: ...
    def delete(self, table: str, low: int, high: int) -> Any: ...
    def append(self, table: str, rows: Sequence[Row]) -> Any: ...
    def copy(self, table: str, source: str, low: int, high: int) -> Any: ...
    def overwrite(self, table: str, rows: Sequence[Row], part: int | None) -> Any: ...
    def merge(self, table: str, rows: Sequence[Row], kind: str) -> Any: ...
    def savepoint(self) -> None: ...
    def roll_back(self) -> None: ...


@dataclass
class Notes:
    """What a client learned: at once, and from counts that it looks at when all is over."""

    seen: list[Any] = field(default_factory=list)
    later: list[Any] = field(default_factory=list)
    last: int = 0
    saved: int = 0


Step = Callable[[Player, Notes], None]

MERGES: Mapping[str, Mapping[str, Any]] = {
    "upsert": {"matched": "update", "not_matched": "insert"},
    "insert": {"not_matched": "insert"},
    "some": {"matched": [("target.v > 3", {"v": "target.v + source.v"})], "not_matched": "insert"},
    "delete": {"matched": "delete"},
    "mirror": {"not_matched": "insert", "not_matched_by_source": [("target.p = 0", "delete")]},
    "mark": {"not_matched_by_source": {"v": "target.v + 100"}},
}


class OnLake:
    """A transaction of a lake."""

    def __init__(self, tx: lv.Transaction) -> None:
        self._tx = tx

    def select(self, table: str, low: int, high: int) -> list[Row]:
        where = f"WHERE id BETWEEN {low} AND {high}"
        found = self._tx.sql(f"SELECT id, p, v FROM {table} {where} ORDER BY v, id, p")
        return [(row.id, row.p, row.v) for row in found.collect()]

    def total(self, table: str) -> int:
        rows = self._tx.read(table).collect()
        return sum(row.v for row in rows)

    def add(self, table: str, more: int, low: int, high: int) -> Any:
        return self._tx.update(table, {"v": f"v + {more}"}, where=f"id BETWEEN {low} AND {high}")

    def lift(self, table: str, above: str, low: int, high: int) -> Any:
        highest = f"(SELECT coalesce(max(v), 0) FROM {above})"
        return self._tx.sql(f"UPDATE {table} SET v = {highest} + 1 WHERE id BETWEEN {low} AND {high}")

    def delete(self, table: str, low: int, high: int) -> Any:
        return self._tx.delete(table, where=f"id BETWEEN {low} AND {high}")

    def append(self, table: str, rows: Sequence[Row]) -> Any:
        return self._tx.append(table, _dicts(rows))

    def copy(self, table: str, source: str, low: int, high: int) -> Any:
        chosen = f"SELECT id + 10, p, v FROM {source} WHERE id BETWEEN {low} AND {high}"
        return self._tx.sql(f"INSERT INTO {table} {chosen}")

    def overwrite(self, table: str, rows: Sequence[Row], part: int | None) -> Any:
        return self._tx.overwrite(table, _dicts(rows), where=None if part is None else f"p = {part}")

    def merge(self, table: str, rows: Sequence[Row], kind: str) -> Any:
        return self._tx.merge(table, _dicts(rows), on="target.id = source.id", **MERGES[kind])

    def savepoint(self) -> None:
        self._tx.savepoint("a")

    def roll_back(self) -> None:
        self._tx.rollback_to("a")


class OnLists:
    """The same over plain lists."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._saved = _copied(tables)

    def select(self, table: str, low: int, high: int) -> list[Row]:
        found = [row for row in self.tables[table] if low <= row[0] <= high]
        return sorted(found, key=lambda row: (row[2], row[0], row[1]))

    def total(self, table: str) -> int:
        return sum(row[2] for row in self.tables[table])

    def add(self, table: str, more: int, low: int, high: int) -> Numbers:
        return self._update(table, low, high, lambda v: v + more)

    def lift(self, table: str, above: str, low: int, high: int) -> Numbers:
        highest = max((row[2] for row in self.tables[above]), default=0)
        return self._update(table, low, high, lambda _: highest + 1)

    def delete(self, table: str, low: int, high: int) -> Numbers:
        gone = [row for row in self.tables[table] if low <= row[0] <= high]
        self.tables[table] = [row for row in self.tables[table] if not low <= row[0] <= high]
        return 0, 0, len(gone)

    def append(self, table: str, rows: Sequence[Row]) -> Numbers:
        self.tables[table] += rows
        return len(rows), 0, 0

    def copy(self, table: str, source: str, low: int, high: int) -> Numbers:
        chosen = [(row[0] + 10, row[1], row[2]) for row in self.tables[source] if low <= row[0] <= high]
        return self.append(table, chosen)

    def overwrite(self, table: str, rows: Sequence[Row], part: int | None) -> Numbers:
        kept = [row for row in self.tables[table] if part is not None and row[1] != part]
        gone = len(self.tables[table]) - len(kept)
        self.tables[table] = kept + list(rows)
        return len(rows), 0, gone

    def merge(self, table: str, rows: Sequence[Row], kind: str) -> Numbers:
        source, old, new = {row[0]: row for row in rows}, self.tables[table], list[Row]()
        updated = deleted = 0
        for row in old:
            becomes = _merged(kind, row, source.get(row[0]))
            updated += becomes is not None and becomes is not row
            deleted += becomes is None
            new += [] if becomes is None else [becomes]
        known = {row[0] for row in old}
        inserted = [row for row in rows if row[0] not in known and "not_matched" in MERGES[kind]]
        self.tables[table] = new + inserted
        return len(inserted), updated, deleted

    def savepoint(self) -> None:
        self._saved = _copied(self.tables)

    def roll_back(self) -> None:
        self.tables.update(_copied(self._saved))

    def _update(self, table: str, low: int, high: int, value: Callable[[int], int]) -> Numbers:
        old = self.tables[table]
        hit = [low <= row[0] <= high for row in old]
        new = [(row[0], row[1], value(row[2])) if h else row for row, h in zip(old, hit, strict=True)]
        self.tables[table] = new
        return 0, sum(hit), 0


def _merged(kind: str, row: Row, match: Row | None) -> Row | None:
    """The new value of a row of the target; None if it is deleted, the very same object if nothing
    happens."""
    if match is None:
        if kind == "mirror" and row[1] == 0:
            return None
        return (row[0], row[1], row[2] + 100) if kind == "mark" else row
    if kind == "upsert":
        return match[0], match[1], match[2]
    if kind == "some" and row[2] > 3:
        return row[0], row[1], row[2] + match[2]
    return None if kind == "delete" else row


def random_rows(random: Random, most: int) -> list[Row]:
    ids = random.sample(range(1, 9), random.randint(1, most))
    return [(i, random.randint(0, 1), random.randint(1, 9)) for i in ids]


def random_step(random: Random, tables: Sequence[str], reads: Sequence[str]) -> Step:
    """One statement on one of the tables; `reads` are those that it may read."""
    table, other = random.choice(tables), random.choice(reads)
    low = random.randint(1, 8)
    high = low + random.choice((0, 0, 1, 3, 8))
    rows, looks = random_rows(random, 3), random.random() < 0.3
    more, part, kind = random.randint(1, 9), random.choice((None, 0, 1)), random.choice(list(MERGES))
    replaced = rows if part is None else [(i, part, v) for i, _, v in rows]
    own = (random.randint(1, 8), 0)
    changes: list[Callable[[Player, Notes], Any]] = [
        lambda player, _: player.add(table, more, low, high),
        lambda player, _: player.add(table, more, low, high),
        lambda player, _: player.lift(table, other, low, high),
        lambda player, _: player.delete(table, low, high),
        lambda player, _: player.append(table, rows),
        lambda player, notes: player.append(table, [(*own, notes.last)]),
        lambda player, _: player.copy(table, other, low, high),
        lambda player, _: player.overwrite(table, replaced, part),
        lambda player, _: player.merge(table, rows, kind),
    ]
    change = random.choice(changes)

    def run(player: Player, notes: Notes) -> None:
        counts = change(player, notes)
        if looks:
            notes.seen.append(numbers(counts))
        else:
            notes.later.append(counts)

    def select(player: Player, notes: Notes) -> None:
        notes.seen.append(player.select(other, low, high))
        notes.last = sum(row[2] for row in notes.seen[-1])

    def total(player: Player, notes: Notes) -> None:
        notes.last = player.total(other)
        notes.seen.append(notes.last)

    return random.choice((run, run, run, select, total))


def random_program(random: Random, tables: Sequence[str], reads: Sequence[str]) -> list[Step]:
    """One to four statements, sometimes with a savepoint, to which it may return."""
    steps = [random_step(random, tables, reads) for _ in range(random.randint(1, 4))]
    if random.random() < 0.25:
        place = random.randint(0, len(steps) - 1)
        steps.insert(random.randint(place + 1, len(steps)), _roll_back)
        steps.insert(place, _save)
    return steps


def _save(player: Player, notes: Notes) -> None:
    player.savepoint()
    notes.saved = len(notes.later)


def _roll_back(player: Player, notes: Notes) -> None:
    player.roll_back()
    # What a statement would have done that is not there any more is nobody's business.
    del notes.later[notes.saved :]


@dataclass
class Ran:
    """A transaction that committed: what it does, and what its client learned."""

    steps: Sequence[Step]
    notes: Notes


def explains(before: Tables, after: Tables, ran: Sequence[Ran]) -> bool:
    """Whether the transactions in some order make these tables and show what was seen."""
    return any(_plays(_copied(before), after, order) for order in permutations(ran))


def _plays(tables: Tables, after: Tables, order: Sequence[Ran]) -> bool:
    for one in order:
        notes, player = Notes(), OnLists(tables)
        for step in one.steps:
            step(player, notes)
        told = [numbers(counts) for counts in one.notes.later]
        if notes.seen != one.notes.seen or notes.later != told:
            return False
    return all(sorted(tables[name]) == sorted(after[name]) for name in after)


def numbers(counts: Any) -> Numbers:
    """Counts of either player."""
    return counts if isinstance(counts, tuple) else (counts.inserted, counts.updated, counts.deleted)


def _copied(tables: Tables) -> Tables:
    return {name: list(rows) for name, rows in tables.items()}


def _dicts(rows: Sequence[Row]) -> list[dict[str, int]]:
    return [{"id": i, "p": p, "v": v} for i, p, v in rows]
