"""What users hand to the typed verbs, turned into what statements take."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from enum import Enum
from typing import Any

import pyarrow as pa
from sqlglot import exp

from lakevilla.engines.port import Engine
from lakevilla.engines.row_files import RowFile
from lakevilla.errors import InvalidInput
from lakevilla.model import PartitionField
from lakevilla.sql import statements as sql
from lakevilla.sql.ddl.partitioned import partition_field
from lakevilla.sql.dialect import spark_text
from lakevilla.sql.letters import refuse_surrogates_in
from lakevilla.sql.parameters import literal
from lakevilla.sql.parser import parse, parse_expression, select_from
from lakevilla.sql.statements import MatchedClause, MergeClauses, NotMatchedClause, TableName
from lakevilla.store.names import check_table_name

TARGET = "target"
SOURCE = "source"

_ACTIONS = (
    "a mapping of columns to expressions, 'update', 'insert' or 'delete', or a list of (condition, action)"
)


def condition(text: str | None) -> exp.Expr | None:
    """A WHERE condition given as text."""
    if text is not None and not isinstance(text, str):
        raise InvalidInput(f"where must be text, a condition in Spark SQL; found {text!r}")
    return None if text is None else parse_expression(text)


def assignments(columns: Mapping[str, Any]) -> dict[str, exp.Expr]:
    """Columns with what they are set to: text is an expression, any other value stands for itself."""
    if not isinstance(columns, Mapping):
        raise InvalidInput(f"set must be a mapping of columns to values; found {columns!r}")
    return {
        column: parse_expression(value) if _is_text(value) else literal(value)
        for column, value in columns.items()
    }


def _is_text(value: object) -> bool:
    """A member of an enumeration is a value, also where it is text as well."""
    return isinstance(value, str) and not isinstance(value, Enum)


def partition_fields(entries: Sequence[str], schema: pa.Schema) -> list[PartitionField]:
    """What a table is partitioned by: names of columns, or transforms as in PARTITIONED BY."""
    if isinstance(entries, str):
        raise InvalidInput(f"partition_by must be a list of columns; found {entries!r}")
    refuse_surrogates_in(entries, "partition_by")
    return [
        PartitionField(entry, (entry,)) if entry in schema.names else partition_field(parse_expression(entry))
        for entry in entries
    ]


def update_text(name: str, assigned: Mapping[str, exp.Expr], where: exp.Expr | None) -> str:
    """An update as Spark SQL."""
    columns = ", ".join(f"{_quoted(column)} = {spark_text(value)}" for column, value in assigned.items())
    return f"UPDATE {_quoted(name)} SET {columns}{_where(where)}"


def delete_text(name: str, where: exp.Expr | None) -> str:
    """A delete as Spark SQL."""
    return f"DELETE FROM {_quoted(name)}{_where(where)}"


def _where(where: exp.Expr | None) -> str:
    return "" if where is None else f" WHERE {spark_text(where)}"


def _quoted(name: str) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in name.split("."))


def frozen(data: object) -> object:
    """A copy of the rows, which does not change when the client changes its own: a statement may be redone
    later."""
    if isinstance(data, list):
        return [_copied(row) for row in data]
    return _own_copy(data) if _is_frame(data) else data


def _is_frame(data: object) -> bool:
    return type(data).__module__.partition(".")[0] in ("pandas", "polars")


def _own_copy(data: Any) -> object:
    return data.clone() if hasattr(data, "clone") else data.copy()


def _copied(row: object) -> object:
    """A row of its own; only where a value could be changed from inside it is copied in depth."""
    if not isinstance(row, dict):
        return deepcopy(row)
    nested = any(isinstance(value, dict | list | set | bytearray) for value in row.values())
    return deepcopy(row) if nested else dict(row)


def why_once(data: object) -> str:
    """Why a statement that was given this data cannot run again; empty if it can."""
    known = isinstance(data, list | pa.Table | pa.RecordBatch | str | RowFile) or hasattr(data, "toPandas")
    if data is None or known or _is_frame(data):
        return ""
    return "its rows came from a stream that can be read once"


def widens_by(schema: str | None) -> bool:
    """Whether a write may add columns to its table, by what the verb takes."""
    if schema == "replace":
        raise InvalidInput(
            "append cannot replace columns, because the rows before stay: call overwrite(..., "
            "schema='replace'), or append(..., schema='merge'), which adds the columns that only the data has"
        )
    if schema not in (None, "merge"):
        raise InvalidInput(f"schema={schema!r}: give schema='merge', or leave it out")
    return schema == "merge"


def refuse_where(where: object) -> None:
    """InvalidInput for a condition where all rows are replaced."""
    if where is not None:
        raise InvalidInput(
            "overwrite(..., schema='replace') replaces all rows, because those that stay would not fit the "
            "new columns: leave where out"
        )


def merge_condition(on: str | Sequence[str]) -> exp.Expr:
    """Which rows of the two sides match: a condition as text, or a list of columns that are equal."""
    if isinstance(on, str):
        return parse_expression(on)
    if not isinstance(on, Sequence) or not on or not all(isinstance(name, str) for name in on):
        raise InvalidInput(f"on is a condition as text, or a list of columns; found {on!r}")
    sides = ((_quoted_column(TARGET, name), _quoted_column(SOURCE, name)) for name in on)
    return parse_expression(" AND ".join(f"{target} = {source}" for target, source in sides))


def _quoted_column(side: str, name: str) -> str:
    return f"{side}.`{name.replace('`', '``')}`"


def merge_clauses(
    on: str | Sequence[str], matched: object, not_matched: object, not_matched_by_source: object
) -> MergeClauses:
    """The clauses of a merge from what the verb takes."""
    if matched is None and not_matched is None and not_matched_by_source is None:
        raise InvalidInput("merge has no action: give matched, not_matched or not_matched_by_source")
    return MergeClauses(
        TARGET,
        SOURCE,
        merge_condition(on),
        tuple(_matched(c, a, "matched") for c, a in _clauses(matched)),
        tuple(_not_matched(c, a) for c, a in _clauses(not_matched)),
        tuple(_matched(c, a, "not_matched_by_source") for c, a in _clauses(not_matched_by_source)),
    )


def merge_source(source: object) -> tuple[object, tuple[TableName, ...]]:
    """Data as it is; text as a query, a single name as a table."""
    if not isinstance(source, str):
        return source, ()
    words = source.split(maxsplit=1)
    is_query = len(words) > 1 and words[0].upper() in ("SELECT", "WITH", "VALUES", "FROM")
    statement = parse(source) if is_query else select_from(check_table_name(source))
    if not isinstance(statement, sql.Query):
        raise InvalidInput(
            f"the source of a merge must be data, the name of a table, or a query; found {source!r}"
        )
    return statement.tree, statement.tables


def table_schema(engine: Engine, given: object) -> tuple[pa.Schema, object]:
    """The schema of a new table, and its first rows if data was given."""
    if isinstance(given, pa.Schema):
        return given, None
    if isinstance(given, str):
        return _columns(given), None
    if engine.accepts(given):
        return engine.schema_of(given), given
    raise InvalidInput(
        "a new table needs an Arrow schema, columns as text ('id BIGINT, day DATE'), or data; "
        f"found {given!r}"
    )


def _columns(ddl: str) -> pa.Schema:
    statement = parse(f"CREATE TABLE t ({ddl})")
    assert isinstance(statement, sql.CreateTable)
    return statement.columns


def _clauses(given: object) -> Sequence[tuple[str | None, object]]:
    if given is None:
        return ()
    if isinstance(given, list | tuple):
        if not all(isinstance(clause, tuple) and len(clause) == 2 for clause in given):
            raise InvalidInput(
                f"a list of merge clauses must have (condition, action) pairs; found {given!r}"
            )
        return tuple(given)
    return ((None, given),)


def _matched(where: str | None, action: object, place: str) -> MatchedClause:
    if action == "delete":
        return MatchedClause(condition(where), None)
    if action == "update" and place == "matched":
        return MatchedClause(condition(where), "*")
    if isinstance(action, Mapping):
        return MatchedClause(condition(where), assignments(action))
    raise InvalidInput(f"{place}={action!r} is not a merge action: give {_ACTIONS}")


def _not_matched(where: str | None, action: object) -> NotMatchedClause:
    if action == "insert":
        return NotMatchedClause(condition(where), "*")
    if isinstance(action, Mapping):
        return NotMatchedClause(condition(where), assignments(action))
    raise InvalidInput(f"not_matched={action!r} is not a merge action: give {_ACTIONS}")
