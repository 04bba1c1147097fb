"""The Spark session: the user's own, or a local one that starts when a statement first needs it.

A session that somebody else made keeps its settings: what a read or a job needs is given to that read or job.
"""

import os
import sys
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar, cast

from pyspark import inheritable_thread_target
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from lakevilla.engines.spark.connect import is_connect
from lakevilla.engines.spark.starting import start
from lakevilla.environment import Environment

T = TypeVar("T")


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
                self._session = _existing() or start(self._url)
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


def _existing() -> Any:
    """The session that is there: the one of this thread, or the one that all threads share."""
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def _nothing() -> None:
    return None


def _same_python(session: Any) -> None:
    """Tasks need this interpreter, which has our dependencies, unless somebody chose another."""
    if "PYSPARK_PYTHON" in os.environ:
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    if session is None or is_connect(session):
        return
    if session.sparkContext.getConf().get("spark.pyspark.python") is None:
        # A session that is there already has read the variable before.
        session.sparkContext.pythonExec = sys.executable
