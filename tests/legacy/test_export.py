"""Instants of the lake for engines that know nothing of us: their texts run, and give the rows of then."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_avro
import duckdb_extension_delta
import duckdb_extension_iceberg
import pytest
import sqlglot
from pyspark.sql import SparkSession

import lakevilla as lv
from bench.spark import sessions
from bench.stores.seaweed import S3Server
from tests.legacy.test_delta_clients import sorted_rows

OPTIONS = {"fsync": "false"}
NAMES = {"accounts": "accounts", "sales.o'rders": "sales_o'rders", "a b ü`": "a b ü`"}
"""Names of tables, and what they are called where a name has one part."""


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    """Tables that were all changed since the tag was given; one is dropped."""
    lake = lv.Lake(tmp_path / "the lake", engine="local", storage_options=OPTIONS)
    return _filled(lake)


def _filled(lake: lv.Lake) -> lv.Lake:
    for number, name in enumerate(NAMES):
        lake.create(name, "id BIGINT, v STRING")
        lake.append(name, [{"id": number, "v": name}])
    lake.tag("then")
    for name in NAMES:
        lake.update(name, {"v": "'later'"})
    lake.drop("accounts")
    return lake


def _expected() -> list[list[dict[str, Any]]]:
    return [[{"id": number, "v": name}] for number, name in enumerate(NAMES)]


def test_value_names_tables_places_and_versions(lake: lv.Lake, tmp_path: Path) -> None:
    then = lake.export(at="then")
    assert json.loads(then.json()) == then.as_dict()
    told = then.as_dict()
    assert (told["lake"], told["seq"], told["unknown"]) == (lake.url, lake.tags()["then"], [])
    assert told["time"] == lake.at(tag="then").time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert [(t["name"], t["version"]) for t in told["tables"]] == [(name, 1) for name in sorted(NAMES)]
    assert told["tables"][1]["url"] == f"{lake.url}/accounts"
    assert lake.at(tag="then").export() == then
    assert [(t.name, t.version) for t in lake.export().tables] == [("a b ü`", 2), ("sales.o'rders", 2)]


@pytest.fixture
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("*.duckdb_extension")
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        connection.execute(f"LOAD '{extension}'")
        yield connection


def test_duckdb_reads_the_instant(lake: lv.Lake, duck: duckdb.DuckDBPyConnection) -> None:
    duck.execute(lake.export(at="then").sql("duckdb"))
    found = [duck.sql(f"SELECT * FROM {place}").to_arrow_table() for place in _duck_places()]
    assert [sorted_rows(rows) for rows in found] == _expected()
    duck.execute(lake.export().sql("duckdb"))
    assert duck.sql('SELECT v FROM "sales"."o\'rders"').fetchall() == [("later",)]


def _duck_places() -> list[str]:
    return [".".join(f'"{part}"' for part in name.split(".")) for name in NAMES]


@pytest.fixture
def iceberg_lake(tmp_path: Path) -> lv.Lake:
    """The same with Iceberg tables."""
    path = tmp_path / "the lake"
    return _filled(lv.Lake(path, engine="local", storage_options=OPTIONS, default_format="iceberg"))


def test_duckdb_reads_the_instant_of_iceberg_tables(
    iceberg_lake: lv.Lake, duck: duckdb.DuckDBPyConnection
) -> None:
    for package in (duckdb_extension_avro, duckdb_extension_iceberg):
        (extension,) = Path(package.__file__).parent.rglob("*.duckdb_extension")
        duck.execute(f"LOAD '{extension}'")
    duck.execute(iceberg_lake.export(at="then").sql("duckdb"))
    found = [duck.sql(f"SELECT * FROM {place}").to_arrow_table() for place in _duck_places()]
    assert [sorted_rows(rows) for rows in found] == _expected()


def test_spark_with_iceberg_reads_the_instant(
    iceberg_lake: lv.Lake, spark: SparkSession, tmp_path: Path
) -> None:
    session = sessions.with_iceberg(spark, str(tmp_path / "elsewhere"))
    _run_in_spark(session, iceberg_lake.export(at="then"))
    found = [session.sql(f"SELECT * FROM `{n.replace('`', '``')}`").toArrow() for n in NAMES.values()]
    assert [sorted_rows(rows) for rows in found] == _expected()


def test_trino_is_told_no_version_of_an_iceberg_table(iceberg_lake: lv.Lake) -> None:
    with pytest.raises(lv.InvalidInput, match=r"cannot write SQL of 'trino' for .* of format 'iceberg'"):
        iceberg_lake.export().sql("trino")


def test_spark_with_delta_reads_the_instant(lake: lv.Lake, spark_delta: SparkSession) -> None:
    lake.sql("CREATE VIEW sales.`vi``ew` (one, v) AS SELECT id, `o'rders`.v FROM sales.`o'rders`")
    lake.sql("CREATE VIEW twice AS SELECT a.one, b.v FROM sales.`vi``ew` a JOIN sales.`vi``ew` b USING (one)")
    _run_in_spark(spark_delta, lake.export())
    assert spark_delta.sql("SELECT v, one FROM twice").collect() == [("later", 1)]
    _run_in_spark(spark_delta, lake.export(at="then"))
    found = [spark_delta.sql(f"SELECT * FROM `{n.replace('`', '``')}`").toArrow() for n in NAMES.values()]
    assert [sorted_rows(rows) for rows in found] == _expected()


def test_spark_with_delta_reads_the_instant_of_a_lake_on_s3(spark: SparkSession, s3: S3Server) -> None:
    lake = _filled(lv.Lake(s3.new_url(), engine="local", storage_options=s3.storage_options))
    session = sessions.with_delta(spark, sessions.s3a(s3.storage_options))
    _run_in_spark(session, lake.export(at="then"))
    assert sorted_rows(session.sql("SELECT * FROM accounts").toArrow()) == _expected()[0]


def _run_in_spark(session: SparkSession, cut: lv.Export) -> None:
    """Spark takes one statement at a time."""
    for statement in cut.sql("spark").split(";\n"):
        text = "\n".join(line for line in statement.splitlines() if not line.startswith("--"))
        if text:
            session.sql(text)


def test_text_for_trino_parses_and_names_the_version(lake: lv.Lake) -> None:
    text = lake.export(at="then").sql("trino", catalog="hive", schema="raw")
    schema, *views = [tree for tree in sqlglot.parse(text, dialect="trino") if tree is not None]
    assert schema.sql(dialect="trino", comments=False) == 'CREATE SCHEMA IF NOT EXISTS "hive"."lake"'
    assert views[1].sql(dialect="trino") == (
        'CREATE OR REPLACE VIEW "hive"."lake"."accounts" AS '
        'SELECT * FROM "hive"."raw"."accounts" FOR VERSION AS OF 1'
    )
    assert '"hive"."sales"."o\'rders" FOR VERSION AS OF 1' in views[2].sql(dialect="trino")


def test_text_for_an_unknown_engine_is_refused_with_those_that_there_are(lake: lv.Lake) -> None:
    with pytest.raises(
        lv.InvalidInput, match="unknown engine 'oracle'; available: 'duckdb', 'spark', 'trino'"
    ):
        lake.export().sql("oracle")
