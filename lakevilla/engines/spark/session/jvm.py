"""What runs in the driver's JVM: Java sources of this package, compiled there at first use.

Spark ships the Janino compiler, so there is no build step; executors never see the classes. Needs a JVM next
to this process: not there with Spark Connect.
"""

import logging
from importlib.resources import files
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JJavaError
from pyspark.java_gateway import ensure_callback_server_started

from lakevilla.engines.spark.session.connect import is_connect

logger = logging.getLogger("lakevilla.engines.spark")

# PySpark has no types for it.
_start_callbacks: Any = ensure_callback_server_started
_compiling = Lock()
_compiled: "WeakKeyDictionary[Any, Any]" = WeakKeyDictionary()


def driver_side(session: Any) -> Any:
    """The `DriverSide` of this session's JVM, see `DriverSide.java`; None if there is no local JVM, or it
    does not take our classes, which is asked once."""
    if is_connect(session):
        return None
    gateway = session.sparkContext._gateway
    with _compiling:
        if gateway not in _compiled:
            try:
                _compiled[gateway] = _compile(gateway)
            except Py4JJavaError as error:
                logger.warning(
                    "LakeVilla's Java classes do not compile, so files are read by path: %s",
                    error.java_exception,
                )
                _compiled[gateway] = None
        return _compiled[gateway]


def _compile(gateway: Any) -> Any:
    _start_callbacks(gateway)
    return compiled(gateway, "SnapshotIndex", "LivingRows", "DriverSide")


def compiled(gateway: Any, *names: str) -> Any:
    """An object of the last of these classes, each of which is compiled with those before it in sight."""
    loader = gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for name in names:
        compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setSourceVersion(8)
        compiler.setTargetVersion(8)
        compiler.setParentClassLoader(loader)
        compiler.cook(files(__package__).joinpath(f"{name}.java").read_text("utf-8"))
        loader = compiler.getClassLoader()
    return loader.loadClass(names[-1]).getConstructors()[0].newInstance(None)
