"""Mistakes in statements on Spark: the place in the user's text, a suggestion, and nothing of ours."""

import logging
from typing import Any

import pytest

import lakevilla as lv
from tests.lake.sql.misspelt import COLUMNS, SETUP, check_column, refuse_half_rows


@pytest.fixture(scope="module")
def lake(quick: Any, tmp_path_factory: pytest.TempPathFactory) -> lv.Lake:
    lake = lv.Lake(tmp_path_factory.mktemp("lake"), spark=quick)
    for text in SETUP:
        lake.sql(text)
    return lake


@pytest.mark.parametrize("text", COLUMNS)
def test_misspelt_column_is_shown_in_every_clause_on_spark(lake: lv.Lake, text: str) -> None:
    check_column(lake, text)


def test_source_without_a_column_of_the_star_names_both_on_spark(lake: lv.Lake) -> None:
    refuse_half_rows(lake)


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


UNSEEN = [
    "UPDATE {t} SET a = nope",
    "UPDATE {t} SET a = nope WHERE id = 99",
    "UPDATE {t} SET a = id WHERE id = 99 AND nope = 1",
    "UPDATE {t} SET nope = 1 WHERE id = 99",
    "UPDATE {t} SET a = array(1) WHERE id = 99",
    "UPDATE {t} SET a = (SELECT nope FROM u) WHERE id = 99",
    "DELETE FROM {t} WHERE nope = 1",
    "DELETE FROM {t} WHERE id = 99 AND id IN (SELECT nope FROM u)",
    "MERGE INTO {t} t USING u s ON t.nope = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (1)",
    "MERGE INTO {t} t USING u s ON t.id = s.id AND t.id = 99 WHEN MATCHED THEN UPDATE SET a = nope",
    "MERGE INTO {t} t USING u s ON t.id = s.id WHEN MATCHED AND nope = 1 THEN DELETE",
    "MERGE INTO {t} t USING u s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nope = s.a",
    "MERGE INTO {t} t USING u s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND nope = 1 THEN DELETE",
    "MERGE INTO {t} t USING u s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET a = nope",
    "MERGE INTO {t} t USING (SELECT * FROM u WHERE id < 0) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET a = array(1)",
]


def refuse_unseen_mistakes(session: Any, folder: Any) -> None:
    """Each statement is refused on a table with rows, without rows, and without files."""
    lake = lv.Lake(folder, spark=session)
    for name in ("full", "empty", "gone"):
        lake.create(name, "id INT, a INT", format="iceberg" if name == "gone" else "delta")
    lake.create("u", "id INT, a INT")
    for name in ("full", "gone", "u"):
        lake.append(name, [{"id": 1, "a": 1}, {"id": 2, "a": 2}])
    lake.sql("DELETE FROM gone")
    before = {name: lake.history(name)[0].version for name in ("full", "empty", "gone")}
    for text in UNSEEN:
        for name in before:
            with pytest.raises(lv.InvalidInput, match="nope" if "nope" in text else "cannot be stored"):
                lake.sql(text.format(t=name))
    assert {name: lake.history(name)[0].version for name in before} == before


def test_mistake_is_found_where_no_file_is_read(quick: Any, tmp_path: Any) -> None:
    refuse_unseen_mistakes(quick, tmp_path)
