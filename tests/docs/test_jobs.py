"""The page of everyday jobs says what the programs in bench/jobs do."""

from dataclasses import replace

import pytest

from bench.jobs import page, with_deltalake, with_lakevilla
from bench.jobs.job import Job, lines_of
from bench.jobs.list_of_jobs import JOBS
from bench.jobs.play import SYSTEMS, Found, Wrong, play

BY_KEY = {job.key: job for job in JOBS}


def _row(job: Job) -> list[str]:
    """The cells of a job on the page, after its title."""
    (line,) = [line for line in page.current().splitlines() if line.startswith(f"| {job.title} |")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_sums_and_reasons_of_the_page_are_those_of_its_rows() -> None:
    assert len(BY_KEY) == len(JOBS) == 40
    read = {
        job.key: [
            Found(None if cell == "no" else int(cell), system.CANNOT.get(job.key, ""))
            for cell, system in zip(_row(job), SYSTEMS, strict=True)
        ]
        for job in JOBS
    }
    assert page.write(read) == page.current()


def test_lines_of_a_job_are_those_of_its_function() -> None:
    assert lines_of(with_lakevilla.update) == 1
    assert lines_of(with_lakevilla.two_tables) == 3  # without the other client's turn


def test_job_with_another_result_is_reported() -> None:
    wrong = replace(BY_KEY["update"], tables={"people": []})
    with pytest.raises(Wrong, match="people has"):
        play(wrong, with_deltalake)


def test_job_that_works_but_is_listed_as_impossible_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(with_deltalake, "CANNOT", {"update": "because"})
    with pytest.raises(Wrong, match="it works"):
        play(BY_KEY["update"], with_deltalake)


@pytest.mark.long
@pytest.mark.parametrize("key", BY_KEY)
@pytest.mark.filterwarnings("ignore:pandas only supports SQLAlchemy")
def test_job_works_as_the_page_says(key: str) -> None:
    """Run `python -m bench.jobs.page` when a system has learned something."""
    job = BY_KEY[key]
    found = [play(job, system) for system in SYSTEMS]
    assert ["no" if each.lines is None else str(each.lines) for each in found] == _row(job)
