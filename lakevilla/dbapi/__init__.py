"""DB-API 2.0 (PEP 249) over a lake, with real transactions.

    import lakevilla.dbapi

    connection = lakevilla.dbapi.connect("./lake", engine="local")
    cursor = connection.cursor()
    cursor.execute("SELECT * FROM accounts WHERE id = :id", {"id": 1})
    cursor.fetchall()
    connection.commit()

Parameters are `:name` with a mapping, or `?` with a sequence. A transaction begins with the first statement
and ends with `commit()` or `rollback()`, which all the tables that it touched share.
"""

from lakevilla.dbapi.connection import Connection, connect
from lakevilla.dbapi.cursor import Cursor
from lakevilla.dbapi.exceptions import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from lakevilla.dbapi.types import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

apilevel = "2.0"
threadsafety = 1
"""Threads may share the module, but not connections."""
paramstyle = "named"

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
