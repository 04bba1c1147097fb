"""What transactions of the isolation suite did and saw, and the history of lists that it makes.

All tables hold (k, v, items): a row is a key whose list is `items`. A row that is inserted is a separate key,
which earlier readers of the table saw empty; so a transaction that counts rows and one that inserts a row are
ordered like any reader and writer.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sim.checkers.history import Operation
from sim.checkers.isolation.cycles import Append, Read, Txn

INSERTED = 1000
"""Keys from here on are rows that were inserted; those below were there from the beginning."""

Row = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Look:
    """The rows of one table that a statement gave back: all, those of one key, or those inserted."""

    table: str
    rows: tuple[Row, ...]
    key: int | None = None
    inserted: bool = False
    own: bool = False
    """Whether the transaction had changed the table before."""

    def shows(self, key: int) -> bool:
        """Whether a row with this key is among those that were asked for."""
        return key >= INSERTED if self.inserted else self.key is None or key == self.key


@dataclass(slots=True)
class Deed:
    """The last attempt of one transaction. `first` are the tables that its first statement names, for judges
    all of which it has seen everything; `seq` is the entry of the global log that its receipt tells."""

    isolated: bool
    snapshot: bool
    across: bool
    """Whether it may be decided by the global log: it has I, or CT."""
    steps: list[Append | Look] = field(default_factory=list)
    first: frozenset[str] = frozenset()
    seq: int | None = None
    tags: dict[str, set[int]] = field(default_factory=dict)
    """What tables held that are made and dropped meanwhile, by name; nothing where there was no table."""

    @property
    def appends(self) -> list[Append]:
        return [step for step in self.steps if isinstance(step, Append)]

    @property
    def looks(self) -> list[Look]:
        return [step for step in self.steps if isinstance(step, Look)]

    @property
    def tables(self) -> set[str]:
        written = {step.key.split("/")[0] for step in self.appends}
        return written | {look.table for look in self.looks}

    @property
    def by_slot(self) -> bool:
        """Whether the global log orders it: all with I, and with CT if there is more than one table."""
        return self.isolated or (self.across and len(self.tables) > 1)


def is_ordered(one: Deed, other: Deed, torn: Collection[str]) -> bool:
    """Whether real time orders two transactions, of which the first ended before the other began.

    It does among those that the global log orders. A writer without slots comes before a transaction with I
    only on tables of which that has seen everything (`up_to_date`), and that are not torn.
    """
    return one.by_slot or (other.isolated and bool((one.tables & other.first).difference(torn)))


def up_to_date(deed: Deed, committed: bool, is_quiet: Callable[[str], bool]) -> frozenset[str]:
    """The tables of a transaction with I of which it has seen what any writer had committed before it began
    (docs/guarantees.md, "One instant").

    - Those of its first statement.
    - A later table, if nothing that it had touched by then has moved: `is_quiet` says that of a table, for
      the whole time of the transaction.
    - All, if it is serializable, has written and was committed: then what it has read was still so.
    """
    if committed and deed.appends and not deed.snapshot:
        return frozenset(deed.tables)
    seen, touched = set(deed.first), set(deed.first)
    for step in deed.steps:
        table = step.table if isinstance(step, Look) else step.key.split("/")[0]
        if table not in touched and all(map(is_quiet, touched)):
            seen.add(table)
        touched.add(table)
    return frozenset(seen)


def items(text: str) -> tuple[int, ...]:
    return tuple(int(item) for item in text.split(",") if item)


def inserted_keys(deeds: Iterable[Deed]) -> dict[str, set[int]]:
    """By table, the keys of all rows that were inserted or seen."""
    found: dict[str, set[int]] = {}
    for deed in deeds:
        for append in deed.appends:
            table, _, key = append.key.partition("/")
            found.setdefault(table, set()).add(int(key))
        for look in deed.looks:
            found.setdefault(look.table, set()).update(row[0] for row in look.rows)
    return found


def as_txn(number: int, op: Operation, deed: Deed, committed: bool, keys: Mapping[str, set[int]]) -> Txn:
    """A transaction as the cycle checker wants it.

    One that is not committed counts with what it saw of others, if it had isolation: an instant is an
    instant. What it wrote is kept by `failed_txn`.
    """
    own = {append.value for append in deed.appends}
    steps: list[Append | Read] = []
    for step in deed.steps:
        if isinstance(step, Append):
            if committed:
                steps.append(step)
            continue
        reads = reads_of(step, keys.get(step.table, set()))
        if committed:
            steps += reads
        else:
            steps += [Read(r.key, tuple(value for value in r.values if value not in own)) for r in reads]
    # What was not acknowledged may become visible at any time after it began.
    completed = float("inf") if committed and op.outcome != "ok" else op.completed
    return Txn(number, tuple(steps), "ok", op.invoked, completed)


def reads_of(look: Look, keys: Iterable[int]) -> list[Read]:
    """The lists that a look showed, with the empty ones."""
    shown = {key: text for key, _, text in look.rows}
    wanted = {key for key in keys if look.shows(key)} | set(shown)
    return [Read(f"{look.table}/{key}", items(shown.get(key, ""))) for key in sorted(wanted)]


def twice(look: Look) -> bool:
    """Whether a key is there more than once."""
    return len({row[0] for row in look.rows}) != len(look.rows)


def whole(rows: Sequence[Row]) -> Sequence[Row]:
    """Rows in an order in which they can be compared."""
    return sorted(rows)
