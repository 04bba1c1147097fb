"""The judges of the suite `world`: acknowledged is there once, failed is absent, nothing goes too soon.

- A commit that was acknowledged, or reported as committed, was published once on each of its tables and not
  rolled back.
- What failed, or was told to be run again, was not. What is unknown is whole or absent.
- A look shows a version that was the newest meanwhile.
- A final outcome never changes, and is true.
- What `lives` and `keeping` find in the writes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sim.checkers.history import History, Operation
from sim.checkers.lives.lives import Lives
from sim.checkers.lives.retention import Keeping
from sim.checkers.tables.rows import Rows
from sim.outside.damage import Damage, is_of
from sim.outside.session import AGAIN, Notes, folders_of, home_of
from sim.world.bucket import Bucket

REGISTRY_SECONDS = 15.0
"""How old the names may be by which a client finds a table."""
FINAL = ("committed", "aborted", "torn")


def judge(bucket: Bucket, history: History, notes: Notes, *, may_tear: bool = True) -> list[str]:
    """All violations of one seed."""
    operations = {op.txn: op for op in history.operations if op.txn is not None and op.value is not None}
    values = {op.value for op in history.operations if op.action == "stranger"}
    hopeless = frozenset(op.txn for op in history.operations if op.txn and _is_hopeless(op))
    lives = Lives(operations, values, hopeless, is_of)
    keeping = Keeping(lives, "sim://bucket", {txn: home_of(op.client) for txn, op in operations.items()})
    for write in bucket.writes:
        keeping.see(write)
        lives.see(write)
    damage = Damage(lives, keeping, notes, bucket.writes)
    violations = lives.violations + lives.left_over() + keeping.violations + notes.problems
    for op in history.operations:
        if op.action == "change":
            violations += _judge_change(op, lives, damage)
        elif op.action == "restore":
            violations += _judge_restore(op, lives, damage)
        elif op.action == "read" and op.outcome == "ok" and not damage.is_torn(op.table):
            violations += _judge_look(op, lives, damage)
        if op.failure == "Corrupt" and not damage.explains(op) and op.txn not in lives.told_rightly:
            violations.append(f"operation {op.number} ({op.action}) met {op.error}")
    if not may_tear:
        violations += [f"{location} is torn" for location in sorted(keeping.torn)]
    return violations + _judge_answers(notes, operations.values(), lives, damage)


def _is_hopeless(op: Operation) -> bool:
    """Whether it is told that a version of its own needs files that were deleted while it slept, and cannot
    be rolled back."""
    txn, version = op.named
    return op.failure == "Corrupt" and txn == op.txn and version is not None


def _judge_change(op: Operation, lives: Lives, damage: Damage) -> list[str]:
    counts = {name: lives.done[op.number, name] for name in op.value}
    shown = f"operation {op.number} of {op.client} ({op.outcome}, {op.error[:300]}) is there {counts}"
    clear = {name: count for name, count in counts.items() if not damage.is_spoiled(name)}
    if any(count > 1 for count in clear.values()):
        return [f"{shown}: twice"]
    match op.outcome:
        case "ok" if any(count < 1 for count in clear.values()):
            return [f"{shown}, and was acknowledged"]
        case "failed" if any(counts.values()) and not (op.answer and damage.was_deleted(op)):
            # Else what told of it may have been deleted with its table before it was asked for.
            return [f"{shown}, and was said to be absent"]
        case "unknown" if len(set(clear.values())) > 1 and not damage.may_be_half(op):
            return [f"{shown}: by half"]
        case "torn" if not damage.torn:
            return [f"{shown}, and no table is torn"]
    return []


def _judge_restore(op: Operation, lives: Lives, damage: Damage) -> list[str]:
    """Like a change; but a table that had the rows already needs no version, whatever its client was told."""
    needed = {name: work for name, work in op.value.items() if not _had(lives, name, work[0].rows, op)}
    return _judge_change(replace(op, value=needed), lives, damage)


def _had(lives: Lives, name: str, rows: Rows, op: Operation) -> bool:
    """Whether the table had these rows at some moment of the operation, before it was restored."""
    if lives.done[op.number, name]:
        return False
    for life in lives.lives:
        for number, version in enumerate(life.versions):
            during = version.at <= op.completed and life.until(number) >= op.invoked
            if life.root in folders_of(name) and during and version.rows == rows:
                return True
    return False


def _judge_look(op: Operation, lives: Lives, damage: Damage) -> list[str]:
    for life in lives.lives:
        for number, version in enumerate(life.versions):
            during = version.at <= op.completed and life.until(number) >= op.invoked - REGISTRY_SECONDS
            if during and version.rows == op.result:
                return []
    if damage.is_spoiled(op.table):
        return []
    return [f"operation {op.number} of {op.client} saw no version of {op.table}: {op.result}"]


def _judge_answers(notes: Notes, operations: Iterable[Operation], lives: Lives, damage: Damage) -> list[str]:
    """Outcomes that changed, or that the logs contradict."""
    violations = []
    final: dict[str, str] = {}
    for at, txn, state, advice in notes.answers:
        # What told may have been cleaned away since: then nobody is told to run it again.
        deleted = bool(notes.wrecks or notes.renewals)
        forgotten = state not in FINAL and (deleted or AGAIN not in advice)
        if txn in final and state != final[txn] and not forgotten:
            violations.append(f"the outcome of {txn} was {final[txn]}, and is {state} at {at:.0f}: {advice}")
        if state in FINAL:
            final.setdefault(txn, state)
    for op in operations:
        if any(damage.is_torn(name) or damage.is_spoiled(name) for name in op.value):
            continue
        told = _answers(notes, op.txn)
        done = [lives.done[op.number, name] for name in op.value]
        if "committed" in told and op.action == "change" and not all(count == 1 for count in done):
            violations.append(f"operation {op.number} is said to be committed, and is there {done}")
        if "aborted" in told and any(done):
            violations.append(f"operation {op.number} is said to be absent ({told}), and is there {done}")
    return violations


def _answers(notes: Notes, txn: str | None) -> Sequence[str]:
    return [state for _, asked, state, _ in notes.answers if asked == txn]
