"""One SELECT: its list, WHERE, GROUP BY, HAVING, DISTINCT, ORDER BY, LIMIT."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from lakevilla.engines.local.translation.expressions import Expressions
from lakevilla.engines.local.translation.functions.windows import ordered
from lakevilla.engines.local.translation.keys import distinct, grouped
from lakevilla.engines.local.translation.queries.column_names import column_name
from lakevilla.engines.local.translation.queries.relations import From, generator_of
from lakevilla.engines.local.translation.queries.scope import Output, Scope, follow
from lakevilla.engines.local.translation.types.typed import Typed, only, refuse
from lakevilla.errors import InvalidInput
from lakevilla.sql.dialect import spark_text

if TYPE_CHECKING:
    from lakevilla.engines.local.translation.queries.queries import Queries

_KNOWN = {
    "expressions",
    "from_",
    "joins",
    "laterals",
    "where",
    "group",
    "having",
    "distinct",
    "order",
    "limit",
    "offset",
    "windows",
    "with_",
    "hint",
}

_GROUPINGS: dict[type[exp.Expr], str] = {
    exp.Rollup: "ROLLUP",
    exp.Cube: "CUBE",
    exp.GroupingSets: "GROUPING SETS",
}

Projection = tuple[str, Typed]


def translate_select(queries: "Queries", node: exp.Select, scope: Scope) -> tuple[str, list[Output]]:
    """The SELECT as text, and its columns."""
    only(node, *_KNOWN)
    source = From(queries, scope)
    source.read(node)
    windows = {window.name.lower(): window for window in node.args.get("windows") or []}
    if len(windows) < len(node.args.get("windows") or []):
        raise InvalidInput("WINDOW defines a name more than once")
    expressions = Expressions(queries, scope, windows)
    where = node.args.get("where")
    condition = "" if where is None else _where(expressions, where.this)
    if where is not None:
        source.filter(where.this)
    projections = _projections(expressions, node, source)
    group = _group(expressions, node.args.get("group"), projections)
    if expressions.keys:
        # Wherever a key is written, it means what the rows were grouped by.
        if any(generator_of(item) is not None for item in node.expressions):
            refuse("a generator together with GROUP BY of a float")
        projections = _projections(expressions, node, source)
    having = node.args.get("having")
    kept = "" if having is None else f" HAVING {expressions.condition(having.this).sql}"
    outputs = queries.outputs([(name, value.type) for name, value in projections])
    only_once = _distinct(node)
    listed = ", ".join(
        f"{(distinct(value) if only_once else value).sql} AS {output.sql}"
        for (_, value), output in zip(projections, outputs, strict=True)
    )
    sql = f"SELECT {only_once}{listed}{source.sql}{condition}{group}{kept}"
    modifiers = Modifiers.of(node)
    if modifiers is None:
        return sql, outputs
    if only_once:
        return _order_distinct(queries, expressions, sql, projections, outputs, modifiers), outputs
    return sql + modifiers.sql(_named(expressions, projections), [value for _, value in projections]), outputs


def _where(expressions: Expressions, node: exp.Expr) -> str:
    condition = expressions.known_condition(node)
    if condition.aggregate:
        raise InvalidInput("WHERE cannot have an aggregate; use HAVING")
    return f" WHERE {condition.sql}"


def _distinct(node: exp.Select) -> str:
    mark = node.args.get("distinct")
    if mark is None:
        return ""
    if mark.args.get("on"):
        refuse("DISTINCT ON")
    return "DISTINCT "


def _projections(expressions: Expressions, node: exp.Select, source: From) -> list[Projection]:
    """The SELECT list, stars unfolded. An alias can be used by the expressions after it."""
    projections: list[Projection] = []
    scope = expressions.scope
    for item in node.expressions:
        generator = generator_of(item)
        if generator is not None:
            projections += source.generate(generator, expressions)
        elif isinstance(item, exp.Star):
            projections += _star(scope, None, item)
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            projections += _star(scope, [part.name for part in item.parts[:-1]], item.this)
        elif isinstance(item, exp.Alias):
            value = expressions(item.this)
            projections.append((item.alias, value))
            scope.aliases.setdefault(item.alias.lower(), value)
        elif isinstance(item, exp.Aliases):
            refuse(f"the expression {spark_text(item)[:80]}")
        else:
            name = column_name(item, lambda parts: any(scope.star(parts)))
            projections.append((name, expressions(item)))
    if not projections:
        raise InvalidInput("a SELECT needs at least one column")
    return projections


def _star(scope: Scope, qualifier: list[str] | None, star: exp.Star) -> list[Projection]:
    only(star, "except_")
    columns = list(scope.star(qualifier))
    if qualifier is not None and not columns:
        # Not a table: the fields of a struct.
        value = scope.resolve(qualifier)
        if not pa.types.is_struct(value.type):
            raise InvalidInput(f"unknown table or struct {'.'.join(qualifier)!r} in {'.'.join(qualifier)}.*")
        columns = [(child.name, follow(value, [child.name])) for child in value.type]
    without = {column.name.lower() for column in star.args.get("except_") or []}
    missing = without - {name.lower() for name, _ in columns}
    if missing:
        raise InvalidInput(f"unknown column in * EXCEPT: {', '.join(map(repr, sorted(missing)))}")
    return [(name, value) for name, value in columns if name.lower() not in without]


def _group(expressions: Expressions, node: exp.Group | None, projections: list[Projection]) -> str:
    if node is None:
        return ""
    only(node, "expressions", "all", "rollup", "cube", "grouping_sets")
    if node.args.get("all"):
        keys = [value for _, value in projections if not value.aggregate and not value.is_constant]
        return f" GROUP BY {', '.join(_grouped(expressions, key) for key in keys)}" if keys else ""
    parts, plain = [], []
    for item in node.expressions:
        if isinstance(item, exp.Rollup | exp.Cube | exp.GroupingSets):
            parts.append(_grouping(expressions, item, projections))
        else:
            plain.append(_key(expressions, item, projections))
    for item in (*(node.args.get("rollup") or []), *(node.args.get("cube") or [])):
        parts.append(_grouping(expressions, item, projections))
    sets = node.args.get("grouping_sets") or []
    if sets:
        # GROUP BY a, b GROUPING SETS (...): the list before only names the columns.
        plain = []
        parts += [_grouping(expressions, item, projections) for item in sets]
    return f" GROUP BY {', '.join(plain + parts)}"


def _grouping(expressions: Expressions, node: exp.Expr, projections: list[Projection]) -> str:
    word = _GROUPINGS[type(node)]
    if not node.expressions:
        refuse(f"WITH {word}")
    items = []
    for item in node.expressions:
        if isinstance(item, exp.Rollup | exp.Cube | exp.GroupingSets):
            items.append(_grouping(expressions, item, projections))
        else:
            columns = item.expressions if isinstance(item, exp.Tuple) else [item]
            items.append("(" + ", ".join(_key(expressions, column, projections) for column in columns) + ")")
    return f"{word} ({', '.join(items)})"


def _key(expressions: Expressions, node: exp.Expr, projections: list[Projection]) -> str:
    """A key of GROUP BY: a position, a column, an alias or an expression."""
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal():
        value = _position(int(node.name), [value for _, value in projections], "GROUP BY")
    else:
        value = expressions(node.this if isinstance(node, exp.Paren) else node)
    if value.aggregate:
        raise InvalidInput("GROUP BY cannot have an aggregate")
    # A bare number would be read as a position.
    return f"({value.sql} IS NULL)" if value.is_constant else _grouped(expressions, value)


def _grouped(expressions: Expressions, value: Typed) -> str:
    key = grouped(value)
    if key.sql != value.sql:
        expressions.keys[value.sql] = key
    return key.sql


def _position(number: int, values: list[Typed], clause: str) -> Typed:
    if not 1 <= number <= len(values):
        raise InvalidInput(f"{clause} {number} is out of range: the SELECT list has {len(values)} columns")
    return values[number - 1]


def _named(expressions: Expressions, projections: list[Projection]) -> Expressions:
    """ORDER BY sees the output columns first, then everything that the SELECT list sees."""
    names = [name.lower() for name, _ in projections]
    variables = {
        name: value for name, (_, value) in zip(names, projections, strict=True) if names.count(name) == 1
    }
    return expressions.inner(variables)


def _order_distinct(
    queries: "Queries",
    expressions: Expressions,
    sql: str,
    projections: list[Projection],
    outputs: list[Output],
    modifiers: "Modifiers",
) -> str:
    """ORDER BY after DISTINCT can only use what was selected: by name, position or the same expression."""
    alias = queries.fresh("s")
    columns = ", ".join(f"{alias}.{output.sql} AS {output.sql}" for output in outputs)
    selected = {
        value.sql: Typed(f"{alias}.{output.sql}", output.type)
        for (_, value), output in zip(projections, outputs, strict=True)
    }
    keys = []
    for key in modifiers.order:
        value = modifiers.key(_named(expressions, projections), key, [value for _, value in projections])
        if value.sql not in selected:
            raise InvalidInput(f"ORDER BY {spark_text(key)} is not in the list of SELECT DISTINCT")
        keys.append(ordered(selected[value.sql], key))
    order = f" ORDER BY {', '.join(keys)}" if keys else ""
    return f"SELECT {columns} FROM ({sql}) AS {alias}{order}{modifiers.bounds()}"


@dataclass(frozen=True)
class Modifiers:
    """ORDER BY, LIMIT and OFFSET of a query."""

    order: tuple[exp.Expr, ...]
    limit: int | None
    offset: int | None

    @staticmethod
    def of(node: exp.Expr) -> "Modifiers | None":
        order, limit, offset = (node.args.get(key) for key in ("order", "limit", "offset"))
        if order is None and limit is None and offset is None:
            return None
        keys = () if order is None else tuple(order.expressions)
        return Modifiers(keys, _rows(limit, "LIMIT"), _rows(offset, "OFFSET"))

    def sql(self, expressions: Expressions, values: list[Typed]) -> str:
        keys: list[str] = []
        for key in self.order:
            if isinstance(key.this, exp.Var) and key.this.name.upper() == "ALL":
                keys += [ordered(value, key) for value in values if not value.is_constant]
                continue
            value = self.key(expressions, key, values)
            if not value.is_constant:
                keys.append(ordered(value, key))
        return (f" ORDER BY {', '.join(keys)}" if keys else "") + self.bounds()

    def key(self, expressions: Expressions, key: exp.Expr, values: list[Typed]) -> Typed:
        node = key.this
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal():
            return _position(int(node.name), values, "ORDER BY")
        return expressions(node)

    def bounds(self) -> str:
        limit = "" if self.limit is None else f" LIMIT {self.limit}"
        return limit + ("" if self.offset is None else f" OFFSET {self.offset}")


def _rows(node: exp.Expr | None, word: str) -> int | None:
    if node is None:
        return None
    number = node.expression
    if isinstance(number, exp.Var) and number.name.upper() == "ALL":
        return None
    if not isinstance(number, exp.Literal) or number.is_string or not number.name.isdecimal():
        refuse(f"{word} of other than a literal number")
    return int(number.name)
