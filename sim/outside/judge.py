"""The judges of the suite `world`: acknowledged is there once, failed is absent, nothing goes too soon.

- What was acknowledged, or told to be committed, was published once on each of its tables and not taken back.
- What failed, or was told to be run again, was not. What is unknown is whole or absent.
- A look shows a version that was the newest meanwhile.
- A final outcome never changes, and is true.
- What `lives` and `keeping` find in the writes.
"""

from collections.abc import Iterable, Sequence

from sim.checkers.history import History, Operation
from sim.checkers.tables.lives import Lives
from sim.checkers.tables.retention import Keeping
from sim.outside.plan import DAY
from sim.outside.session import AGAIN, Notes
from sim.world.bucket import Bucket

REGISTRY_SECONDS = 15.0
"""How old the names may be by which a client finds a table."""
HOPELESS = "could not be rolled back"
"""What a client is told that slept right before its last request for longer than vacuum waits."""
MISSING = "parquet of"
VANISHED = "vanished while the log was read"
"""What a client is told that slept between a LIST of a log and its GETs while the log was cleaned."""
FINAL = ("committed", "aborted", "torn")


def judge(bucket: Bucket, history: History, notes: Notes) -> list[str]:
    """All violations of one seed."""
    operations = {op.txn: op for op in history.operations if op.txn is not None and op.value is not None}
    values = {op.value for op in history.operations if op.action == "stranger"}
    hopeless = frozenset(op.txn for op in history.operations if op.txn and HOPELESS in op.error)
    lives = Lives(operations, values, hopeless)
    keeping = Keeping(lives, "sim://bucket")
    for write in bucket.writes:
        keeping.see(write)
        lives.see(write)
    violations = lives.violations + keeping.violations + notes.problems
    for op in history.operations:
        if op.action == "change":
            violations += _judge_change(op, lives, keeping, notes)
        elif op.action == "read" and op.outcome == "ok" and not keeping.torn:
            violations += _judge_look(op, lives)
        corrupt = op.error.startswith("Corrupt") and op.outcome != "torn"
        if corrupt and not _is_late(op) and not _is_wrecked(op, notes) and not hopeless:
            violations.append(f"operation {op.number} ({op.action}) met {op.error}")
    return violations + _judge_answers(notes, operations.values(), lives, keeping)


def _is_late(op: Operation) -> bool:
    """Whether it slept so long that what it read was cleaned away meanwhile."""
    return VANISHED in op.error or (MISSING in op.error and op.completed - op.invoked > DAY / 2)


def _is_wrecked(op: Operation, notes: Notes) -> bool:
    """Whether the operation may have met what is left of a deleted folder."""
    return bool(notes.wrecks) or any(op.invoked <= at <= op.completed for at in notes.renewals)


def _judge_change(op: Operation, lives: Lives, keeping: Keeping, notes: Notes) -> list[str]:
    counts = {name: lives.done[op.number, name] for name in op.value}
    shown = f"operation {op.number} of {op.client} ({op.outcome}, {op.error[:300]}) is there {counts}"
    if any(count > 1 for count in counts.values()):
        return [f"{shown}: twice"]
    match op.outcome:
        case "ok" if any(count < 1 for count in counts.values()) and not lives.spoiled:
            return [f"{shown}, and was acknowledged"]
        case "failed" if any(counts.values()) and not (_was_told(op) and (notes.wrecks or notes.renewals)):
            # Else what told of it may have been deleted with its table before it was asked for.
            return [f"{shown}, and was said to be absent"]
        case "unknown" if len(set(counts.values())) > 1 and not keeping.torn and not lives.spoiled:
            return [f"{shown}: by half"]
        case "torn" if not keeping.torn:
            return [f"{shown}, and no table is torn"]
    return []


def _was_told(op: Operation) -> bool:
    """Whether it is failed because of what `lake.outcome` said."""
    return "; told " in op.error


def _judge_look(op: Operation, lives: Lives) -> list[str]:
    for life in lives.lives:
        for number, version in enumerate(life.versions):
            during = version.at <= op.completed and life.until(number) >= op.invoked - REGISTRY_SECONDS
            if during and version.rows == op.result:
                return []
    if lives.spoiled:
        return []
    return [f"operation {op.number} of {op.client} saw no version of {op.table}: {op.result}"]


def _judge_answers(
    notes: Notes, operations: Iterable[Operation], lives: Lives, keeping: Keeping
) -> list[str]:
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
    if keeping.torn or lives.spoiled:
        return violations
    for op in operations:
        told = _answers(notes, op.txn)
        done = [lives.done[op.number, name] for name in op.value]
        if "committed" in told and op.action == "change" and not all(count == 1 for count in done):
            violations.append(f"operation {op.number} is said to be committed, and is there {done}")
        if "aborted" in told and any(done):
            violations.append(f"operation {op.number} is said to be absent ({told}), and is there {done}")
    return violations


def _answers(notes: Notes, txn: str | None) -> Sequence[str]:
    return [state for _, asked, state, _ in notes.answers if asked == txn]
