"""A SQLAlchemy dialect over `lakevilla.dbapi`: `create_engine("lakevilla:////data/lake?engine=local")`.

The path of the URL is a directory; a lake elsewhere is named by `root`, as in
`lakevilla://?root=s3://bucket/lake`. All connections of an engine share one `Lake`. Lakes have no keys: those
of a model are for the program alone, and the program gives their values.
"""

# The signatures of many methods here are SQLAlchemy's.
# ruff: noqa: ARG002

from typing import Any

from sqlalchemy import exc, types
from sqlalchemy.engine import URL, Connection
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.engine.interfaces import ReflectedColumn

import lakevilla
from lakevilla import dbapi
from lakevilla.dbapi.compilers import DDLCompiler, Preparer, SQLCompiler, TypeCompiler

_LEVELS = {"SERIALIZABLE": "serializable", "SNAPSHOT": "snapshot", "AUTOCOMMIT": "serializable"}

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


class LakeVillaDialect(DefaultDialect):
    """LakeVilla for SQLAlchemy."""

    name = "lakevilla"
    driver = "dbapi"
    default_paramstyle = "qmark"
    statement_compiler = SQLCompiler
    ddl_compiler = DDLCompiler
    type_compiler_cls = TypeCompiler
    preparer: Any = Preparer
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_multivalues_insert = True
    supports_default_values = False
    supports_default_metavalue = False
    supports_sane_multi_rowcount = True
    supports_alter = False
    supports_comments = True
    inline_comments = True
    div_is_floordiv = False
    postfetch_lastrowid = False
    use_insertmanyvalues = False
    max_identifier_length = 200

    def __init__(self, **settings: Any) -> None:
        # Columns may have any name, and so would parameters that are named after them.
        super().__init__(**{"paramstyle": "qmark", **settings})
        self._lake: lakevilla.Lake | None = None

    @classmethod
    def import_dbapi(cls) -> Any:
        return dbapi

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        options: dict[str, Any] = dict(url.query)
        root = options.pop("root", None) or url.database
        if not root or url.host:
            raise exc.ArgumentError(
                "a lake is lakevilla:////absolute/path, lakevilla:///relative/path or "
                "lakevilla://?root=s3://bucket/path"
            )
        return [root], options

    def connect(self, *arguments: Any, **options: Any) -> Any:
        """A connection; the first one opens the lake for all."""
        if self._lake is None:
            self._lake = dbapi.connect(*arguments, **options).lake
        return dbapi.connect(lake=self._lake)

    def get_isolation_level_values(self, dbapi_conn: Any) -> list[str]:  # type: ignore[override]
        return list(_LEVELS)

    def get_default_isolation_level(self, dbapi_conn: Any) -> Any:
        return "SERIALIZABLE"

    def get_isolation_level(self, dbapi_connection: Any) -> Any:
        return "AUTOCOMMIT" if dbapi_connection.autocommit else dbapi_connection.isolation.upper()

    def set_isolation_level(self, dbapi_connection: Any, level: Any) -> None:
        dbapi_connection.isolation = _LEVELS[level]
        dbapi_connection.autocommit = level == "AUTOCOMMIT"

    def do_savepoint(self, connection: Connection, name: str) -> None:
        _raw(connection).savepoint(name)

    def do_rollback_to_savepoint(self, connection: Connection, name: str) -> None:
        _raw(connection).rollback_to(name)

    def do_release_savepoint(self, connection: Connection, name: str) -> None:
        """A savepoint goes with its transaction."""

    def has_table(self, connection: Connection, table_name: str, schema: str | None = None, **_: Any) -> bool:
        wanted = _full(table_name, schema).casefold()
        return any(name.casefold() == wanted for name in _tables(connection))

    def get_table_names(self, connection: Connection, schema: str | None = None, **_: Any) -> list[str]:
        names = _tables(connection)
        if schema is None:
            return [name for name in names if "." not in name]
        begin = f"{schema}."
        return [name[len(begin) :] for name in names if name.startswith(begin)]

    def get_schema_names(self, connection: Connection, **_: Any) -> list[str]:
        return sorted({name.rpartition(".")[0] for name in _tables(connection) if "." in name})

    def get_view_names(self, connection: Connection, schema: str | None = None, **_: Any) -> list[str]:
        return []

    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: Any
    ) -> list[ReflectedColumn]:
        if not self.has_table(connection, table_name, schema):
            raise exc.NoSuchTableError(_full(table_name, schema))
        quoted = "`" + _full(table_name, schema).replace("`", "``") + "`"
        rows = connection.exec_driver_sql(f"DESCRIBE {quoted}").mappings().all()
        return [
            {
                "name": row["col_name"],
                "type": _type_of(row["data_type"]),
                "nullable": bool(row["nullable"]),
                "default": None,
                "autoincrement": False,
            }
            for row in rows
        ]

    def get_pk_constraint(self, connection: Any, table_name: str, schema: Any = None, **_: Any) -> Any:
        return {"constrained_columns": [], "name": None}

    def get_foreign_keys(self, connection: Any, table_name: str, schema: Any = None, **_: Any) -> Any:
        return []

    def get_unique_constraints(self, connection: Any, table_name: str, schema: Any = None, **_: Any) -> Any:
        return []

    def get_indexes(self, connection: Any, table_name: str, schema: Any = None, **_: Any) -> Any:
        return []


def _raw(connection: Connection) -> dbapi.Connection:
    found: dbapi.Connection = connection.connection.dbapi_connection  # type: ignore[assignment]
    return found


def _full(table_name: str, schema: str | None) -> str:
    return str(table_name) if schema is None else f"{schema}.{table_name}"


def _tables(connection: Connection) -> list[str]:
    return [row[0] for row in connection.exec_driver_sql("SHOW TABLES").fetchall()]


def _type_of(text: str) -> types.TypeEngine[Any]:
    kind, _, arguments = text.lower().partition("(")
    if kind == "decimal":
        precision, scale = (int(number) for number in arguments.rstrip(")").split(","))
        return types.Numeric(precision, scale)
    found = _TYPES.get(kind)
    return types.NullType() if found is None else found()
