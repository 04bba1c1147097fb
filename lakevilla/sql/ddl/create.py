"""CREATE TABLE, from sqlglot's tree to a value."""

from typing import Any

import pyarrow as pa
from sqlglot import exp

from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.model import PartitionField
from lakevilla.sql.ddl.partitioned import partition_field
from lakevilla.sql.dialect import spark_text
from lakevilla.sql.statements import CreateTable
from lakevilla.sql.tables import table_name, tables_of
from lakevilla.sql.types import field_of


def create_table(tree: exp.Create) -> CreateTable:
    """The table to create. DEFAULT and generated columns are refused."""
    if tree.args.get("kind") != "TABLE":
        raise Unsupported(
            f"CREATE {tree.args.get('kind')} is not supported: there are CREATE [OR REPLACE] TABLE and "
            "CREATE [OR REPLACE] [TEMPORARY] VIEW"
        )
    replace, if_not_exists = bool(tree.args.get("replace")), bool(tree.args.get("exists"))
    if replace and if_not_exists:
        raise InvalidInput("CREATE OR REPLACE TABLE takes no IF NOT EXISTS: leave out one of them")
    target, fields, checks = tree.this, [], {}
    if isinstance(target, exp.Schema):
        for definition in target.expressions:
            if isinstance(definition, exp.Constraint):
                name, check = constraint_of(definition)
                checks[name] = check
            else:
                fields.append(field_of(definition))
        target = target.this
    clauses = _clauses(tree.args.get("properties"))
    query = tree.args.get("expression")
    if query is not None and not isinstance(query, exp.Query):
        raise InvalidInput(f"CREATE TABLE ... AS needs a query; found {spark_text(query)}")
    if query is None and not fields:
        named, place = table_name(target), clauses.get("location")
        hint = f"; a table that is there gets a name by lake.register({named!r}, {place!r})" if place else ""
        raise InvalidInput(f"CREATE TABLE needs columns or AS SELECT{hint}")
    if query is not None and fields:
        raise InvalidInput(
            "CREATE TABLE ... AS SELECT takes its columns from the query: leave the columns out"
        )
    columns, partitioned_by = _partitioned(fields, clauses.pop("partitioned_by", []))
    return CreateTable(
        table_name(target),
        columns,
        partitioned_by,
        if_not_exists=if_not_exists,
        checks=checks,
        as_query=query,
        tables=tables_of(query),
        replace=replace,
        **clauses,
    )


def constraint_of(constraint: exp.Constraint) -> tuple[str, str]:
    """The name and the text of a CHECK constraint."""
    kinds = constraint.expressions
    if len(kinds) != 1 or not isinstance(kinds[0], exp.CheckColumnConstraint):
        raise Unsupported(f"only CHECK constraints are supported, found {spark_text(constraint)}")
    if kinds[0].find(exp.Query):
        raise InvalidInput(
            f"a CHECK constraint can use columns of its row only, not a subquery: {spark_text(constraint)}"
        )
    return constraint.name, spark_text(kinds[0].this)


def property_pairs(expressions: list[exp.Expr]) -> dict[str, str]:
    """TBLPROPERTIES as texts."""
    pairs = {}
    for entry in expressions:
        if not isinstance(entry, exp.Property) or entry.args.get("value") is None:
            raise InvalidInput(f"a property must be 'key' = 'value'; found {spark_text(entry)}")
        key = entry.this
        name = key.sql() if isinstance(key, exp.Dot) else key.name
        value = entry.args["value"]
        pairs[name] = value.sql().lower() if isinstance(value, exp.Boolean) else value.name
    return pairs


def _clauses(properties: exp.Properties | None) -> dict[str, Any]:
    clauses: dict[str, Any] = {}
    pairs: list[exp.Expr] = []
    for entry in properties.expressions if properties else []:
        match entry:
            case exp.FileFormatProperty():
                clauses["format"] = entry.this.name.lower()
            case exp.PartitionedByProperty():
                clauses["partitioned_by"] = entry.this.expressions
            case exp.LocationProperty():
                clauses["location"] = entry.this.name
            case exp.SchemaCommentProperty():
                if not isinstance(entry.this, exp.Literal):
                    raise InvalidInput(
                        f"COMMENT wants one string, found {spark_text(entry.this)}; write \\' for a quote"
                    )
                clauses["comment"] = entry.this.name
            case exp.ExternalProperty():
                raise Unsupported(
                    "CREATE EXTERNAL TABLE is not supported: leave EXTERNAL out to create a table at a "
                    "LOCATION; a table that is there gets a name by lake.register(name, location)"
                )
            case exp.Property() if type(entry) is exp.Property:
                pairs.append(entry)
            case _:
                raise Unsupported(f"CREATE TABLE: {spark_text(entry)} is not supported")
    if pairs:
        clauses["properties"] = property_pairs(pairs)
    return clauses


def _partitioned(fields: list[pa.Field], by: list[exp.Expr]) -> tuple[pa.Schema, tuple[PartitionField, ...]]:
    """Partition columns are named, or defined right there, and then come last as in Spark."""
    defined = [field_of(entry) for entry in by if isinstance(entry, exp.ColumnDef)]
    found = [partition_field(entry.this if isinstance(entry, exp.ColumnDef) else entry) for entry in by]
    return pa.schema([*fields, *defined]), tuple(found)
