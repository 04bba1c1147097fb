"""Spark's exceptions in our words, where no session is needed to see them."""

import pytest
from pyspark.errors import PythonException

import lakevilla as lv
from lakevilla.engines.spark.failures import explained


def test_executors_without_lakevilla_are_told_to_install_it() -> None:
    with pytest.raises(lv.InvalidInput, match="executors has no lakevilla: install it there"), explained():
        raise PythonException("Traceback\nModuleNotFoundError: No module named 'lakevilla'")


def test_failure_of_the_users_own_code_comes_as_it_is() -> None:
    with pytest.raises(PythonException, match="No module named 'theirs'"), explained():
        raise PythonException("Traceback\nModuleNotFoundError: No module named 'theirs'")


def test_what_a_task_refused_comes_in_its_own_words() -> None:
    trace = "Traceback\n  File x\nlakevilla.errors.Unsupported: f has no field ids\n"
    with pytest.raises(lv.Unsupported, match=r"^f has no field ids$"), explained():
        raise PythonException(trace)
