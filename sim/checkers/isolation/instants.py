"""The global log replayed as a serial history: what each look at the lake must have shown.

HEAD's versions and the tables' own logs tell every instant of the lake. A transaction with isolation saw one
of them, of the time while it ran; one that committed with serializable isolation would have seen the same
right before its entry was decided. Every other transaction saw each table at a version that was the newest at
some time while it ran.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sim.checkers.history import Operation
from sim.checkers.isolation.looks import Deed, Look, Row
from sim.checkers.lake.heads import Heads
from sim.checkers.lake.published import HEAD
from sim.checkers.tables.effects import Row as RowDict
from sim.checkers.tables.versions import TimedWrite, Version, newest_during, table_versions


@dataclass(frozen=True)
class Instants:
    """Every instant of the lake: when HEAD got there, and the versions of its tables by location."""

    times: list[float]
    versions: list[dict[str, int]]
    seqs: list[int]
    tables: dict[str, list[Version]]

    def during(self, op: Operation) -> range:
        """The instants that HEAD told while the operation ran."""
        first = max(bisect_right(self.times, op.invoked) - 1, 0)
        return range(first, bisect_right(self.times, op.completed))

    def is_quiet(self, table: str, op: Operation) -> bool:
        """Whether no version of the table was published while the operation ran."""
        return not any(op.looks_from <= version.at <= op.completed for version in self.tables[table])

    def before(self, seq: int) -> range:
        """The instant right before an entry."""
        at = self.seqs.index(seq - 1) if seq - 1 in self.seqs else -1
        return range(at, at + 1) if at >= 0 else range(0)

    def shows(self, at: int, look: Look, op: Operation) -> bool:
        """Whether this is what a look shows at an instant. A client that could not make a table part of the
        instant sees the table as it is."""
        versions, known = self.tables[look.table], self.versions[at].get(look.table)
        if known is None:
            first, last = newest_during(op, versions)
            shown = versions[first : last + 1]
        else:
            shown = versions[known : known + 1]
        return any(chosen(look, version.rows) == sorted(look.rows) for version in shown)


def read_instants(writes: Sequence[TimedWrite], tables: Iterable[str]) -> Instants:
    """All instants, with the logs of these tables."""
    heads = Heads()
    # Before the first HEAD there is an instant too, of which nothing is known.
    found = Instants([-1.0], [{}], [-1], {table: table_versions(writes, table) for table in tables})
    for write in writes:
        if write.data is None or heads.see(write.key, write.data) or write.key != HEAD:
            continue
        state = heads.unpack(write.data)
        found.times.append(write.at)
        found.versions.append(dict(state.get("versions", {})))
        found.seqs.append(state["seq"])
    return found


def chosen(look: Look, rows: Iterable[RowDict]) -> list[Row]:
    """Those of a version's rows that a look asks for."""
    return sorted((row["k"], row["v"], row["items"]) for row in rows if look.shows(row["k"]))


def check_instant(instants: Instants, op: Operation, deed: Deed, committed: bool) -> list[str]:
    """A transaction with isolation saw one instant."""
    looks = [look for look in deed.looks if not look.own]
    if not looks:
        return []
    if not any(_fits(instants, at, looks, op) for at in instants.during(op)):
        return [f"operation {op.number} ({op.outcome}) saw no instant of the lake: {_shown(looks)}"]
    if committed and deed.seq is not None and deed.appends and not deed.snapshot:
        before = instants.before(deed.seq)
        if before and not any(_fits(instants, at, looks, op) for at in before):
            return [f"operation {op.number} is entry {deed.seq}, and saw another instant: {_shown(looks)}"]
    return []


def check_tables(instants: Instants, op: Operation, looks: Iterable[Look]) -> list[str]:
    """Without isolation each table is seen at a version of its own, the newest at some time."""
    violations = []
    for look in looks:
        versions = instants.tables[look.table]
        first, last = newest_during(op, versions)
        if not any(chosen(look, v.rows) == sorted(look.rows) for v in versions[first : last + 1]):
            violations.append(f"operation {op.number} saw no version of {look.table}: {look.rows}")
    return violations


def _fits(instants: Instants, at: int, looks: Iterable[Look], op: Operation) -> bool:
    return all(instants.shows(at, look, op) for look in looks)


def _shown(looks: Iterable[Look]) -> str:
    return "; ".join(f"{look.table} {sorted(look.rows)}" for look in looks)
