"""The Spark session: the user's own, or a local one that starts when a statement first needs it.

A session that somebody else made keeps its settings: what a read or a job needs is given to that read or job.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar, cast

from pyspark import inheritable_thread_target
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from lakevilla.engines.spark import packages
from lakevilla.environment import Environment
from lakevilla.errors import InvalidInput

T = TypeVar("T")

_WITHOUT = "Without Java, open the lake with engine='local'."


class Session:
    """Gives the session, and runs work in it that Ctrl-C can stop."""

    def __init__(self, environment: Environment, session: Any = None, url: str = "") -> None:
        self._environment = environment
        self._session: Any = session
        self._url = url
        self._lock = Lock()
        _same_python(session)

    def __call__(self) -> Any:
        """The session; a local one is started if there is none."""
        with self._lock:
            if self._session is None:
                self._session = SparkSession.getActiveSession() or _start(self._url)
            return self._session

    def run(self, action: Callable[[], T]) -> T:
        """Run something that starts jobs, so that Ctrl-C stops them.

        It runs in another thread: an interrupt in the middle of an answer from the JVM would leave this
        thread's connection in disorder, and the jobs running. A tag finds the jobs and leaves the user's
        groups alone.
        """
        session, tag = self(), f"lakevilla-{self._environment.new_id()}"

        def tagged() -> T:
            session.addTag(tag)
            try:
                return action()
            finally:
                session.removeTag(tag)

        try:
            # A single task would run in this thread.
            done = self._environment.fan_out([inheritable_thread_target(session)(tagged), _nothing])
        except KeyboardInterrupt:
            session.interruptTag(tag)
            raise
        return cast(T, done[0])


def _nothing() -> None:
    return None


def _same_python(session: Any) -> None:
    """Tasks need this interpreter, which has our dependencies, unless somebody chose another."""
    if "PYSPARK_PYTHON" in os.environ:
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    context = getattr(session, "sparkContext", None) if hasattr(session, "_jsparkSession") else None
    if context is not None and context.getConf().get("spark.pyspark.python") is None:
        # A session that is there already has read the variable before.
        context.pythonExec = sys.executable


def _start(url: str) -> Any:
    cores = os.cpu_count() or 1
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
        "spark.log.level": "ERROR",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(2 * cores),
        "spark.sql.warehouse.dir": os.path.join(tempfile.gettempdir(), "lakevilla-warehouse"),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        **packages.settings(url),
    }
    builder: Any = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        return builder.master("local[*]").appName("LakeVilla").getOrCreate()
    except PySparkRuntimeError as error:
        raise InvalidInput(_why_not(str(error))) from error


def _why_not(message: str) -> str:
    """What is wrong with Java, if that is why Spark did not start."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    wanted = f"Spark needs Java 17 or 21: install it, or let JAVA_HOME point to it. {_WITHOUT}"
    if java is None or not os.path.exists(java):
        return f"there is no Java on this machine. {wanted}"
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = told.partition('"')[2].partition('"')[0]
    if version.partition(".")[0] not in ("17", "21"):
        return f"the Java on this machine ({java}) is version {version or 'unknown'}. {wanted}"
    return f"Spark does not start: {message.partition(chr(10))[0]}. {_WITHOUT}"
