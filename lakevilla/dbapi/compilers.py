"""How SQLAlchemy's statements and definitions are written in Spark's dialect.

What a lake does not have and what changes no result is left out: keys and indexes. What would change a result
is refused: values that the database makes, and locks of rows.
"""

# The signatures of many methods here are SQLAlchemy's.
# ruff: noqa: ARG002

from typing import Any

from sqlalchemy import exc, types
from sqlalchemy.sql import compiler

NOTHING = "/* a lake has no indexes */ SELECT 1"
"""What is run where an index would be made or dropped: pandas asks for one on each table with an index."""


class Preparer(compiler.IdentifierPreparer):
    """Names in back quotes."""

    def __init__(self, dialect: Any, **settings: Any) -> None:
        super().__init__(dialect, initial_quote="`", final_quote="`", escape_quote="`", **settings)


class SQLCompiler(compiler.SQLCompiler):
    """Statements in Spark's dialect."""

    def visit_empty_set_expr(self, element_types: Any, **_: Any) -> str:
        return f"SELECT {', '.join('1' for _ in element_types or [None])} WHERE 1 <> 1"

    def limit_clause(self, select: Any, **settings: Any) -> str:
        return self._rows(select._limit_clause, select, settings)

    def fetch_clause(
        self,
        select: Any,
        fetch_clause: Any = None,
        require_offset: bool = False,
        use_literal_execute_for_simple_int: bool = False,
        **settings: Any,
    ) -> str:
        options = select._fetch_clause_options or {}
        if options.get("percent") or options.get("with_ties"):
            raise exc.CompileError("FETCH has no PERCENT and no WITH TIES here: use limit()")
        wanted = select._fetch_clause if fetch_clause is None else fetch_clause
        return self._rows(wanted, select, settings)

    def _rows(self, limit: Any, select: Any, settings: dict[str, Any]) -> str:
        """LIMIT and OFFSET, of which Spark takes each without the other."""
        text = "" if limit is None else f"\n LIMIT {self.process(limit, **settings)}"
        if select._offset_clause is not None:
            text += f"\n OFFSET {self.process(select._offset_clause, **settings)}"
        return text

    def returning_clause(self, *_: Any, **__: Any) -> str:
        raise exc.CompileError("a lake has no RETURNING: read the rows by a query in the same transaction")

    def for_update_clause(self, select: Any, **_: Any) -> str:
        raise exc.CompileError(
            "a lake has no locks of rows: leave out with_for_update(). With the isolation SERIALIZABLE a "
            "commit fails if another one changed what was read"
        )

    def visit_floordiv_binary(self, binary: Any, operator: Any, **settings: Any) -> str:
        left, right = self.process(binary.left, **settings), self.process(binary.right, **settings)
        whole = all(side.type._type_affinity is types.Integer for side in (binary.left, binary.right))
        return f"{left} DIV {right}" if whole else f"FLOOR({left} / {right})"

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **settings: Any) -> str:
        return f"{self.process(binary.left, **settings)} RLIKE {self.process(binary.right, **settings)}"

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **settings: Any) -> str:
        return f"NOT {self.visit_regexp_match_op_binary(binary, operator, **settings)}"


class DDLCompiler(compiler.DDLCompiler):
    """Definitions in Spark's dialect. Keys, unique columns and indexes do not exist there: left out."""

    def visit_primary_key_constraint(self, constraint: Any, **_: Any) -> str:
        return ""

    def visit_foreign_key_constraint(self, constraint: Any, **_: Any) -> str:
        return ""

    def visit_unique_constraint(self, constraint: Any, **_: Any) -> str:
        return ""

    def visit_create_index(self, create: Any, *_: Any, **__: Any) -> str:
        return NOTHING

    def visit_drop_index(self, drop: Any, **_: Any) -> str:
        return NOTHING

    def post_create_table(self, table: Any) -> str:
        return f"\nCOMMENT {self._text(table.comment)}" if table.comment else ""

    def get_column_specification(self, column: Any, **_: Any) -> str:
        if column.server_default is not None:
            raise exc.CompileError(
                f"a lake makes no values: leave out server_default, Identity or Computed of column "
                f"{column.name!r}, and give its values in the program, by default=..."
            )
        name = self.preparer.format_column(column)
        data_type = self.dialect.type_compiler_instance.process(column.type, type_expression=column)
        comment = f" COMMENT {self._text(column.comment)}" if column.comment else ""
        return f"{name} {data_type}{'' if column.nullable else ' NOT NULL'}{comment}"

    def _text(self, text: str) -> str:
        # Spark reads a backslash in a text as the begin of an escape.
        escaped = text.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"


class TypeCompiler(compiler.GenericTypeCompiler):
    """Types in Spark's dialect."""

    def visit_INTEGER(self, type_: Any, **_: Any) -> str:
        return "INT"

    def visit_FLOAT(self, type_: Any, **_: Any) -> str:
        return "DOUBLE"

    visit_REAL = visit_DOUBLE = visit_DOUBLE_PRECISION = visit_FLOAT

    def visit_NUMERIC(self, type_: Any, **_: Any) -> str:
        return f"DECIMAL({type_.precision or 38}, {10 if type_.scale is None else type_.scale})"

    visit_DECIMAL = visit_NUMERIC

    def visit_VARCHAR(self, type_: Any, **_: Any) -> str:
        return "STRING"

    visit_CHAR = visit_TEXT = visit_CLOB = visit_NVARCHAR = visit_NCHAR = visit_VARCHAR
    visit_string = visit_text = visit_unicode = visit_unicode_text = visit_enum = visit_uuid = visit_VARCHAR

    def visit_DATETIME(self, type_: Any, **_: Any) -> str:
        return "TIMESTAMP"

    visit_TIMESTAMP = visit_DATETIME

    def visit_BLOB(self, type_: Any, **_: Any) -> str:
        return "BINARY"

    visit_BINARY = visit_VARBINARY = visit_large_binary = visit_BLOB

    def visit_JSON(self, type_: Any, **_: Any) -> str:
        return "STRING"

    def visit_ARRAY(self, type_: Any, **_: Any) -> str:
        depth = type_.dimensions or 1
        return "ARRAY<" * depth + str(self.process(type_.item_type)) + ">" * depth

    def visit_TIME(self, type_: Any, **_: Any) -> str:
        raise exc.CompileError("a lake has no type for times of day: use String, Interval or DateTime")
