"""What each action of the actors means for the rows of its table: the specification, in a few lines.

`lists` holds (k, items), `registers` (k, v), `counts` (n, op) and `blind` (op, part).
"""

from collections.abc import Sequence
from typing import Any

from sim.checkers.history import Operation, Step

Row = dict[str, Any]


def rows_after(op: Operation, rows: list[Row]) -> list[Row]:
    """The rows of the table after this operation alone ran on them."""
    if op.action == "steps":
        return rows_after_steps(op.changes(), rows)
    return _after(op, rows)


def rows_after_steps(changes: Sequence[Step], rows: list[Row]) -> list[Row]:
    """The rows after these changes, in this order."""
    for step in changes:
        rows = _after(step, rows)
    return rows


def shown(step: Step, rows: list[Row]) -> bool:
    """Whether a client that looked at these rows was shown what the step says."""
    if step.action in ("asked", "refused"):
        return True
    if step.key is not None:
        column, value = step.key
        rows = [row for row in rows if row[column] == value]
    return len(rows) == step.value if step.action == "count" else bag(rows) == bag(step.value)


def _after(step: Operation | Step, rows: list[Row]) -> list[Row]:
    match step.action:
        case "append":
            return [*rows, *step.value]
        case "list-append":
            return [{**r, "items": f"{r['items']},{step.value}"} if r["k"] == step.key else r for r in rows]
        case "increment":
            return [{**r, "v": r["v"] + step.value} if r["k"] == step.key else r for r in rows]
        case "increment-from":
            return [{**r, "v": r["v"] + step.value} if r["k"] >= step.key else r for r in rows]
        case "increment-high":
            return [{**r, "v": r["v"] + step.value} if r["v"] >= step.key else r for r in rows]
        case "set":
            return [{**r, "v": step.value} if r["k"] == step.key else r for r in rows]
        case "count-insert":
            return [*rows, {"n": len(rows), "op": step.value}]
        case "delete":
            return [r for r in rows if r["part"] != step.key]
        case "renumber":
            return [{**r, "op": r["op"] + step.value} if r["part"] == step.key else r for r in rows]
        case "overwrite":
            return [r for r in rows if r["part"] != step.key] + list(step.value)
        case "set-properties" | "optimize":
            return rows
    raise ValueError(f"no effect is written down for {step.action}")


def bag(rows: list[Row]) -> list[tuple[tuple[str, str], ...]]:
    """Rows without their order, for comparison."""
    return sorted(tuple((name, repr(value)) for name, value in sorted(row.items())) for row in rows)
