"""Views: what a statement means whose tables may be views.

A view is a query under a name. In a statement that reads it, its query stands in its place as a subquery.
The names in it mean what they mean outside of the statement: neither common table expressions around it nor
temporary views hide a table of a view of the lake.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from lakevilla.errors import InvalidInput
from lakevilla.sql import statements as sql
from lakevilla.sql.statements import Statement, TableName
from lakevilla.sql.tables import IN_VIEW, read_table, table_nodes, tables_of

DEEPEST = 50
"""So many views may be in each other."""


@dataclass(frozen=True, slots=True)
class ViewQuery:
    """A view as a statement reads it: the columns of `tree` named `sources`, under the names `columns`."""

    name: str
    tree: exp.Query
    columns: tuple[str, ...]
    sources: tuple[str, ...]
    temporary: bool = False


_Within = tuple[tuple[str, bool], ...]
"""The views around a text: their names in lower case, and whether they are temporary."""

Find = Callable[[TableName, bool], ViewQuery | None]
"""The view of this name, or None if it is a table; whether temporary views count."""


def expanded(statement: Statement, find: Find) -> Statement:
    """The statement with the queries of views in the place of their names."""
    views = Expansion(find)
    match statement:
        case sql.Query(tree=tree):
            after = views.query(tree)
            return statement if after is tree else sql.Query(after, tables_of(after))
        case sql.Insert(query=query):
            after = views.query(query)
            return statement if after is query else replace(statement, query=after, tables=tables_of(after))
        case sql.Update(set=assigned, where=where):
            set_ = {name: views.expression(value) for name, value in assigned.items()}
            where = None if where is None else views.expression(where)
            return replace(statement, set=set_, where=where, tables=tables_of(*set_.values(), where))
        case sql.Delete(where=where) if where is not None:
            where = views.expression(where)
            return replace(statement, where=where, tables=tables_of(where))
        case sql.Merge(using=using):
            after = views.query(using)
            if after is using:
                return statement
            rest = [table for table in statement.tables if table not in tables_of(using)]
            return replace(statement, using=after, tables=tuple(dict.fromkeys([*tables_of(after), *rest])))
        case sql.CreateTable(as_query=query) if query is not None:
            after = views.query(query)
            return (
                statement if after is query else replace(statement, as_query=after, tables=tables_of(after))
            )
    return statement


class Expansion:
    """Puts queries in the place of views; `find` is asked once for each name."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._known: dict[tuple[str, bool], ViewQuery | None] = {}

    def query(self, tree: exp.Query) -> exp.Query:
        """The query with all views in it expanded; itself if there are none."""
        if not any(self._view(read_table(node), True) for node in table_nodes(tree)):
            return tree
        copy: exp.Query = tree.copy()
        self._expand(copy, True, ())
        return copy

    def expression(self, tree: exp.Expr) -> exp.Expr:
        """The same for an expression with subqueries."""
        if not any(self._view(read_table(node), True) for node in table_nodes(tree)):
            return tree
        # Below a node of our own, so that no node that is replaced is the root.
        holder = exp.Paren(this=tree.copy())
        self._expand(holder, True, ())
        after: exp.Expr = holder.this
        return after.pop()

    def _view(self, table: TableName, temporary: bool) -> ViewQuery | None:
        key = (table.name.casefold(), temporary)
        if key not in self._known:
            self._known[key] = self._find(table, temporary)
        found = self._known[key]
        if found is not None and (table.version is not None or table.timestamp_ms is not None):
            error = InvalidInput(
                f"{found.name!r} is a view, and has no earlier versions: query the lake at an instant, by "
                "AT (SEQ => ...) or lake.at(...)",
                table=found.name,
            )
            error.unknown = table.name
            raise error
        return found

    def _expand(self, tree: exp.Expr, temporary: bool, within: _Within) -> None:
        for node in list(table_nodes(tree)):
            table = read_table(node)
            found = self._view(table, temporary)
            if found is None:
                continue
            self._replace(tree, node, found, within)

    def _replace(self, tree: exp.Expr, node: exp.Table, view: ViewQuery, within: _Within) -> None:
        key = (view.name.casefold(), view.temporary)
        if key in within:
            path = " -> ".join([*(name for name, _ in within), view.name])
            raise InvalidInput(f"view {view.name!r} reads itself: {path}", table=view.name)
        if len(within) >= DEEPEST:
            raise InvalidInput(f"view {view.name!r} reads views that are too deep in each other")
        body = view.tree.copy()
        for inner in list(table_nodes(body)):
            inner.meta[IN_VIEW] = not view.temporary
        _forget_places(body)
        # A temporary view has the queries of those that it reads in itself: others do not hide its tables.
        self._expand(body, False, (*within, key))
        called = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(node.name, quoted=True))
        derived = exp.Subquery(this=_named(body, view), alias=called.copy())
        for part in ("joins", "sample", "pivots", "laterals"):
            if node.args.get(part):
                derived.set(part, node.args[part])
        if node.args.get("db"):
            shorten(tree, f"{node.args['db'].name}.{node.name}")
        node.replace(derived)


def plain_names(tree: exp.Query, columns: tuple[str, ...]) -> bool:
    """Whether the query is a SELECT that lists so many columns, each an expression of its own."""
    if not isinstance(tree, exp.Select) or len(tree.expressions) != len(columns):
        return False
    starred = any(item.is_star or isinstance(item, exp.Aliases) for item in tree.expressions)
    return not starred and not any(isinstance(item, exp.Anonymous) for item in tree.expressions)


def _named(body: exp.Query, view: ViewQuery) -> exp.Query:
    """The query with the view's names of its columns, and no columns that came later."""
    if view.columns == view.sources and plain_names(body, view.columns):
        items = [
            item if isinstance(item, exp.Alias) else exp.alias_(item.copy(), name, quoted=True)
            for item, name in zip(body.expressions, view.columns, strict=True)
        ]
        body.set("expressions", items)
        return body
    alias = exp.to_identifier(view.name.rpartition(".")[2], quoted=True)
    chosen = [
        exp.alias_(exp.column(exp.to_identifier(source, True), table=alias.copy()), name, quoted=True)
        for source, name in zip(view.sources, view.columns, strict=True)
    ]
    return exp.select(*chosen).from_(exp.Subquery(this=body, alias=exp.TableAlias(this=alias)))


def _forget_places(body: exp.Expr) -> None:
    """Nodes of a view's text stand nowhere in the user's text."""
    for node in body.walk():
        for part in ("start", "end", "line", "col"):
            node.meta.pop(part, None)


def shorten(tree: exp.Expr, name: str) -> None:
    """`schema.view.column` as `view.column`: a subquery has a name of one part."""
    for column in tree.find_all(exp.Column):
        if column.args.get("db") and f"{column.args['db'].name}.{column.table}".casefold() == name.casefold():
            column.set("db", None)
