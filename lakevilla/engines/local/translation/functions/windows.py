"""OVER and ORDER BY: frames, named windows, and where NULLs go."""

from typing import TYPE_CHECKING

from sqlglot import exp

from lakevilla.engines.local.translation.keys import grouped, sorted_by
from lakevilla.engines.local.translation.types.typed import Typed, refuse
from lakevilla.errors import InvalidInput
from lakevilla.sql.dialect import spark_text

if TYPE_CHECKING:
    from lakevilla.engines.local.translation.expressions import Expressions


def over(expressions: "Expressions", node: exp.Window) -> str:
    """The OVER clause of a call."""
    named = node.args.get("alias")
    if named is not None:
        definition = expressions.windows.get(named.name.lower())
        if definition is None:
            raise InvalidInput(f"unknown window {named.name!r}")
        if node.args.get("partition_by") or node.args.get("order") or node.args.get("spec"):
            refuse("a named window that is changed where it is used")
        return over(expressions, definition)
    parts = []
    partition_by = node.args.get("partition_by") or []
    if partition_by:
        parts.append("PARTITION BY " + ", ".join(grouped(expressions(column)).sql for column in partition_by))
    order = node.args.get("order")
    if order is not None:
        keys = [ordered(expressions(key.this), key) for key in order.expressions]
        parts.append("ORDER BY " + ", ".join(keys))
    spec = node.args.get("spec")
    if spec is not None:
        parts.append(_frame(spec))
    return f" OVER ({' '.join(parts)})"


def definition(expressions: "Expressions", node: exp.Window) -> exp.Window:
    """The window itself, where only its name is written."""
    named = node.args.get("alias")
    return node if named is None else expressions.windows.get(named.name.lower(), node)


def ordered(value: Typed, key: exp.Expr) -> str:
    """One key of an ORDER BY. Spark puts NULLs first going up and last going down."""
    descending = bool(key.args.get("desc"))
    nulls = "FIRST" if key.args.get("nulls_first") else "LAST"
    # The parser fills in Spark's default.
    return f"{sorted_by(value)} {'DESC' if descending else 'ASC'} NULLS {nulls}"


def _frame(spec: exp.WindowSpec) -> str:
    kind = str(spec.args.get("kind")).upper()
    if kind not in ("ROWS", "RANGE") or spec.args.get("exclude"):
        refuse(f"the window frame {spark_text(spec)}")
    start = _bound(spec, "start", kind)
    end = _bound(spec, "end", kind) if spec.args.get("end") else "CURRENT ROW"
    return f"{kind} BETWEEN {start} AND {end}"


def _bound(spec: exp.WindowSpec, which: str, kind: str) -> str:
    value, side = spec.args.get(which), str(spec.args.get(f"{which}_side") or "").upper()
    if value == "CURRENT ROW":
        return "CURRENT ROW"
    if value == "UNBOUNDED":
        return f"UNBOUNDED {side}"
    if kind == "ROWS" and isinstance(value, exp.Literal) and value.name.isdecimal():
        return f"{value.name} {side}"
    return refuse(f"the bound of the window frame {spark_text(spec)}")
