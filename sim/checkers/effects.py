"""What each action of the actors means for the rows of its table: the specification, in a few lines.

`lists` holds (k, items), `registers` (k, v), `counts` (n, op) and `blind` (op, part).
"""

from typing import Any

from sim.checkers.history import Operation

Row = dict[str, Any]


def rows_after(op: Operation, rows: list[Row]) -> list[Row]:
    """The rows of the table after this operation alone ran on them."""
    match op.action:
        case "append":
            return [*rows, *op.value]
        case "list-append":
            return [{**r, "items": f"{r['items']},{op.value}"} if r["k"] == op.key else r for r in rows]
        case "increment":
            return [{**r, "v": r["v"] + op.value} if r["k"] == op.key else r for r in rows]
        case "increment-from":
            return [{**r, "v": r["v"] + op.value} if r["k"] >= op.key else r for r in rows]
        case "count-insert":
            return [*rows, {"n": len(rows), "op": op.value}]
        case "delete":
            return [r for r in rows if r["part"] != op.key]
        case "overwrite":
            return [r for r in rows if r["part"] != op.key] + list(op.value)
    raise ValueError(f"no effect is written down for {op.action}")


def bag(rows: list[Row]) -> list[tuple[tuple[str, str], ...]]:
    """Rows without their order, for comparison."""
    return sorted(tuple((name, repr(value)) for name, value in sorted(row.items())) for row in rows)
