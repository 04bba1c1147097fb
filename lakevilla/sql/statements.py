"""What a SQL text asks for, as values. Trees inside are sqlglot's, in Spark's dialect, parameters bound."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa
from sqlglot import exp

from lakevilla.model import PartitionField

Star = Literal["*"]
"""UPDATE SET * and INSERT *: every column of the target, by name, from the source."""


@dataclass(frozen=True, slots=True)
class TableName:
    """A table that a statement reads, at a version or a time if it says so. `in_view` says that the text of a
    view of the lake names it: there it means a table of the lake, whatever else has its name."""

    name: str
    version: int | None = None
    timestamp_ms: int | None = None
    in_view: bool = False

    @property
    def key(self) -> str:
        """The name under which engines look for the source: distinct for each version of a table."""
        name = f"{self.name} in a view" if self.in_view else self.name
        if self.version is not None:
            return f"{name}@v{self.version}"
        return name if self.timestamp_ms is None else f"{name}@{self.timestamp_ms}"


@dataclass(frozen=True, slots=True)
class MatchedClause:
    """WHEN MATCHED [AND condition] THEN UPDATE SET ... | DELETE. `set` None means DELETE.

    Also used for WHEN NOT MATCHED BY SOURCE, whose expressions see the target alone.
    """

    condition: exp.Expr | None
    set: Mapping[str, exp.Expr] | Star | None


@dataclass(frozen=True, slots=True)
class NotMatchedClause:
    """WHEN NOT MATCHED [AND condition] THEN INSERT; columns left out become NULL."""

    condition: exp.Expr | None
    values: Mapping[str, exp.Expr] | Star


@dataclass(frozen=True, slots=True)
class MergeClauses:
    """A MERGE, bound: expressions qualify columns with `target_alias` and `source_alias`."""

    target_alias: str
    source_alias: str
    on: exp.Expr
    matched: tuple[MatchedClause, ...] = ()
    not_matched: tuple[NotMatchedClause, ...] = ()
    not_matched_by_source: tuple[MatchedClause, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT, VALUES or a set operation."""

    tree: exp.Query
    tables: tuple[TableName, ...]


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT INTO | OVERWRITE. `where` is the condition of INSERT INTO ... REPLACE WHERE."""

    table: str
    columns: tuple[str, ...]
    query: exp.Query
    tables: tuple[TableName, ...]
    overwrite: bool = False
    by_name: bool = False
    where: exp.Expr | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """`tables` are those of subqueries, not the target."""

    table: str
    alias: str
    set: Mapping[str, exp.Expr]
    where: exp.Expr | None
    tables: tuple[TableName, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE FROM, and TRUNCATE TABLE as a DELETE without a condition."""

    table: str
    alias: str
    where: exp.Expr | None
    tables: tuple[TableName, ...] = ()


@dataclass(frozen=True, slots=True)
class Merge:
    """MERGE INTO; a source table reads as `SELECT * FROM table`."""

    table: str
    using: exp.Query
    clauses: MergeClauses
    tables: tuple[TableName, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE [OR REPLACE] TABLE. `columns` is empty when they come from `as_query`; `checks` are Spark SQL
    texts."""

    name: str
    columns: pa.Schema
    partitioned_by: tuple[PartitionField, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    format: str | None = None
    location: str | None = None
    if_not_exists: bool = False
    checks: Mapping[str, str] = field(default_factory=dict)
    as_query: exp.Query | None = None
    tables: tuple[TableName, ...] = ()
    replace: bool = False


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE [OR REPLACE] [TEMPORARY] VIEW. `columns` are names and comments, empty where they are those of
    the query; `text` is the query as the user wrote it, its parameters bound."""

    name: str
    text: str
    query: exp.Query
    tables: tuple[TableName, ...]
    columns: tuple[tuple[str, str], ...] = ()
    comment: str = ""
    replace: bool = False
    if_not_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class DropView:
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropTable:
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddColumns:
    columns: tuple[pa.Field, ...]


@dataclass(frozen=True, slots=True)
class RenameColumn:
    column: str
    to: str


@dataclass(frozen=True, slots=True)
class DropColumns:
    columns: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetProperties:
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UnsetProperties:
    keys: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """`check` is Spark SQL text, as the table's log keeps it."""

    name: str
    check: str


@dataclass(frozen=True, slots=True)
class DropConstraint:
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameTable:
    to: str


Action = (
    AddColumns
    | RenameColumn
    | DropColumns
    | SetProperties
    | UnsetProperties
    | AddConstraint
    | DropConstraint
    | RenameTable
)


@dataclass(frozen=True, slots=True)
class AlterTable:
    name: str
    action: Action


@dataclass(frozen=True, slots=True)
class ShowTables:
    """SHOW TABLES; `pattern` is that of LIKE, with * for any text and | between alternatives."""

    schema: str | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowViews:
    """SHOW VIEWS, as `ShowTables`."""

    schema: str | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowColumns:
    table: str


@dataclass(frozen=True, slots=True)
class ShowCreateTable:
    table: str


@dataclass(frozen=True, slots=True)
class ShowProperties:
    """SHOW TBLPROPERTIES, of one key or of all."""

    table: str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Describe:
    table: str
    extended: bool = False


@dataclass(frozen=True, slots=True)
class DescribeDetail:
    table: str


@dataclass(frozen=True, slots=True)
class DescribeHistory:
    table: str
    limit: int | None = None


Statement = (
    Query
    | Insert
    | Update
    | Delete
    | Merge
    | CreateTable
    | CreateView
    | DropTable
    | DropView
    | AlterTable
    | ShowTables
    | ShowViews
    | ShowColumns
    | ShowCreateTable
    | ShowProperties
    | Describe
    | DescribeDetail
    | DescribeHistory
)
