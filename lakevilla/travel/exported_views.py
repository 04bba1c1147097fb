"""Views of an instant for other engines: each as one query over the tables of the export.

A view is Spark SQL. Other engines give some of its functions and operators another meaning, so that only
Spark gets statements.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from lakevilla.errors import InvalidInput
from lakevilla.sql.dialect import spark_text
from lakevilla.sql.parser import parse
from lakevilla.sql.statements import Query, TableName
from lakevilla.sql.tables import read_table, table_nodes
from lakevilla.sql.views.expansion import Expansion, ViewQuery, shorten
from lakevilla.transaction.views.stored import view_query
from lakevilla.versions.views import View, Views, find_view


@dataclass(frozen=True, slots=True)
class ExportedView:
    """A view of the instant. `text` is its query in Spark SQL, `columns` are its columns with their types.
    `spark` is the query over the temporary views that an export makes of tables; where there is none,
    `obstacle` says why."""

    name: str
    text: str
    columns: tuple[tuple[str, str], ...]
    spark: str = ""
    obstacle: str = ""


def exported_views(views: Views, names: Mapping[str, str]) -> Iterator[ExportedView]:
    """The views of an instant, whose tables Spark knows under other `names`."""
    known = {name.casefold(): other for name, other in names.items()}
    for name in sorted(views):
        view = views[name]
        columns = tuple((column.name, column.type) for column in view.columns)
        try:
            yield ExportedView(view.name, view.text, columns, spark=_spark_query(view, views, known))
        except InvalidInput as error:
            yield ExportedView(view.name, view.text, columns, obstacle=error.message)


def _spark_query(view: View, views: Views, names: Mapping[str, str]) -> str:
    def find(table: TableName, _of_session: bool) -> ViewQuery | None:
        found = find_view(views, table.name)
        return None if found is None else view_query(found, _query(found))

    wanted = exp.Table(this=exp.to_identifier(view.name, quoted=True))
    tree = Expansion(find).query(exp.select("*").from_(wanted))
    for node in list(table_nodes(tree)):
        _rename(tree, node, names)
    return spark_text(tree)


def _query(view: View) -> exp.Query:
    statement = parse(view.text)
    assert isinstance(statement, Query), "the text of a view is a query"
    return statement.tree


def _rename(tree: exp.Query, node: exp.Table, names: Mapping[str, str]) -> None:
    table = read_table(node)
    if table.version is not None or table.timestamp_ms is not None:
        raise InvalidInput(f"it reads an earlier version of {table.name!r}")
    other = names.get(table.name.casefold())
    if other is None:
        raise InvalidInput(f"it reads {table.name!r}, which is not part of the export")
    if not node.args.get("alias"):
        node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name, quoted=True)))
    if node.args.get("db"):
        shorten(tree, f"{node.args['db'].name}.{node.name}")
        node.set("db", None)
    node.set("this", exp.to_identifier(other, quoted=True))
