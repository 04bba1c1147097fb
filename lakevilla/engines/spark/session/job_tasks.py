"""How many tasks of a statement's jobs are done, for reports of progress."""

from collections.abc import Callable, Iterable
from typing import Any

from py4j.protocol import Py4JError


class JobTasks:
    """Counts the tasks of the jobs with a tag, as far as their stages have begun.

    Spark plans a query while it runs, so the number of tasks grows; stages whose rows it has from an earlier
    job never begin.
    """

    def __init__(self, context: Any, tag: str) -> None:
        self._context = context
        self._tag = tag
        self._ended: dict[int, tuple[int, int]] = {}
        self._known = (0, 0)

    def __call__(self) -> tuple[int, int | None]:
        """How many tasks are done, and of how many."""
        done, total = self._counted()
        return done, total or None

    def _counted(self) -> tuple[int, int]:
        try:
            tracker = self._context._jsc.sc().statusTracker()
            jobs = list(tracker.getJobIdsForTag(self._tag))
            counts = [self._of_job(tracker, job) for job in jobs]
        except (Py4JError, AttributeError, ConnectionError):
            # Spark is being stopped, which the statement itself reports.
            return self._known
        done, total = sum(done for done, _ in counts), sum(total for _, total in counts)
        # Spark forgets old jobs.
        self._known = max(self._known[0], done), max(self._known[1], total)
        return self._known

    def _of_job(self, tracker: Any, job: int) -> tuple[int, int]:
        if job in self._ended:
            return self._ended[job]
        found = tracker.getJobInfo(job)
        if not found.isDefined():
            return 0, 0
        has_ended = str(found.get().status()) != "RUNNING"
        stages = [tracker.getStageInfo(stage) for stage in found.get().stageIds()]
        begun = [stage.get() for stage in stages if stage.isDefined() and stage.get().submissionTime() > 0]
        counts = sum(stage.numCompletedTasks() for stage in begun), sum(stage.numTasks() for stage in begun)
        if has_ended:
            self._ended[job] = counts
        return counts


class ServerTasks:
    """The same for Spark Connect, whose server sends its counts with the answers that a thread waits for.

    `is_ours` says in that thread whether it works on the statement. The server sends them every 2 seconds.
    """

    def __init__(self, is_ours: Callable[[], bool]) -> None:
        self._is_ours = is_ours
        self._counts: dict[tuple[str | None, int], tuple[int, int]] = {}

    # The arguments and their names are PySpark's.
    def hear(
        self,
        stages: Iterable[Any] | None,
        inflight_tasks: int,  # noqa: ARG002
        operation_id: str | None,
        done: bool,  # noqa: ARG002
    ) -> None:
        """What the server says of an operation."""
        if self._is_ours():
            for stage in stages or ():
                counts = stage.num_completed_tasks, stage.num_tasks
                # One assignment, so that the thread that reports sees whole records.
                self._counts = {**self._counts, (operation_id, stage.stage_id): counts}

    def __call__(self) -> tuple[int, int | None]:
        """How many tasks are done, and of how many."""
        counts = self._counts.values()
        return sum(done for done, _ in counts), sum(total for _, total in counts) or None
