"""The FROM clause: tables, subqueries, joins, LATERAL VIEW and generators; and what it lets us skip.

While a FROM clause is read, each table in it learns which conditions its rows must meet to matter: WHERE
and the ON of inner joins for tables that no outer join pads with NULLs, the ON of an outer join for the
padded side alone.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from lakevilla.engines.local.translation.expressions import Expressions
from lakevilla.engines.local.translation.operators import comparison
from lakevilla.engines.local.translation.queries.scope import Output, Relation, Scope, placeholder, renamed
from lakevilla.engines.local.translation.types.typed import Typed, is_list, mismatch, only, refuse
from lakevilla.errors import InvalidInput
from lakevilla.predicates import ANYTHING
from lakevilla.sql.dialect import spark_text
from lakevilla.sql.expressions.predicate_extraction import Found, find_column, predicate_of
from lakevilla.sql.tables import is_common, read_table

if TYPE_CHECKING:
    from lakevilla.engines.local.translation.queries.queries import Queries, Translated

_SIDES = {
    "": ("", "INNER", "CROSS", "SEMI", "ANTI"),
    "LEFT": ("", "OUTER", "SEMI", "ANTI"),
    "RIGHT": ("", "OUTER"),
    "FULL": ("", "OUTER"),
}
"""The kinds of joins that Spark SQL has, by their side."""

_GENERATORS = ("explode", "explode_outer", "posexplode", "posexplode_outer")


@dataclass(frozen=True)
class Generator:
    """explode and its kin: the call, and the names that the statement gives to its columns."""

    call: exp.Anonymous
    names: tuple[str, ...]


def generator_of(item: exp.Expr) -> Generator | None:
    """The generator that an item of a SELECT list is, if it is one."""
    call: exp.Expr = item
    names: tuple[str, ...] = ()
    if isinstance(item, exp.Alias):
        call, names = item.this, (item.alias,)
    elif isinstance(item, exp.Aliases):
        call, names = item.this, tuple(name.name for name in item.args["expressions"])
    if isinstance(call, exp.Anonymous) and str(call.this).lower() in _GENERATORS:
        return Generator(call, names)
    return None


@dataclass
class From:
    """Reads one FROM clause into a scope. `padded` are relations that an outer join fills with NULLs."""

    queries: "Queries"
    scope: Scope
    sql: str = ""
    padded: set[str] = field(default_factory=set)
    _bodies: dict[str, str] = field(default_factory=dict)

    def read(self, node: exp.Expr) -> None:
        source = node.args.get("from_")
        if source is None:
            return
        self.sql = f" FROM {self._relation(source.this)}"
        self._joins(source.this.args.get("joins") or [])
        self._joins(node.args.get("joins") or [])
        for lateral in node.args.get("laterals") or []:
            self._lateral_view(lateral)

    def filter(self, condition: exp.Expr) -> None:
        """Pass each table what WHERE demands of its rows."""
        for relation in self.scope.relations:
            if relation.sql not in self.padded:
                self._demand(relation, condition)

    def generate(self, generator: Generator, expressions: Expressions) -> list[tuple[str, Typed]]:
        """A generator in the SELECT list reads as a LATERAL VIEW behind the FROM clause."""
        name = str(generator.call.this).lower()
        relation = self._generated(generator.call, expressions, generator.names, ())
        self.sql = (
            f"{self.sql or ' FROM (SELECT 1) AS one'}{self._attached(relation, name.endswith('_outer'))}"
        )
        return [(output.name, relation.column(output)) for output in relation.outputs]

    def _demand(self, relation: Relation, condition: exp.Expr) -> None:
        reference = relation.reference
        if reference is None:
            return

        def resolve(expression: exp.Expr) -> Found | None:
            if not isinstance(expression, exp.Column) or isinstance(expression.this, exp.Star):
                return None
            located = self.scope.locate([part.name for part in expression.parts])
            if located is None or located[0] is not relation:
                return None
            return find_column(reference.schema, [located[1].name, *located[2]])

        # Names of an alias `AS t(a, b)` are not the table's.
        if [output.name for output in relation.outputs] == reference.schema.names:
            predicate = predicate_of(condition, resolve)
            if predicate != ANYTHING:
                reference.predicates.append(predicate)

    def _relation(self, node: exp.Expr, lateral: bool = False) -> str:
        """The text of one relation; it becomes visible in the scope."""
        only(node, "this", "db", "catalog", "alias", "version", "joins", "expressions")
        match node:
            case exp.Table() if isinstance(node.this, exp.Identifier):
                return self._table(node)
            case exp.Table() if isinstance(node.this, exp.Anonymous):
                return self._function(node)
            case exp.Subquery() if isinstance(node.this, exp.Table):
                return self._parenthesized(node)
            case exp.Subquery():
                outer = self.scope if lateral else Scope(common=self.scope.common, outer=self.scope.outer)
                return self._derived(self.queries.translate(node.this, outer), node)
            case exp.Values():
                return self._derived(self.queries.values(node), node)
            case exp.Lateral() if not node.args.get("view"):
                self._joins_inside(node.this)
                return "LATERAL " + self._relation(_with_alias(node), lateral=True)
        return refuse(f"{spark_text(node)[:80]} in FROM")

    def _table(self, node: exp.Table) -> str:
        alias = node.args.get("alias")
        names = ((alias.name,),) if alias is not None and alias.name else (tuple(p.name for p in node.parts),)
        if is_common(node, frozenset(self.scope.common)):
            definition = self.scope.common[node.name.lower()]
            relation = Relation(self.queries.fresh("t"), names, renamed(definition.outputs, alias))
            self.scope.relations.append(relation)
            return f"{definition.sql} AS {relation.sql}"
        relation = self.queries.reference(read_table(node).key, names)
        relation.outputs = renamed(relation.outputs, alias)
        self.scope.relations.append(relation)
        return placeholder(relation.sql)

    def _function(self, node: exp.Table) -> str:
        if str(node.this.this).lower() != "range":
            refuse(f"the table function {node.this.this}()")
        expressions = Expressions(self.queries, Scope())
        bounds = [expressions(argument).constant for argument in node.this.expressions]
        if not 1 <= len(bounds) <= 3 or not all(isinstance(bound, int) for bound in bounds):
            refuse("range() of other than one to three literal numbers")
        outputs = self.queries.outputs([("id", pa.int64())])
        alias = node.args.get("alias")
        relation = Relation(
            self.queries.fresh("t"), ((alias.name if alias else "range",),), renamed(outputs, alias)
        )
        self.scope.relations.append(relation)
        listed = ", ".join(str(bound) for bound in bounds)
        return f"range({listed}) AS {relation.sql}({outputs[0].sql})"

    def _parenthesized(self, node: exp.Subquery) -> str:
        """`(a JOIN b ON ...)`: the tables inside stay visible."""
        if node.args.get("alias"):
            refuse("an alias for a join in parentheses")
        inner = From(self.queries, self.scope)
        inner.sql = inner._relation(node.this)
        inner._joins(node.this.args.get("joins") or [])
        self.padded |= inner.padded
        return f"({inner.sql})"

    def _derived(self, query: "Translated", node: exp.Expr) -> str:
        alias = node.args.get("alias")
        names = ((alias.name,),) if alias is not None and alias.name else ()
        relation = Relation(self.queries.fresh("t"), names, renamed(query.outputs, alias))
        self.scope.relations.append(relation)
        return f"({query.sql}) AS {relation.sql}"

    def _joins(self, joins: list[exp.Join]) -> None:
        for join in joins:
            self._join(join)

    def _join(self, join: exp.Join) -> None:
        side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
        method = str(join.args.get("method") or "").upper()
        if method not in ("", "NATURAL") or kind not in _SIDES.get(side, ()):
            refuse(f"the join {spark_text(join)[:80]}")
        if method and (kind in ("CROSS", "SEMI", "ANTI") or join.args.get("on") or join.args.get("using")):
            raise InvalidInput("a NATURAL JOIN takes no ON and no USING, and is not CROSS, SEMI or ANTI")
        only(join, "this", "side", "kind", "method", "on", "using")
        before = len(self.scope.relations)
        text = self._relation(join.this)
        self._joins_inside(join.this)
        right = self.scope.relations[before:]
        left = self.scope.relations[:before]
        word = kind if kind in ("SEMI", "ANTI") else side or "INNER"
        names = [column.name for column in join.args.get("using") or []]
        if method == "NATURAL":
            names = self._shared(left, right)
        if names:
            condition: str | None = self._using(names, left, right, word)
        else:
            condition = self._on(join.args.get("on"), left, right, word)
        if condition is None and word == "INNER":
            self.sql += f" CROSS JOIN {text}"
        else:
            self.sql += f" {word} JOIN {text} ON {condition or 'TRUE'}"
        if word in ("SEMI", "ANTI"):
            del self.scope.relations[before:]
        if word in ("LEFT", "FULL"):
            self.padded |= {relation.sql for relation in right}
        if word in ("RIGHT", "FULL"):
            self.padded |= {relation.sql for relation in left}

    def _joins_inside(self, node: exp.Expr) -> None:
        if node.args.get("joins"):
            refuse("a join nested in a join without parentheses")

    def _on(
        self, node: exp.Expr | None, left: list[Relation], right: list[Relation], word: str
    ) -> str | None:
        if node is None:
            return None
        condition = Expressions(self.queries, self.scope).condition(node)
        demanded = {"INNER": left + right, "SEMI": left + right, "LEFT": right, "ANTI": right, "RIGHT": left}
        for relation in demanded.get(word, []):
            if relation.sql not in self.padded:
                self._demand(relation, node)
        return condition.sql

    def _shared(self, left: list[Relation], right: list[Relation]) -> list[str]:
        known = {output.name.lower() for relation in left for output in relation.outputs}
        return [o.name for relation in right for o in relation.outputs if o.name.lower() in known]

    def _using(self, names: list[str], left: list[Relation], right: list[Relation], word: str) -> str:
        """USING: each pair of columns is one column afterwards, found without a qualifier."""
        conditions, merged = [], []
        before = Scope(left, list(self.scope.merged))
        for name in names:
            one, other = before.resolve([name]), Scope(right).resolve([name])
            conditions.append(comparison("=", one, other).sql)
            merged.append((name, _merged(one, other, word)))
        hidden = {name.lower() for name in names}
        for relation in (*left, *right):
            relation.hidden = relation.hidden | hidden
        kept = [pair for pair in self.scope.merged if pair[0].lower() not in hidden]
        self.scope.merged[:] = merged + kept
        return " AND ".join(conditions)

    def _lateral_view(self, node: exp.Lateral) -> None:
        call = node.this
        if not isinstance(call, exp.Anonymous) or str(call.this).lower() not in _GENERATORS:
            refuse(f"LATERAL VIEW of {spark_text(call)[:80]}")
        alias = node.args.get("alias")
        names = tuple(column.name for column in (alias.args.get("columns") or [])) if alias else ()
        qualifier = ((alias.name,),) if alias is not None and alias.name else ()
        expressions = Expressions(self.queries, self.scope)
        relation = self._generated(call, expressions, names, qualifier)
        outer = bool(node.args.get("outer")) or str(call.this).lower().endswith("_outer")
        self.sql += self._attached(relation, outer)
        self.scope.relations.append(relation)

    def _generated(
        self,
        call: exp.Anonymous,
        expressions: Expressions,
        names: tuple[str, ...],
        qualifier: tuple[tuple[str, ...], ...],
    ) -> Relation:
        name = str(call.this).lower()
        if len(call.expressions) != 1:
            raise InvalidInput(f"{name} takes one argument")
        value = expressions(call.expressions[0])
        columns: list[tuple[str, pa.DataType, str]]
        if is_list(value.type):
            columns = [("col", value.type.value_type, "e.v")]
            rows = value.sql
        elif pa.types.is_map(value.type):
            columns = [
                ("key", value.type.key_type, "e.v['key']"),
                ("value", value.type.item_type, "e.v['value']"),
            ]
            rows = f"map_entries({value.sql})"
        else:
            mismatch(name, value)
        if name.startswith("pos"):
            columns.insert(0, ("pos", pa.int32(), "CAST(e.i - 1 AS INTEGER)"))
        if names and len(names) != len(columns):
            raise InvalidInput(f"{name} has {len(columns)} columns, but the alias names {len(names)}")
        outputs = [
            Output(names[i] if names else column[0], self.queries.fresh("c"), column[1])
            for i, column in enumerate(columns)
        ]
        listed = ", ".join(f"{c[2]} AS {o.sql}" for c, o in zip(columns, outputs, strict=True))
        inner = f"SELECT unnest({rows}) AS v, generate_subscripts({rows}, 1) AS i"
        relation = Relation(self.queries.fresh("t"), qualifier, outputs)
        self._bodies[relation.sql] = f"(SELECT {listed} FROM ({inner}) AS e)"
        return relation

    def _attached(self, relation: Relation, outer: bool) -> str:
        body = f"LATERAL {self._bodies[relation.sql]} AS {relation.sql}"
        return f" LEFT JOIN {body} ON TRUE" if outer else f" CROSS JOIN {body}"


def _merged(one: Typed, other: Typed, word: str) -> Typed:
    if word == "RIGHT":
        return other
    if word != "FULL":
        return one
    if one.type != other.type:
        refuse("FULL JOIN USING columns of different types")
    return Typed(f"coalesce({one.sql}, {other.sql})", one.type)


def _with_alias(node: exp.Lateral) -> exp.Expr:
    inner: exp.Expr = node.this.copy()
    if node.args.get("alias") is not None:
        inner.set("alias", node.args["alias"])
    return inner
