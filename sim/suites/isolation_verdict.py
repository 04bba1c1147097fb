"""The judges of the isolation suite: one serial order, one instant, all or nothing.

- Every committed transaction of any kind, and every look of a transaction with I, also of one that failed or
  only reads, are in one serial order together; with snapshot isolation but for write skew.
- Real time counts among all whom the global log orders. A writer without slots comes before a transaction
  with I on every table of which that has seen everything (`up_to_date`). Without what those with I have read,
  real time orders all.
- Who has I saw one instant of the global log; others saw each table at one version.
- Acknowledged is present at the end, failed is absent; the sum of the bank never changes.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from sim.actors import isolated_table_changes, table_changes
from sim.actors.isolated import AUDITOR, BANK, TOTAL
from sim.checkers.atomicity import Standing, standing
from sim.checkers.history import History, Operation
from sim.checkers.isolation.cycles import Append, Read, Txn, find_anomalies
from sim.checkers.isolation.instants import Instants, check_instant, check_tables, read_instants
from sim.checkers.isolation.looks import (
    Deed,
    Look,
    as_txn,
    inserted_keys,
    is_ordered,
    items,
    reads_of,
    up_to_date,
)
from sim.checkers.isolation.serial import find_serial_order
from sim.checkers.lake.published import SLOT
from sim.checkers.relays import judge_relays
from sim.checkers.tables.torn import Torn
from sim.world.bucket import Bucket

ENTRIES = 12
"""So many entries one transaction may have: each but the last was refused by somebody else's commit."""
SMALL = 8
"""So many transactions are a small history: all their orders can be tried."""


@dataclass
class Final:
    """What an auditor found at the end, and the operations by which it did."""

    lists: dict[str, tuple[int, ...]] = field(default_factory=dict)
    sums: dict[str, int] = field(default_factory=dict)
    looks: dict[str, Look] = field(default_factory=dict)
    tags: dict[int, str] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    def see(self, table: str, rows: Sequence[Any], how: str) -> None:
        """A table as it is; after `sync` every reader sees the same, with isolation or without."""
        look = Look(table, tuple(sorted((row[0], row[1], row[2]) for row in rows)))
        if self.looks.setdefault(table, look) != look:
            self.violations.append(f"{table} looks different in the end ({how}): {look} {self.looks[table]}")
        keys = [row[0] for row in look.rows]
        if len(set(keys)) != len(keys):
            self.violations.append(f"{table} holds a row twice: {look.rows}")
        self.lists |= {f"{table}/{key}": items(text) for key, _, text in look.rows}
        self.sums[table] = sum(row[1] for row in look.rows)


def judge(bucket: Bucket, history: History, final: Final) -> list[str]:
    """All violations of one seed."""
    violations = list(final.violations)
    torn = Torn(bucket.writes)
    left_out, found = judge_relays(history, _appends_of, final.lists, torn)
    violations += found
    deeds = [(op, deed) for op, deed in _deeds(history) if op.number not in left_out]
    instants = read_instants(bucket.writes, sorted({*final.looks, *(t for _, d in deeds for t in d.tables)}))
    stands = {op.number: standing(op, deed.appends, final.lists, torn) for op, deed in deeds}
    for op, deed in deeds:
        violations += stands[op.number].violations
        violations += _judge_looks(instants, op, deed, stands[op.number], torn)
    violations += _judge_legacy(instants, history)
    # Half of a transfer that was torn stays where somebody built on it.
    if (total := sum(final.sums[table] for table in BANK)) != TOTAL and not torn.flagged & set(BANK):
        violations.append(f"the bank holds {total} in the end, and began with {TOTAL}")
    for key, values in final.lists.items():
        if len(set(values)) != len(values):
            violations.append(f"{key} holds a value twice: {values}")
    violations += table_changes.judge(history, final.lists, final.tags, torn)
    violations += isolated_table_changes.judge(history, deeds, final.lists, torn)
    violations += _judge_persistence(bucket)
    return violations + _judge_order(deeds, stands, final, torn, instants)


def _appends_of(op: Operation) -> list[Append]:
    return op.result.appends if isinstance(op.result, Deed) else []


def _deeds(history: History) -> list[tuple[Operation, Deed]]:
    """All transactions with what they did; the outside writers' too."""
    found = [(op, op.result) for op in history.of("lists") if isinstance(op.result, Deed)]
    for op in history.operations:
        if op.action == "making":
            found.append((op, isolated_table_changes.deed_of(op)))
        elif op.action == "append":
            row = op.value[0]
            deed = Deed(isolated=False, snapshot=False, across=False)
            deed.steps.append(Append(f"{op.table}/{row['k']}", items(row["items"])[0]))
            found.append((op, deed))
    return sorted(found, key=lambda pair: pair[0].number)


def _judge_looks(instants: Instants, op: Operation, deed: Deed, stands: Standing, torn: Torn) -> list[str]:
    if not deed.isolated:
        return check_tables(instants, op, [look for look in deed.looks if not look.own])
    violations = check_instant(instants, op, deed, stands.committed)
    complete = [look for look in deed.looks if look.key is None and not look.inserted and not look.own]
    shown = {look.table: look for look in complete}
    # Until the auditor accepts torn tables as they are, no transaction with isolation sees them so.
    accepted = op.client == AUDITOR and torn.flagged & set(BANK)
    if all(table in shown for table in BANK) and not accepted:
        total = sum(row[1] for table in BANK for row in shown[table].rows)
        if total != TOTAL:
            violations.append(f"operation {op.number} saw {total} in the bank, which holds {TOTAL}")
    return violations


def _judge_legacy(instants: Instants, history: History) -> list[str]:
    violations = []
    for op in history.operations:
        if op.action == "read" and op.outcome == "ok" and op.table in instants.tables:
            rows = tuple((row["k"], row["v"], row["items"]) for row in op.result)
            violations += check_tables(instants, op, [Look(op.table, rows)])
    return violations


def _judge_persistence(bucket: Bucket) -> list[str]:
    """No transaction is decided again and again and rolled back each time."""
    slots = [json.loads(w.data) for w in bucket.writes if w.data is not None and SLOT.match(w.key)]
    commits = Counter(slot["txn"] for slot in slots if slot["change"]["kind"] == "commit")
    return [f"transaction {txn} has {count} entries" for txn, count in commits.items() if count > ENTRIES]


def _judge_order(
    deeds: Sequence[tuple[Operation, Deed]],
    stands: Mapping[int, Standing],
    final: Final,
    torn: Torn,
    instants: Instants,
) -> list[str]:
    keys = inserted_keys(deed for _, deed in deeds)
    for look in final.looks.values():
        keys.setdefault(look.table, set()).update(row[0] for row in look.rows)
    txns: list[Txn] = []
    known: dict[int, Deed] = {}
    for op, deed in deeds:
        stand = stands[op.number]
        if stand.torn:
            txn = Txn(len(txns), tuple(stand.appends), "ok", op.invoked)
        elif deed.isolated or (stand.committed and deed.appends):
            txn = as_txn(len(txns), op, deed, stand.committed, keys)
        else:
            continue
        if txn.steps:
            # A transaction that saw nothing may have ended before it had an instant.
            known[txn.id] = _with_order(op, deed, stand, instants)
            txns.append(txn)
        if not stand.committed and deed.appends:
            txns.append(Txn(len(txns), tuple(deed.appends), "failed"))
    reads = tuple(read for look in final.looks.values() for read in reads_of(look, keys[look.table]))
    txns.append(Txn(len(txns), reads, "ok", float("inf")))

    def precedes(first: Txn, second: Txn) -> bool:
        one, other = known.get(first.id), known.get(second.id)
        return one is None or other is None or is_ordered(one, other, torn.flagged)

    snapshot = {number for number, deed in known.items() if deed.snapshot}
    found = find_anomalies(txns, precedes=precedes, snapshot=snapshot)
    if not found:
        # Only what one with I has read may be older than a writer that ended before.
        unread = {number for number, deed in known.items() if deed.isolated}
        found = find_anomalies([_without_reads(txn) if txn.id in unread else txn for txn in txns])
    violations = [f"{a.kind}: {a.detail} of {_named(a.detail, txns)}" for a in found]
    if len(txns) <= SMALL and not snapshot and find_serial_order(txns, precedes=precedes) is None:
        violations.append(f"no serial order explains {txns}")
    return violations


def _with_order(op: Operation, deed: Deed, stand: Standing, instants: Instants) -> Deed:
    """The deed with the tables of which it has seen everything. Of one that was resumed, or that looks at
    tables which others make and drop, no more is known than the tables of its first statement."""
    if not deed.isolated:
        return deed
    is_known = not deed.tags and op.begun is None and op.action != "making"
    quiet = partial(instants.is_quiet, op=op) if is_known else lambda _: False
    return replace(deed, first=up_to_date(deed, stand.committed, quiet))


def _without_reads(txn: Txn) -> Txn:
    return replace(txn, steps=tuple(step for step in txn.steps if isinstance(step, Append)))


def _named(detail: str, txns: Sequence[Txn]) -> str:
    """The transactions of a finding, with what they did."""
    numbers = [int(part[1:]) for part in detail.split() if part[:1] == "T" and part[1:].isdigit()]
    shown = dict.fromkeys(number for number in numbers if number < len(txns))
    return "; ".join(f"T{number} {_short(txns[number])}" for number in shown)


def _short(txn: Txn) -> str:
    steps = [f"{s.key}={list(s.values)}" if isinstance(s, Read) else f"{s.key}+{s.value}" for s in txn.steps]
    return f"({txn.invoked:.2f}-{txn.completed:.2f}) " + " ".join(steps)
