"""The page of everyday jobs says what the programs in bench/jobs do."""

import warnings
from dataclasses import replace

import pytest

from bench.jobs import page, with_deltalake, with_lakevilla
from bench.jobs.job import lines_of
from bench.jobs.list_of_jobs import JOBS
from bench.jobs.play import SYSTEMS, Wrong, play

BY_KEY = {job.key: job for job in JOBS}


def test_page_lists_forty_jobs_and_every_reason() -> None:
    text = page.current()
    assert len(BY_KEY) == len(JOBS) == 40
    for job in JOBS:
        assert f"| {job.title} |" in text
    for system in SYSTEMS:
        assert set(system.CANNOT) <= set(BY_KEY)
        for key, reason in system.CANNOT.items():
            assert f"| {system.NAME} | {BY_KEY[key].title} | {reason} |" in text


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
def test_page_says_what_every_job_does_in_every_system() -> None:
    """Run `python -m bench.jobs.page` when a system has learned something."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # pandas, which has not tried these connections
        assert page.write(page.run_all()) == page.current()
