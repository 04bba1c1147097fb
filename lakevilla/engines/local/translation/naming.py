"""The names that Spark gives to columns of a SELECT list without an alias."""

from sqlglot import exp

from lakevilla.sql.dialect import spark_text
from lakevilla.sql.types import arrow_type, type_name

_BINARY = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.And: "AND",
    exp.Or: "OR",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
}


def column_name(node: exp.Expr) -> str:
    """The name of an output column, as Spark would show it."""
    match node:
        case exp.Alias():
            return str(node.alias)
        case exp.Column() | exp.Identifier():
            return str(node.name)
        case exp.Dot():
            return str(node.expression.name)
        case exp.Paren():
            return column_name(node.this)
        case exp.Subquery():
            return "scalarsubquery()"
    return _pretty(node)


def _pretty(node: exp.Expr) -> str:
    kind = type(node)
    if kind in _BINARY:
        return f"({_pretty(node.this)} {_BINARY[kind]} {_pretty(node.expression)})"
    match node:
        case exp.Column():
            return ".".join(part.name for part in node.parts)
        case exp.Paren():
            return _pretty(node.this)
        case exp.Null():
            return "NULL"
        case exp.Boolean():
            return str(node.this).lower()
        case exp.Literal():
            return _literal(node)
        case exp.NEQ():
            return f"(NOT ({_pretty(node.this)} = {_pretty(node.expression)}))"
        case exp.Not() if isinstance(node.this, exp.Is) and isinstance(node.this.expression, exp.Null):
            return f"({_pretty(node.this.this)} IS NOT NULL)"
        case exp.Not():
            return f"(NOT {_pretty(node.this)})"
        case exp.Is():
            return f"({_pretty(node.this)} IS {_pretty(node.expression)})"
        case exp.Neg() if isinstance(node.this, exp.Literal):
            return f"-{_pretty(node.this)}"
        case exp.Neg():
            return f"(- {_pretty(node.this)})"
        case exp.Cast():
            word = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
            return f"{word}({_pretty(node.this)} AS {type_name(arrow_type(node.to)).upper()})"
        case exp.In() if not node.args.get("query"):
            return f"({_pretty(node.this)} IN ({', '.join(_pretty(item) for item in node.expressions)}))"
        case exp.DPipe():
            return f"concat({_pretty(node.this)}, {_pretty(node.expression)})"
        case exp.Case():
            return _case(node)
        case exp.Bracket():
            return f"{_pretty(node.this)}[{', '.join(_pretty(item) for item in node.expressions)}]"
        case exp.Like() | exp.ILike():
            return f"{_pretty(node.this)} {kind.__name__.upper()} {_pretty(node.expression)}"
        case exp.If():
            parts = (node.this, node.args["true"], node.args.get("false"))
            return f"(IF({', '.join(_pretty(part) for part in parts if part)}))"
        case exp.Substring():
            parts = (node.this, node.args.get("start"), node.args.get("length"))
            return f"substring({', '.join(_pretty(part) for part in parts if part)})"
        case exp.Trim() if not node.args.get("expression") and not node.args.get("position"):
            return f"trim({_pretty(node.this)})"
        case exp.CurrentTimestamp():
            return "current_timestamp()"
        case exp.CurrentDate():
            return "current_date()"
        case exp.Anonymous():
            return f"{str(node.this).lower()}({', '.join(_argument(item) for item in node.expressions)})"
    return spark_text(node)


def _argument(node: exp.Expr) -> str:
    if isinstance(node, exp.Star):
        return "1"
    if isinstance(node, exp.Distinct):
        return f"DISTINCT {', '.join(_pretty(item) for item in node.expressions)}"
    return _pretty(node)


def _literal(node: exp.Literal) -> str:
    written = str(node.name)
    return str(float(written)) if not node.is_string and "e" in written.lower() else written


def _case(node: exp.Case) -> str:
    base = [] if node.this is None else [_pretty(node.this)]
    branches = [f"WHEN {_pretty(one.this)} THEN {_pretty(one.args['true'])}" for one in node.args["ifs"]]
    default = node.args.get("default")
    last = [] if default is None else [f"ELSE {_pretty(default)}"]
    return " ".join(["CASE", *base, *branches, *last, "END"])
