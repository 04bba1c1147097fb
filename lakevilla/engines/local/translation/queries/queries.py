"""Queries: WITH, set operations, VALUES, and what a whole statement shares while it is translated.

The parts of a SELECT are translated in `selects`, its FROM clause in `relations`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from lakevilla.engines.local.translation.expressions import Expressions
from lakevilla.engines.local.translation.keys import distinct
from lakevilla.engines.local.translation.queries.scope import (
    Common,
    Output,
    Reference,
    Relation,
    Scope,
    placeholder,
    renamed,
)
from lakevilla.engines.local.translation.queries.selects import Modifiers, translate_select
from lakevilla.engines.local.translation.types.casts import cast
from lakevilla.engines.local.translation.types.coercion import common, common_type
from lakevilla.engines.local.translation.types.typed import Typed, only, refuse
from lakevilla.errors import InvalidInput
from lakevilla.files.row_checks import optional
from lakevilla.sql.dialect import spark_text

_SET_OPERATIONS: dict[type[exp.Expr], str] = {
    exp.Union: "UNION",
    exp.Except: "EXCEPT",
    exp.Intersect: "INTERSECT",
}


@dataclass(frozen=True)
class Translated:
    """A query in DuckDB's SQL and the columns that it gives."""

    sql: str
    outputs: list[Output]


@dataclass
class Queries:
    """Translates the queries of one statement. `schemas` are the tables that it may read, by key."""

    schemas: Mapping[str, pa.Schema]
    now_ms: int
    references: list[Reference] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """The user's names of columns by ours, for errors."""
    _count: int = 0

    def fresh(self, prefix: str) -> str:
        """A name that nothing else in the statement has."""
        self._count += 1
        return f"{prefix}{self._count}"

    def outputs(self, columns: list[tuple[str, pa.DataType]]) -> list[Output]:
        """Columns under fresh names of ours."""
        found = [Output(name, self.fresh("c"), optional(data_type)) for name, data_type in columns]
        self.names.update((output.sql, output.name) for output in found)
        return found

    def reference(self, key: str, names: tuple[tuple[str, ...], ...]) -> Relation:
        """A relation that reads a table."""
        schema = self.schemas.get(key)
        if schema is None:
            raise InvalidInput(f"unknown table {key!r}", table=key)
        outputs = self.outputs([(column.name, column.type) for column in schema])
        alias = self.fresh("t")
        columns = {output.name: output.sql for output in outputs}
        reference = Reference(key, alias, schema, columns)
        self.references.append(reference)
        return Relation(alias, names, outputs, reference)

    def finished(self, sql: str) -> str:
        """The text with every table in its place; to be asked when all is translated."""
        for reference in self.references:
            sql = sql.replace(placeholder(reference.sql), reference.source_sql)
        return sql

    def translate(self, node: exp.Expr, outer: Scope | None = None) -> Translated:
        """A query in its surroundings: `outer` holds what a subquery can see of them."""
        common_tables = dict(outer.common) if outer is not None else {}
        definitions = self._with(node.args.get("with_"), common_tables, outer)
        scope = Scope(common=common_tables, outer=outer)
        translated = self._body(node, scope)
        return replace(translated, sql=definitions + translated.sql)

    def _body(self, node: exp.Expr, scope: Scope) -> Translated:
        match node:
            case exp.Select():
                sql, outputs = translate_select(self, node, scope)
                return Translated(sql, outputs)
            case exp.SetOperation():
                only(node, "this", "expression", "distinct", "with_", "order", "limit", "offset")
                return self._modified(self._set_operation(node, scope), node, scope)
            case exp.Subquery() if isinstance(node.this, exp.Query):
                only(node, "this", "alias", "with_", "order", "limit", "offset")
                return self._modified(self.translate(node.this, scope), node, scope)
            case exp.Values():
                return self.values(node)
        return refuse(f"the query {spark_text(node)[:80]}")

    def values(self, node: exp.Values) -> Translated:
        """VALUES: columns col1, col2, ... in the common types of their rows."""
        expressions = Expressions(self, Scope())
        rows = []
        for row in node.expressions:
            items = row.expressions if isinstance(row, exp.Tuple) else [row]
            rows.append([expressions(item) for item in items])
        if len({len(row) for row in rows}) != 1:
            raise InvalidInput("the rows of VALUES have different lengths")
        types = [common_type(value.type for value in column) for column in zip(*rows, strict=True)]
        outputs = self.outputs([(f"col{i}", data_type) for i, data_type in enumerate(types, 1)])
        texts = [
            "(" + ", ".join(cast(value, to).sql for value, to in zip(row, types, strict=True)) + ")"
            for row in rows
        ]
        alias, names = self.fresh("v"), ", ".join(output.sql for output in outputs)
        return Translated(f"SELECT {names} FROM (VALUES {', '.join(texts)}) AS {alias}({names})", outputs)

    def _with(self, node: exp.With | None, known: dict[str, Common], outer: Scope | None) -> str:
        if node is None:
            return ""
        if node.args.get("recursive"):
            refuse("WITH RECURSIVE")
        definitions = []
        names = [definition.alias.lower() for definition in node.expressions]
        if len(set(names)) != len(names):
            raise InvalidInput("WITH uses a name more than once")
        for definition in node.expressions:
            query = self.translate(definition.this, Scope(common=known, outer=outer))
            alias = self.fresh("w")
            outputs = renamed(query.outputs, definition.args.get("alias"))
            known[definition.alias.lower()] = Common(alias, outputs)
            definitions.append(f"{alias} AS ({query.sql})")
        return f"WITH {', '.join(definitions)} "

    def _set_operation(self, node: exp.SetOperation, scope: Scope) -> Translated:
        # Sides are queries of their own: what stands before this node in WITH they see through `common`.
        around = Scope(common=scope.common, outer=scope.outer)
        left, right = self.translate(node.this, around), self.translate(node.expression, around)
        if len(left.outputs) != len(right.outputs):
            raise InvalidInput(
                f"the sides of a set operation have {len(left.outputs)} and {len(right.outputs)} columns"
            )
        pairs = zip(left.outputs, right.outputs, strict=True)
        outputs = self.outputs([(a.name, common(a.type, b.type)) for a, b in pairs])
        word = _SET_OPERATIONS[type(node)] + ("" if node.args.get("distinct") else " ALL")
        together = isinstance(node, exp.Union) and not node.args.get("distinct")
        sides = [self._side(side, outputs, together) for side in (left, right)]
        return Translated(f"({sides[0]}) {word} ({sides[1]})", outputs)

    def _side(self, side: Translated, outputs: list[Output], together: bool) -> str:
        """One side in the common types; `together` keeps all rows, otherwise they are compared."""
        alias, columns = self.fresh("s"), []
        for old, new in zip(side.outputs, outputs, strict=True):
            value = cast(Typed(f"{alias}.{old.sql}", old.type), new.type)
            columns.append(f"{(value if together else distinct(value)).sql} AS {new.sql}")
        return f"SELECT {', '.join(columns)} FROM ({side.sql}) AS {alias}"

    def _modified(self, query: Translated, node: exp.Expr, scope: Scope) -> Translated:
        """ORDER BY and LIMIT of a whole query, which see its output columns alone."""
        modifiers = Modifiers.of(node)
        if modifiers is None:
            return query
        alias = self.fresh("s")
        inner = Scope([Relation(alias, (), query.outputs)], common=scope.common, outer=scope.outer)
        columns = ", ".join(f"{alias}.{output.sql} AS {output.sql}" for output in query.outputs)
        values = [Typed(f"{alias}.{output.sql}", output.type) for output in query.outputs]
        tail = modifiers.sql(Expressions(self, inner), values)
        return Translated(f"SELECT {columns} FROM ({query.sql}) AS {alias}{tail}", query.outputs)
