"""A SQLAlchemy dialect over `lakevilla.dbapi`: `create_engine("lakevilla:////data/lake?engine=local")`.

The path of the URL is a directory; a lake elsewhere is named by `root`, as in
`lakevilla://?root=s3://bucket/lake`. All connections of an engine share one `Lake`. Lakes have no keys: those
of a model are for the program alone, and the program gives their values.
"""

# The signatures of many methods here are SQLAlchemy's.
# ruff: noqa: ARG002

from typing import Any

from sqlalchemy import exc
from sqlalchemy.engine import URL, Connection
from sqlalchemy.engine.default import DefaultDialect

import lakevilla
from lakevilla import dbapi
from lakevilla.dbapi.compilers import DDLCompiler, Preparer, SQLCompiler, TypeCompiler
from lakevilla.dbapi.reflection import Reflection

_LEVELS = {"SERIALIZABLE": "serializable", "SNAPSHOT": "snapshot", "AUTOCOMMIT": "serializable"}


class LakeVillaDialect(Reflection, DefaultDialect):
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


def _raw(connection: Connection) -> dbapi.Connection:
    found: dbapi.Connection = connection.connection.dbapi_connection  # type: ignore[assignment]
    return found
