"""Run a job in a system, and say whether it does what the job asks for."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.jobs import with_deltalake, with_ducklake, with_lakevilla
from bench.jobs.job import Job, lines_of, plain
from bench.jobs.world import write_files

SYSTEMS: tuple[ModuleType, ...] = (with_lakevilla, with_ducklake, with_deltalake)


@dataclass(frozen=True)
class Found:
    """The result of a job: its lines, or why the system cannot do it."""

    lines: int | None
    reason: str = ""


class Wrong(Exception):
    """A job ended otherwise than its system says."""


def play(job: Job, system: Any) -> Found:
    """Run the job and check it; `Wrong` if a system that should do it does not, or the other way round."""
    reason = system.CANNOT.get(job.key, "")
    way = getattr(system, job.key, None)
    if way is None:
        if not reason:
            raise Wrong(f"{system.NAME} has no function {job.key!r}, and no reason why")
        return Found(None, reason)
    failure = _failure(job, system)
    if bool(failure) != bool(reason):
        raise Wrong(f"{system.NAME}, {job.key}: {failure or 'it works, but is listed as impossible'}")
    return Found(None, reason) if reason else Found(lines_of(way))


def _failure(job: Job, system: Any) -> str:
    """Why the job is not done; empty if it is."""
    with _folder() as folder:
        write_files(folder)
        opened = system.open(folder)
        if job.before:
            getattr(system, job.before)(opened, lambda: None)
        seen: list[Any] = []

        def other() -> None:
            if not seen and job.other is not None:
                seen.append(job.other(system, folder))

        try:
            value = getattr(system, job.key)(opened, other)
        except Exception as error:  # noqa: BLE001 - any failure of any library means that the job is not done
            return f"{type(error).__name__}: {error}"
        if job.spoiled:
            with contextlib.suppress(Exception):
                system.spoil(folder)
        return "; ".join(_differences(job, system, folder, value, seen))


def _differences(job: Job, system: Any, folder: Path, value: Any, seen: list[Any]) -> Iterator[str]:
    returned = plain(value)
    if returned != job.value:
        yield f"returned {returned}, not {job.value}"
    if job.kind is not None and not isinstance(value, job.kind):
        yield f"returned a {type(value).__name__}"
    if seen and seen != [job.seen]:
        yield f"another client saw {seen[0]}, not {job.seen}"
    for table, names in job.columns.items():
        if sorted(system.columns(folder, table)) != names:
            yield f"{table} has the columns {system.columns(folder, table)}"
    for table, expected in job.tables.items():
        # As texts, because None and dates cannot be sorted together.
        if sorted(map(str, system.rows(folder, table))) != sorted(map(str, expected)):
            yield f"{table} has {system.rows(folder, table)}, not {expected}"
    if job.check is not None:
        try:
            job.check(folder, system)
        except AssertionError as error:
            yield f"check failed: {error}"


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A new working directory, as for a user's program."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            yield Path(name).resolve()
        finally:
            os.chdir(before)
