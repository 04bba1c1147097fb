"""The page of the jobs: `python -m bench.jobs.page` runs every job in every system and writes docs/jobs.md.

What the page says about works and lines is between two marks; the prose around them is written by hand.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from bench.jobs.job import Job
from bench.jobs.list_of_jobs import GROUPS
from bench.jobs.play import SYSTEMS, Found, play

PAGE = Path(__file__).parents[2] / "docs" / "jobs.md"
BEGIN, END = "<!-- begin: written by bench.jobs.page -->", "<!-- end -->"

Results = Mapping[str, Sequence[Found]]
"""The result of each job, in the order of the systems."""


def run_all() -> Results:
    """Every job in every system."""
    return {job.key: [play(job, system) for system in SYSTEMS] for jobs in GROUPS.values() for job in jobs}


def write(results: Results) -> str:
    """The part of the page between the marks."""
    return "\n".join([BEGIN, *_summary(results), *_tables(results), *_reasons(results), END])


def current() -> str:
    """What stands between the marks now."""
    text = PAGE.read_text()
    return text[text.index(BEGIN) : text.index(END) + len(END)]


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def _head(first: str) -> list[str]:
    return [_row([first, *(system.NAME for system in SYSTEMS)]), "|---|" + "---|" * len(SYSTEMS)]


def _summary(results: Results) -> Iterator[str]:
    yield ""
    yield from _head("")
    columns = list(zip(*results.values(), strict=True))
    done = [sum(found.lines is not None for found in column) for column in columns]
    yield _row(["jobs that work", *(f"{count} of {len(results)}" for count in done)])
    by_all = [row for row in results.values() if all(found.lines is not None for found in row)]
    lines = [sum(row[at].lines or 0 for row in by_all) for at in range(len(SYSTEMS))]
    yield _row([f"lines of the {len(by_all)} jobs that work in all three", *lines])


def _tables(results: Results) -> Iterator[str]:
    for group, jobs in GROUPS.items():
        yield from ("", f"## {group}", "")
        yield from _head("lines for")
        for job in jobs:
            cells = ["no" if found.lines is None else found.lines for found in results[job.key]]
            yield _row([job.title, *cells])


def _reasons(results: Results) -> Iterator[str]:
    yield from ("", "## Why not", "", "| system | job | reason |", "|---|---|---|")
    for at, system in enumerate(SYSTEMS):
        for job in _jobs():
            found = results[job.key][at]
            if found.lines is None:
                yield _row([system.NAME, job.title, found.reason])
    yield ""


def _jobs() -> list[Job]:
    return [job for jobs in GROUPS.values() for job in jobs]


def main() -> int:
    """Write the page."""
    written = write(run_all())
    PAGE.write_text(PAGE.read_text().replace(current(), written))
    names = ("duckdb", "duckdb-extension-ducklake", "deltalake")
    print(f"wrote {PAGE.name} with", ", ".join(f"{name} {version(name)}" for name in names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
