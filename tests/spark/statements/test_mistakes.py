"""Mistakes in statements on Spark: the place in the user's text, a suggestion, and nothing of ours."""

import logging
from typing import Any

import pytest

import lakevilla as lv
from tests.lake.sql.misspelt import COLUMNS, SETUP, check_column


@pytest.fixture(scope="module")
def lake(quick: Any, tmp_path_factory: pytest.TempPathFactory) -> lv.Lake:
    lake = lv.Lake(tmp_path_factory.mktemp("lake"), spark=quick)
    for text in SETUP:
        lake.sql(text)
    return lake


@pytest.mark.parametrize("text", COLUMNS)
def test_misspelt_column_is_shown_in_every_clause_on_spark(lake: lv.Lake, text: str) -> None:
    check_column(lake, text)


MISTAKES = [
    ("SELECT lenght(name) FROM accounts", "lenght", "did you mean 'length'?"),
    ("SELECT CSAT(name AS INT) FROM accounts", "CSAT", "did you mean 'cast'?"),
    ("SELECT   upper( id + array(1) ) FROM accounts", "id + array(1)", "data type mismatch"),
    ("SELECT id FROM acounts o", "acounts", "did you mean 'accounts'?"),
]


@pytest.mark.parametrize(("text", "place", "words"), MISTAKES, ids=[text for text, _, _ in MISTAKES])
def test_mistake_that_spark_finds_is_shown_at_its_place(
    lake: lv.Lake, text: str, place: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(lv.LakeVillaError) as error, caplog.at_level(logging.DEBUG, "SQLQueryContextLogger"):
        lake.sql(text)
    found = error.value.position
    assert words in error.value.message
    assert found is not None
    assert text[found.start : found.end] == place
    for internal in ("lakevilla_", "SQLSTATE", "sqlglot"):
        assert internal not in str(error.value)
    # PySpark would log the plan, with names of ours.
    assert not [record for record in caplog.records if record.name == "SQLQueryContextLogger"]
