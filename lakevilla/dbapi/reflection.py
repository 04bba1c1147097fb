"""What SQLAlchemy can ask about the tables and views of a lake, for `inspect` and `autoload_with`.

A name such as `sales.orders` is the table `orders` of the schema `sales`. Names are found in any case.
"""

# The signatures of many methods here are SQLAlchemy's.
# ruff: noqa: ARG002

from typing import Any

from sqlalchemy import exc, types
from sqlalchemy.engine import Connection
from sqlalchemy.engine.interfaces import ReflectedColumn

_TYPES: dict[str, type[types.TypeEngine[Any]]] = {
    "tinyint": types.SmallInteger,
    "smallint": types.SmallInteger,
    "int": types.Integer,
    "bigint": types.BigInteger,
    "float": types.Float,
    "double": types.Double,
    "boolean": types.Boolean,
    "date": types.Date,
    "timestamp": types.TIMESTAMP,
    "timestamp_ntz": types.DateTime,
    "time": types.Time,
    "binary": types.LargeBinary,
    "string": types.String,
}


class Reflection:
    """The part of a dialect that reads what there is. Lakes have no keys and no indexes."""

    def has_table(self, connection: Connection, table_name: str, schema: str | None = None, **_: Any) -> bool:
        """Whether there is a table or a view of this name."""
        return _find(connection, table_name, schema) is not None

    def get_table_names(self, connection: Connection, schema: str | None = None, **_: Any) -> list[str]:
        return _names(connection, schema, "table")

    def get_view_names(self, connection: Connection, schema: str | None = None, **_: Any) -> list[str]:
        return _names(connection, schema, "view")

    def get_schema_names(self, connection: Connection, **_: Any) -> list[str]:
        return sorted({name.rpartition(".")[0] for name in _kinds(connection) if "." in name})

    def get_temp_table_names(self, connection: Connection, schema: Any = None, **_: Any) -> list[str]:
        return []

    def get_temp_view_names(self, connection: Connection, schema: Any = None, **_: Any) -> list[str]:
        """Temporary views belong to SQL sessions, and connections have none."""
        return []

    def get_materialized_view_names(self, connection: Connection, schema: Any = None, **_: Any) -> list[str]:
        return []

    def get_sequence_names(self, connection: Connection, schema: Any = None, **_: Any) -> list[str]:
        return []

    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: Any
    ) -> list[ReflectedColumn]:
        quoted = "`" + _found(connection, table_name, schema).replace("`", "``") + "`"
        rows = connection.exec_driver_sql(f"DESCRIBE {quoted}").mappings().all()
        return [
            {
                "name": row["col_name"],
                "type": _type_of(row["data_type"]),
                "nullable": bool(row["nullable"]),
                "default": None,
                "autoincrement": False,
                "comment": row["comment"],
            }
            for row in rows
        ]

    def get_view_definition(
        self, connection: Connection, view_name: str, schema: str | None = None, **_: Any
    ) -> str:
        rows = self._rows(connection, "views", "view_definition", view_name, schema)
        if not rows:
            raise exc.NoSuchTableError(_full(view_name, schema))
        return str(rows[0][0])

    def get_table_comment(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: Any
    ) -> Any:
        return {"text": self._rows(connection, "tables", "comment", table_name, schema)[0][0]}

    def get_check_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: Any
    ) -> Any:
        """The constraints that have names; `nullable` of the columns says the rest."""
        rows = self._rows(
            connection, "table_constraints", "constraint_name, check_clause", table_name, schema
        )
        return [{"name": name, "sqltext": text} for name, text in rows if not name.endswith("_not_null")]

    def get_table_options(self, connection: Connection, table_name: str, schema: Any = None, **_: Any) -> Any:
        _found(connection, table_name, schema)
        return {}

    def get_pk_constraint(self, connection: Connection, table_name: str, schema: Any = None, **_: Any) -> Any:
        _found(connection, table_name, schema)
        return {"constrained_columns": [], "name": None}

    def get_foreign_keys(self, connection: Connection, table_name: str, schema: Any = None, **_: Any) -> Any:
        _found(connection, table_name, schema)
        return []

    def get_unique_constraints(
        self, connection: Connection, table_name: str, schema: Any = None, **_: Any
    ) -> Any:
        _found(connection, table_name, schema)
        return []

    def get_indexes(self, connection: Connection, table_name: str, schema: Any = None, **_: Any) -> Any:
        _found(connection, table_name, schema)
        return []

    def _rows(
        self, connection: Connection, source: str, columns: str, table_name: str, schema: str | None
    ) -> list[Any]:
        """Rows of the information schema about one table."""
        folder, _, name = _found(connection, table_name, schema).rpartition(".")
        query = (
            f"SELECT {columns} FROM information_schema.{source} WHERE table_schema = ? AND table_name = ? "
            "ORDER BY 1"
        )
        return list(connection.exec_driver_sql(query, (folder or "default", name)).fetchall())


def _full(table_name: str, schema: str | None) -> str:
    return str(table_name) if schema is None else f"{schema}.{table_name}"


def _kinds(connection: Connection) -> dict[str, str]:
    """All names, with `table` or `view`."""
    return dict(connection.exec_driver_sql("SHOW TABLES").fetchall())


def _names(connection: Connection, schema: str | None, kind: str) -> list[str]:
    names = [name for name, found in _kinds(connection).items() if found == kind]
    if schema is None:
        return [name for name in names if "." not in name]
    begin = f"{schema}."
    return [name[len(begin) :] for name in names if name.startswith(begin)]


def _find(connection: Connection, table_name: str, schema: str | None) -> str | None:
    wanted = _full(table_name, schema).casefold()
    return next((name for name in _kinds(connection) if name.casefold() == wanted), None)


def _found(connection: Connection, table_name: str, schema: str | None) -> str:
    name = _find(connection, table_name, schema)
    if name is None:
        raise exc.NoSuchTableError(_full(table_name, schema))
    return name


def _type_of(text: str) -> types.TypeEngine[Any]:
    kind, _, arguments = text.lower().partition("(")
    if kind == "decimal":
        precision, scale = (int(number) for number in arguments.rstrip(")").split(","))
        return types.Numeric(precision, scale)
    found = _TYPES.get(kind)
    return types.NullType() if found is None else found()
