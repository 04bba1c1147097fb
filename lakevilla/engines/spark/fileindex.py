"""A relation over files that we name, read by Spark's own Parquet reader.

`spark.read.parquet(*paths)` asks the store about every path again, and knows nothing of our statistics. A
file index of our own does neither. It is one Java source, compiled in the driver at first use by Janino,
which Spark ships; see `SnapshotIndex.java`. Needs a JVM next to this process: not there with Spark Connect.
"""

import logging
from collections.abc import Callable, Mapping
from importlib.resources import files
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JJavaError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

logger = logging.getLogger("lakevilla.engines.spark")

# PySpark has no types for it.
_start_callbacks: Any = ensure_callback_server_started
_compiling = Lock()
_compiled: "WeakKeyDictionary[Any, Any]" = WeakKeyDictionary()

Answer = Callable[[str], str]
"""From filters as JSON to files as JSON, see `SnapshotIndex.java`."""


def usable(session: Any) -> bool:
    """Whether there is a JVM beside us that takes our index."""
    return hasattr(session, "_jsparkSession") and _index_class(session) is not None


def relation(
    session: Any,
    answer: Answer,
    partition: StructType,
    data: StructType,
    options: Mapping[str, str],
    size_bytes: int,
) -> Any:
    """A lazy DataFrame over the files that `answer` gives for the filters of whatever is done with it."""
    jvm, inner = session._jvm, session._jsparkSession
    arguments = jvm.java.util.ArrayList()
    arguments.add(_Lister(answer))
    arguments.add(inner.parseDataType(partition.json()))
    arguments.add(size_bytes)
    index = _index_class(session).getConstructors()[0].newInstance(arguments.toArray())
    given = jvm.java.util.HashMap()
    for name, value in options.items():
        given.put(name, value)
    sources = jvm.org.apache.spark.sql.execution.datasources
    found = sources.HadoopFsRelation(
        index,
        inner.parseDataType(partition.json()),
        inner.parseDataType(data.json()),
        jvm.scala.Option.empty(),
        sources.parquet.ParquetFileFormat(),
        jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(given),
        inner,
    )
    return DataFrame(inner.baseRelationToDataFrame(found), session)


class _Lister:
    """What the JVM calls back; it may do so from any thread of its own."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def apply(self, filters: str) -> str:
        return self._answer(filters)

    class Java:
        implements = ("java.util.function.Function",)


def _index_class(session: Any) -> Any:
    """The compiled class; None if this Spark does not take it, which is asked once."""
    gateway = session.sparkContext._gateway
    with _compiling:
        if gateway not in _compiled:
            try:
                _compiled[gateway] = _compile(gateway)
            except Py4JJavaError as error:
                logger.warning("the index does not compile, files go by path: %s", error.java_exception)
                _compiled[gateway] = None
        return _compiled[gateway]


def _compile(gateway: Any) -> Any:
    _start_callbacks(gateway)
    compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(files(__package__).joinpath("SnapshotIndex.java").read_text("utf-8"))
    return compiler.getClassLoader().loadClass("SnapshotIndex")
