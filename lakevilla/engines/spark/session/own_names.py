"""What statements can read by name in the user's Spark session, besides tables of the lake: temporary views,
and files in place."""

from typing import Any

from pyspark.errors import AnalysisException

from lakevilla.engines.spark.session.connect import is_connect

_FILES = frozenset({"parquet", "orc", "csv", "json", "text", "avro"})
_GLOBAL = "spark.sql.globalTempDatabase"


def is_file(name: str) -> bool:
    """Whether the name means files, as in parquet.`s3://bucket/folder`. Names of tables have no slash."""
    kind, _, path = name.partition(".")
    return kind.lower() in _FILES and "/" in path


def is_view(session: Any, name: str) -> bool:
    """Whether the session has a temporary view of this name, or there is a global one."""
    if is_connect(session):
        return _is_view_of_server(session, name)
    catalog = session._jsparkSession.sessionState().catalog()
    database, dot, view = name.rpartition(".")
    if not dot:
        return bool(catalog.getTempView(name).isDefined())
    shared = str(session.conf.get(_GLOBAL, "global_temp"))
    return database.lower() == shared.lower() and bool(catalog.getGlobalTempView(view).isDefined())


def _is_view_of_server(session: Any, name: str) -> bool:
    """Only the server knows its views: one request."""
    try:
        return bool(session.catalog.getTable(name).isTemporary)
    except AnalysisException:
        return False
