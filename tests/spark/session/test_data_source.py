"""`spark.read.format("lakevilla")`, by Spark's Python data source API."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

import lakevilla as lv
from lakevilla.spark_source import LakeVillaSource


@pytest.fixture
def session(spark: Any) -> Any:
    session = spark.newSession()
    session.dataSource.register(LakeVillaSource)
    return session


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    lake = lv.Lake(tmp_path / "lake", engine="local")
    lake.create(
        "orders", "id BIGINT, price DECIMAL(9, 2), day DATE, tags ARRAY<STRING>", partition_by=["day"]
    )
    lake.sql("INSERT INTO orders VALUES (1, 1.5, DATE'2026-01-01', array('a')), (2, NULL, NULL, NULL)")
    return lake


def read(session: Any, lake: lv.Lake, **options: str) -> Any:
    return session.read.format("lakevilla").options(**options).load(lake.url)


def test_table_is_read_by_files_without_deleted_rows(session: Any, lake: lv.Lake) -> None:
    lake.append("orders", [{"id": 3}])
    lake.sql("DELETE FROM orders WHERE id = 2")
    frame = read(session, lake, table="orders").orderBy("id")
    assert [tuple(row)[:2] for row in frame.collect()] == [(1, Decimal("1.50")), (3, None)]
    assert frame.where("day = DATE'2026-01-01'").select("tags").collect()[0].tags == ["a"]
    lake.sql("DELETE FROM orders")
    assert read(session, lake, table="ORDERS").count() == 0


def test_instant_is_chosen_by_an_option(session: Any, lake: lv.Lake) -> None:
    lake.tag("first")
    lake.append("orders", [{"id": 3}])
    seq = str(lake.history()[0].seq)
    counts = [read(session, lake, table="orders", at=at).count() for at in ("first", seq)]
    assert counts == [2, 3]


def test_options_that_say_nothing_are_an_error_with_our_sentence(session: Any, lake: lv.Lake) -> None:
    wrong: list[tuple[dict[str, str], str]] = [
        ({}, "needs the lake's root and a table"),
        ({"table": "nothing"}, "unknown table 'nothing'"),
        ({"table": "orders", "at": "never"}, "never"),
        ({"table": "orders", "tabel": "x"}, "tabel"),
    ]
    for options, sentence in wrong:
        with pytest.raises(AnalysisException, match=sentence):
            read(session, lake, **options).collect()
    with pytest.raises((PySparkException, Py4JJavaError)):
        session.range(1).write.format("lakevilla").option("table", "orders").mode("append").save(lake.url)
    assert lake.read("orders").count() == 2
