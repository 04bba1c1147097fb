"""The comparison of changed rows in a short form: all systems give the known answers, however fast."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench import rows
from bench.cases.spark import WrongAnswer
from bench.systems.changes import Deltalake

STEPS = (rows.ONE, rows.SCATTERED, rows.MERGE, rows.SCANS)


def results(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    (report,) = folder.glob("*.json")
    found = json.loads(report.read_text())["results"]
    return {(result["case"], result["metric"]): result for result in found}


def test_local_run_compares_vectors_and_copy_on_write_in_each_step(tmp_path: Path) -> None:
    rows.main(["--rows", "3000", "--rounds", "2", "--only", "local", "--out", str(tmp_path)])
    found = results(tmp_path)
    for step in STEPS:
        for metric in ("seconds", "processor seconds"):
            assert set(found[f"local: {step}, vectors", metric]["ratios"]) == {"deltalake"}
            rewriting = found[f"local: {step}, copy on write", metric]
            assert rewriting["targets"] == {"deltalake": 1.0}
            assert all(len(values) == 2 for values in rewriting["values"].values())


def test_system_that_loses_a_change_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Deltalake, "update", lambda *_: None)
    with pytest.raises(WrongAnswer, match="deltalake gives"):
        rows.main(["--rows", "300", "--rounds", "1", "--only", "local", "--out", str(tmp_path)])


@pytest.mark.long
def test_run_on_spark_compares_with_both_peers(spark: Any, tmp_path: Path) -> None:
    rows.main(["--rows", "3000", "--rounds", "1", "--only", "spark", "--out", str(tmp_path)])
    found = results(tmp_path)
    peers = {"spark-delta-vectors", "spark-iceberg-deletes"}
    assert all(set(found[f"spark: {step}, vectors", "seconds"]["ratios"]) == peers for step in STEPS)
    assert "bench_rows" not in str(spark.sql("SHOW DATABASES").collect()), "it cleans up"
