"""The names that Spark gives to columns of a SELECT list without an alias.

They show what Spark made of an expression: defaults are written out, some functions in capitals, tables of
columns left out. The odd ones (lambdas, intervals) are not followed.
"""

from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
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
_CAPITALS = {"ceil", "floor", "sqrt", "power", "signum", "rlike", "regexp_like"}

# The arguments that Spark adds, by name and number of those that are there.
_DEFAULTS = {
    ("round", 1): "0",
    ("locate", 2): "1",
    ("lpad", 2): " ",
    ("rpad", 2): " ",
    ("replace", 2): "",
    ("split", 2): "-1",
    ("regexp_extract", 2): "1",
    ("regexp_replace", 3): "1",
    ("sort_array", 1): "true",
    ("percentile", 2): "1",
    ("unix_timestamp", 1): "yyyy-MM-dd HH:mm:ss",
    ("to_unix_timestamp", 1): "yyyy-MM-dd HH:mm:ss",
}


def column_name(node: exp.Expr, is_table: Callable[[list[str]], bool]) -> str:
    """The name of an output column, as Spark would show it; `is_table` knows the qualifiers of columns."""
    node = _unqualified(node, is_table)
    match node:
        case exp.Cast() if isinstance(node.this, exp.Column | exp.Dot):
            return column_name(node.this, is_table)
        case exp.Anonymous() if (
            str(node.this).lower() in ("date", "timestamp") and len(node.expressions) == 1
        ):
            return column_name(node.expressions[0], is_table)
        case exp.Alias():
            return str(node.alias)
        case exp.Column() | exp.Identifier():
            return str(node.name)
        case exp.Dot():
            return str(node.expression.name)
        case exp.Paren():
            return column_name(node.this, is_table)
        case exp.Subquery():
            return "scalarsubquery()"
    return _pretty(node)


def _unqualified(node: exp.Expr, is_table: Callable[[list[str]], bool]) -> exp.Expr:
    """The expression with columns named as Spark shows them: fields of structs in full, tables left out."""
    if not any(column.table for column in node.find_all(exp.Column)):
        return node
    node = node.copy()
    for column in node.find_all(exp.Column):
        names = [part.name for part in column.parts]
        tables = [count for count in range(1, len(names)) if is_table(names[:count])]
        for key in ("catalog", "db", "table")[3 - len(names) + 1 :][: max(tables, default=0)]:
            column.set(key, None)
    return node


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
        case exp.Is() if isinstance(node.expression, exp.Boolean):
            return f"({_pretty(node.this)} <=> {_pretty(node.expression)})"
        case exp.NullSafeNEQ():
            return f"(NOT ({_pretty(node.this)} <=> {_pretty(node.expression)}))"
        case exp.Filter():
            return f"{_pretty(node.this)} FILTER (WHERE {_pretty(node.expression.this)})"
        case exp.Extract():
            return f"extract({node.name.upper()} FROM {_pretty(node.expression)})"
        case exp.Between():
            return f"between({_pretty(node.this)}, {_pretty(node.args['low'])}, {_pretty(node.args['high'])})"
        case exp.RegexpLike():
            return f"RLIKE({_pretty(node.this)}, {_pretty(node.expression)})"
        case exp.StrPosition():
            return f"locate({_pretty(node.args['substr'])}, {_pretty(node.this)}, 1)"
        case exp.Is():
            return f"({_pretty(node.this)} IS {_pretty(node.expression)})"
        case exp.Neg() if isinstance(node.this, exp.Literal):
            return f"-{_pretty(node.this)}"
        case exp.Neg():
            return f"(- {_pretty(node.this)})"
        case exp.Cast() if pa.types.is_nested(arrow_type(node.to)):
            return _pretty(node.this)
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
        case exp.Like():
            return f"{_pretty(node.this)} LIKE {_pretty(node.expression)}"
        case exp.ILike():
            return f"ilike({_pretty(node.this)}, {_pretty(node.expression)})"
        case exp.If():
            parts = (node.this, node.args["true"], node.args.get("false"))
            return f"(IF({', '.join(_pretty(part) for part in parts if part)}))"
        case exp.Substring() if node.args.get("start"):
            start, length = _pretty(node.args["start"]), node.args.get("length")
            return f"substring({_pretty(node.this)}, {start}, {_pretty(length) if length else 2**31 - 1})"
        case exp.Trim() if not node.args.get("expression") and not node.args.get("position"):
            return f"trim({_pretty(node.this)})"
        case exp.CurrentTimestamp():
            return "current_timestamp()"
        case exp.CurrentDate():
            return "current_date()"
        case exp.Anonymous():
            return _call(str(node.this).lower(), [_argument(item) for item in node.expressions])
    return spark_text(node)


def _call(name: str, arguments: list[str]) -> str:
    if name in ("isnull", "isnotnull") and len(arguments) == 1:
        return f"({arguments[0]} IS {'NOT ' if name == 'isnotnull' else ''}NULL)"
    default = _DEFAULTS.get((name, len(arguments)))
    listed = ", ".join(arguments if default is None else [*arguments, default])
    return f"{name.upper() if name in _CAPITALS else name}({listed})"


def _argument(node: exp.Expr) -> str:
    if isinstance(node, exp.Star):
        return "1"
    if isinstance(node, exp.Distinct):
        return f"DISTINCT {', '.join(_pretty(item) for item in node.expressions)}"
    return _pretty(node)


def _literal(node: exp.Literal) -> str:
    written = str(node.name)
    if node.is_string or "e" not in written.lower():
        return written
    value = float(written)
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return str(value)
    digits, _, exponent = f"{Decimal(repr(value)).normalize():E}".partition("E")
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


def _case(node: exp.Case) -> str:
    branches = []
    for one in node.args["ifs"]:
        holds = _pretty(one.this) if node.this is None else f"({_pretty(node.this)} = {_pretty(one.this)})"
        branches.append(f"WHEN {holds} THEN {_pretty(one.args['true'])}")
    default = node.args.get("default")
    last = [] if default is None else [f"ELSE {_pretty(default)}"]
    return " ".join(["CASE", *branches, *last, "END"])
