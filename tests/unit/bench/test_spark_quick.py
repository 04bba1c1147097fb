"""Cases of each kind in their short form on Spark: every system answers alike. Speed is not judged here."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench import base, large
from bench.cases import spark as spark_cases
from bench.stores.places import running_places
from bench.systems.spark import Sparks

ONE_ROW = ["spark: read 1 row"]
HEAVY = ["spark: append 20,000 rows"]
ICEBERG = [f"spark: {case} 1 row of Iceberg" for case in ("read", "update", "insert")]
CASES = "spark-read,spark-append,spark-iceberg"
PEERS = {"spark-delta", "spark-iceberg"}


@pytest.mark.long
def test_quick_run_on_spark_compares_every_system_in_its_cases(spark: Any, tmp_path: Path) -> None:
    base.main(["--quick", "--only", CASES, "--out", str(tmp_path)])

    (report,) = tmp_path.glob("*.json")
    results = json.loads(report.read_text())["results"]
    assert [result["case"] for result in results] == ONE_ROW + HEAVY + ICEBERG
    for result in results:
        assert set(result["ratios"]) >= (PEERS if result["case"] not in ICEBERG else {"spark-iceberg"})
        assert set(result["targets"]) & PEERS
        assert all(value > 0 for values in result["values"].values() for value in values)
    by_case = {result["case"]: set(result["values"]) for result in results}
    assert all("spark-job" in by_case[case] for case in ONE_ROW)
    assert by_case[HEAVY[-1]] >= {"spark-parquet", "spark-noop"}
    assert "bench_" not in str(spark.sql("SHOW DATABASES").collect()), "it cleans up"


def test_systems_that_do_not_agree_end_the_run(spark: Any) -> None:
    with running_places(["directory"]) as (place,), Sparks() as sparks:
        at = sparks.at(place)
        for system in at.systems.values():
            system.create("t", lambda session: session.range(3))
        spark_cases.agree(at.systems, "SELECT count(*) FROM t")
        at.iceberg.change("INSERT INTO t VALUES (9)")

        with pytest.raises(spark_cases.WrongAnswer, match=r"spark-iceberg: \[\(4,\)\]"):
            spark_cases.agree(at.systems, "SELECT count(*) FROM t")


def test_large_run_tells_time_and_memory_of_each_statement(spark: Any, tmp_path: Path) -> None:
    large.main(["--rows", "5000", "--out", str(tmp_path)])

    (report,) = tmp_path.glob("*.json")
    results = json.loads(report.read_text())["results"]
    cases = ["append 5,000", "update 50, one range", "update 50, scattered", "scan 5,000"]
    assert [r["case"] for r in results if r["metric"] == "seconds"] == cases
    memory = [r["values"] for r in results if r["metric"] == "megabytes"]
    assert all(values["driver JVM"][0] > 100 and values["Python"][0] > 20 for values in memory)
    assert not list(tmp_path.glob("*.png")), "nothing was compared"


def test_quantities_are_those_of_the_rows(spark: Any) -> None:
    (found,) = spark_cases.lines(spark, 1234).selectExpr("sum(quantity)").collect()

    assert large.quantities(1234) == found[0]
