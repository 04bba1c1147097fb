"""From a parsed statement to the code that runs it."""

from dataclasses import replace

from lakevilla.errors import InvalidInput
from lakevilla.formats.properties import CONSTRAINT
from lakevilla.sql import statements as sql
from lakevilla.sql.views.expansion import expanded
from lakevilla.transaction.statements import ddl, descriptions, dml, queries
from lakevilla.transaction.statements.definition import Definition
from lakevilla.transaction.statements.effect import Effect
from lakevilla.transaction.statements.replacement import create_or_replace
from lakevilla.transaction.statements.statement import Defines
from lakevilla.transaction.views.definitions import create_view, drop_view
from lakevilla.transaction.views.information_schema import is_own_schema
from lakevilla.transaction.workspace import Workspace


def run_statement(workspace: Workspace, statement: sql.Statement) -> Effect:
    """Run one statement of Spark SQL."""
    read = expanded(statement, workspace.stored_views.query)
    if read is not statement:
        statement = read
        workspace.pin_all(getattr(read, "tables", ()))
    match statement:
        case sql.Query():
            return queries.query(workspace, statement)
        case sql.Insert():
            return dml.insert(workspace, statement)
        case sql.Update(table=table, alias=alias, set=assigned, where=where):
            return dml.update(workspace, table, assigned, where, alias)
        case sql.Delete(table=table, alias=alias, where=where):
            return dml.delete(workspace, table, where, alias)
        case sql.Merge(table=table, using=using, clauses=clauses, tables=tables):
            return dml.merge(workspace, table, using, clauses, tables)
        case sql.CreateTable():
            return _create(workspace, statement)
        case sql.CreateView():
            return create_view(workspace, statement)
        case sql.DropView():
            return drop_view(workspace, statement)
        case sql.DropTable(name=name, if_exists=if_exists):
            return ddl.drop(workspace, name, if_exists)
        case sql.AlterTable(name=name, action=action):
            return ddl.alter(workspace, name, action)
        case sql.ShowTables() | sql.ShowViews():
            return Effect(workspace.engine.result(queries.show_names(workspace, statement)))
        case _:
            return Effect(workspace.engine.result(descriptions.described(workspace, statement)))


def defined_by(statement: sql.Statement) -> Defines:
    """What the statement changes of the lake's registry."""
    match statement:
        case sql.CreateTable() | sql.DropTable() | sql.CreateView() | sql.DropView():
            return Defines.TABLES
        case sql.AlterTable(action=sql.RenameTable()):
            return Defines.NAMES
    return Defines.NOTHING


def named_by(statement: sql.Statement) -> tuple[str, ...]:
    """The tables that the statement names and that have to be readable: DROP works without that."""
    read = tuple(t.name for t in getattr(statement, "tables", ()) if not is_own_schema(t.name))
    match statement:
        case sql.Insert() | sql.Update() | sql.Delete() | sql.Merge():
            return (statement.table, *read)
        case (
            sql.Describe()
            | sql.DescribeDetail()
            | sql.DescribeHistory()
            | sql.ShowColumns()
            | sql.ShowCreateTable()
            | sql.ShowProperties()
        ):
            return (statement.table,)
        case sql.AlterTable(name=name, action=action) if not isinstance(action, sql.RenameTable):
            return (name,)
    return read


def orders_rows(statement: sql.Statement) -> bool:
    """Whether the rows that the statement gives come in an order that it asks for."""
    if not isinstance(statement, sql.Query):
        return False
    outermost = statement.tree.unnest()
    return any(outermost.args.get(clause) is not None for clause in ("order", "sort"))


def _create(workspace: Workspace, statement: sql.CreateTable) -> Effect:
    if statement.if_not_exists and workspace.find(statement.name) is not None:
        return Effect(None)
    schema, data = statement.columns, None
    if statement.as_query is not None:
        sources = workspace.sources(statement.tables)
        data = workspace.engine.query(statement.as_query, sources, workspace.now_ms)
        schema = workspace.engine.schema_of(data)
    elif not len(schema):
        raise InvalidInput(f"CREATE TABLE {statement.name!r} names no columns")
    checks = {f"{CONSTRAINT}{name}": text for name, text in statement.checks.items()}
    definition = Definition(
        statement.name,
        schema,
        format=statement.format,
        partition_by=statement.partitioned_by,
        location=statement.location,
        properties={**statement.properties, **checks},
        comment=statement.comment,
    )
    create = create_or_replace if statement.replace else ddl.create
    done = create(workspace, definition, data)
    return done if data is not None else replace(done, result=None)
