"""The Spark session: the user's own, or a local one that starts when a statement first needs it.

A session that the user made keeps its settings: what a read or a job needs is given to that read or job.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock, local
from typing import Any, TypeVar, cast

from pyspark import inheritable_thread_target
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from lakevilla.engines.spark.failures import is_stopped, stopped
from lakevilla.engines.spark.session.connect import is_connect
from lakevilla.engines.spark.session.job_tasks import JobTasks, ServerTasks
from lakevilla.engines.spark.session.start import start
from lakevilla.environment import Environment, hears_interrupts
from lakevilla.progress import Measure, Reporter

T = TypeVar("T")

_STOP_SECONDS = 0.1
_STOP_TRIES = 100


class Session:
    """Gives the session, and runs work in it that Ctrl-C can stop."""

    def __init__(
        self,
        environment: Environment,
        session: Any = None,
        url: str = "",
        reporter: Reporter | None = None,
    ) -> None:
        self._environment = environment
        self._session: Any = session
        self._reporter = reporter or Reporter(None, environment)
        self._url = url
        self._lock = Lock()
        self._inside = local()
        _same_python(session)

    def __call__(self) -> Any:
        """The session; a local one is started if there is none."""
        with self._lock:
            if self._session is None:
                self._session = _existing() or start(
                    self._url, self._environment, shows_jobs=not self._reporter.is_on
                )
            elif not is_connect(self._session) and is_stopped():
                raise stopped()
            return self._session

    @property
    def started(self) -> Any:
        """The session, or None if there is none yet."""
        with self._lock:
            return self._session or _existing()

    def run(self, action: Callable[[], T], what: str = "") -> T:
        """Run something that talks to Spark and starts jobs, so that Ctrl-C ends it; report its progress as
        that of `what`.

        It runs in another thread: an interrupt in the middle of an answer from the JVM would leave this
        thread's connection in disorder, and the jobs running. A tag finds the jobs and leaves the user's
        groups alone. What runs inside of this already is run as it is.
        """
        if getattr(self._inside, "tag", None) is not None:
            return action()
        session = self()
        work = _Work(_Tags.of(session), f"lakevilla-{self._environment.new_id()}")
        if not what or not self._reporter.is_on:
            return self._run(session, work, action)
        with (
            self._tasks(session, work.tag) as tasks,
            self._reporter.work(what, "tasks", measure=tasks),
        ):
            return self._run(session, work, action)

    def fetch(self, action: Callable[[], T], what: str = "") -> T:
        """Run what gives an answer and changes nothing: as it is where neither Ctrl-C can come nor progress
        is reported."""
        return self.run(action, what) if hears_interrupts() or self._reporter.is_on else action()

    @contextmanager
    def _tasks(self, session: Any, tag: str) -> Iterator[Measure]:
        """What counts the tasks of the jobs with this tag."""
        if not is_connect(session):
            yield JobTasks(session.sparkContext, tag)
            return
        tasks = ServerTasks(lambda: getattr(self._inside, "tag", None) == tag)
        session.registerProgressHandler(tasks.hear)
        try:
            yield tasks
        finally:
            session.removeProgressHandler(tasks.hear)

    def _run(self, session: Any, work: "_Work", action: Callable[[], T]) -> T:

        def tagged() -> T:
            self._inside.tag = work.tag
            work.tags.add(work.tag)
            try:
                return action()
            finally:
                work.tags.remove(work.tag)
                self._inside.tag = None
                work.ended = True

        try:
            # A single task would run in this thread.
            done = self._environment.fan_out([inheritable_thread_target(session)(tagged), _nothing])
        except KeyboardInterrupt:
            self._stop(work)
            raise
        return cast(T, done[0])

    def _stop(self, work: "_Work") -> None:
        """Cancel the work's jobs, also those that it starts meanwhile, until it has ended."""
        for _ in range(_STOP_TRIES):
            work.tags.cancel(work.tag)
            if work.ended:
                return
            self._environment.sleep(_STOP_SECONDS)


@dataclass(frozen=True)
class _Tags:
    """How to tag the jobs that this thread starts, and to cancel jobs by their tag."""

    add: Callable[[str], None]
    remove: Callable[[str], None]
    cancel: Callable[[str], Any]

    @staticmethod
    def of(session: Any) -> "_Tags":
        if is_connect(session):
            return _Tags(session.addTag, session.removeTag, session.interruptTag)
        # The session's own tags do not reach jobs that a classic session starts for Python (Spark 4.1).
        context = session.sparkContext
        return _Tags(context.addJobTag, context.removeJobTag, context.cancelJobsWithTag)


@dataclass
class _Work:
    """Something that runs, and by which tag its jobs are found."""

    tags: _Tags
    tag: str
    ended: bool = False


def _existing() -> Any:
    """The session that is there: the one of this thread, or the one that all threads share."""
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def _nothing() -> None:
    return None


def _same_python(session: Any) -> None:
    """Tasks need this interpreter, which has our dependencies, unless the user chose another."""
    if "PYSPARK_PYTHON" in os.environ:
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    if session is None or is_connect(session):
        return
    if session.sparkContext.getConf().get("spark.pyspark.python") is None:
        # A session that is there already has read the variable before.
        session.sparkContext.pythonExec = sys.executable
