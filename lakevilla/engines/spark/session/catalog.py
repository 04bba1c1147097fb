"""The tables of a lake as a catalog of a session, see `LakeCatalog.java`: for `SELECT ... FROM lake.orders`.

Spark loads a catalog by the name of its class, once for each session and name. To attach again only changes
what the catalog answers.
"""

import json
from collections.abc import Mapping
from threading import Lock
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from lakevilla.engines.spark.session.connect import is_connect
from lakevilla.engines.spark.session.jvm import compiled, driver_side
from lakevilla.errors import InvalidInput, LakeVillaError, Unsupported
from lakevilla.files.column_mapping import COMMENT

_CLASS = "LakeCatalog"
_OF_SPARK = ("spark_catalog", "system", "global_temp", "session", "builtin")
_compiling = Lock()
_classes: "WeakKeyDictionary[Any, Any]" = WeakKeyDictionary()


class Tables(Protocol):
    """What a catalog shows."""

    def names(self) -> list[str]:
        """The names of all tables."""
        ...

    def read(
        self, name: str, query: int, version: str | None, microseconds: int | None
    ) -> tuple[Any, dict[str, Any]] | None:
        """A table as a DataFrame, and what is known of it: an `id` that no other version and no other table
        has, its `columns` as an Arrow schema, and `properties`. None if there is none of this name. All
        tables of one query are read at one instant."""
        ...


def attach(session: Any, name: str, tables: Tables) -> None:
    """Show these tables to the session as a catalog of this name."""
    if is_connect(session) or driver_side(session) is None:
        raise Unsupported(
            "a lake can only be attached to a Spark session whose JVM belongs to this process. With Spark "
            "Connect, read tables by lake.sql(...)"
        )
    if not isinstance(name, str) or not name.isidentifier():
        raise InvalidInput(f"a lake cannot be attached as {name!r}: use letters, digits and underscores")
    setting = f"spark.sql.catalog.{name}"
    known = session.conf.get(setting, None)
    if known not in (None, _CLASS) or name.lower() in _OF_SPARK:
        raise InvalidInput(f"the session has another catalog {name!r}: attach the lake by another name")
    if known is None and session._jsparkSession.sessionState().catalog().databaseExists(name):
        raise InvalidInput(
            f"a lake cannot be attached as {name!r}: the session has a schema of this name, whose tables the "
            "catalog would hide; attach the lake by another name"
        )
    session.conf.set(setting, _CLASS)
    try:
        _class(session).attach(session._jsparkSession, name, _Answers(session, tables))
    except BaseException:
        if known is None:
            session.conf.unset(setting)
        raise


def _class(session: Any) -> Any:
    gateway = session.sparkContext._gateway
    with _compiling:
        if gateway not in _classes:
            _classes[gateway] = compiled(gateway, _CLASS)
        return _classes[gateway]


class _Answers:
    """What the JVM calls back, from any thread of its own. It takes JSON, and answers with a DataFrame
    and its version's name, a text, or nothing; see `LakeCatalog.java`."""

    def __init__(self, session: Any, tables: Tables) -> None:
        self._pair = session.sparkContext._gateway.jvm.scala.Tuple2
        self._tables = tables

    def apply(self, asked: str) -> Any:
        wanted = json.loads(asked)
        try:
            if "list" in wanted:
                return json.dumps(_inside(wanted["list"], self._tables.names()))
            if "folders" in wanted:
                return json.dumps(_folders(self._tables.names()))
            version, moment = wanted.get("version"), wanted.get("microseconds")
            found = self._tables.read(wanted["table"], wanted["query"], version, moment)
            return None if found is None else self._pair(found[0]._jdf, _told(found[1]))
        except LakeVillaError as error:
            return f"!{error}"

    class Java:
        implements = ("java.util.function.Function",)


def _told(facts: Mapping[str, Any]) -> str:
    """What is known of a table, with the comments of its columns."""
    metadata = {field.name: field.metadata or {} for field in facts["columns"]}
    comments = {name: about[COMMENT].decode() for name, about in metadata.items() if COMMENT in about}
    return json.dumps({"id": facts["id"], "properties": facts["properties"], "comments": comments})


def _inside(folder: str, names: list[str]) -> list[str]:
    """The last parts of the names in this namespace."""
    begin = f"{folder}." if folder else ""
    inside = [name[len(begin) :] for name in names if name.casefold().startswith(begin.casefold())]
    return [name for name in inside if "." not in name]


def _folders(names: list[str]) -> list[list[str]]:
    """Every namespace that has tables or namespaces, by its parts; in the spelling that comes first."""
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        parts = name.split(".")[:-1]
        for length in range(1, len(parts) + 1):
            found.setdefault(".".join(parts[:length]).casefold(), parts[:length])
    return list(found.values())
