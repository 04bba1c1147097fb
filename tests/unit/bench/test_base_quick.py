"""The benchmark's short form runs whole and tells everything. Whether it is fast is not judged here."""

import json
from pathlib import Path

import pytest

from bench import base
from bench.measures.report import Result
from bench.systems.local import DURABLE, OURS

CASES = [
    "read 1 row",
    "update 1 row",
    "insert 1 row",
    "open 5,000 files",
    "append 20,000 rows",
    "scan 20,000 rows",
    "read 1 row of Iceberg",
    "update 1 row of Iceberg",
    "insert 1 row of Iceberg",
]
PEERS = ({"deltalake"}, {"deltalake-anew"}, {"pyiceberg"})


@pytest.mark.long
def test_quick_run_reports_every_case_as_text_json_and_plot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base.main(["--quick", "--only", "local", "--out", str(tmp_path)])

    text = capsys.readouterr().out
    written = {path.suffix: path for path in tmp_path.iterdir()}
    results = json.loads(written[".json"].read_text())["results"]
    assert list(dict.fromkeys(result["case"] for result in results)) == CASES
    assert {r["metric"] for r in results if r["case"].startswith("open")} == {"seconds", "megabytes"}
    for result in results:
        peers = set(result["values"]) - {OURS.name}
        assert any(peers >= some for some in PEERS)
        assert set(result["ratios"]) == peers
        assert len({len(values) for values in result["values"].values()}) == 1
        assert all(value > 0 for values in result["values"].values() for value in values)
        assert set(result["targets"]) >= peers
        assert result["case"] in text
    assert DURABLE.name in text
    assert written[".txt"].read_text().strip() in text
    assert written[".png"].read_bytes().startswith(b"\x89PNG")


def test_only_one_case_is_run_when_one_is_asked_for(tmp_path: Path) -> None:
    base.main(["--quick", "--only", "insert", "--out", str(tmp_path)])

    (report,) = tmp_path.glob("*.json")
    assert {result["case"] for result in json.loads(report.read_text())["results"]} == {"insert 1 row"}


def test_as_many_rounds_are_run_as_are_asked_for(tmp_path: Path) -> None:
    base.main(["--quick", "--only", "read", "--rounds", "5", "--out", str(tmp_path)])

    (report,) = tmp_path.glob("*.json")
    (result,) = json.loads(report.read_text())["results"]
    assert {len(values) for values in result["values"].values()} == {5}


def test_unknown_case_is_refused_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        base.main(["--only", "reed"])

    assert "reed is not among local, spark, read, update" in capsys.readouterr().err


def test_ratio_is_told_with_the_target_that_it_misses() -> None:
    report = base.Report("t", "ours")
    report.results.append(
        Result("c", "p", "seconds", {"ours": [2.0] * 3, "peer": [1.0] * 3, "other": [1.0] * 3}, {"peer": 0.5})
    )

    peer, other = (line.split() for line in report.text().splitlines()[-2:])

    assert peer[:5] == ["c", "p", "peer", "1000", "ms"]
    assert "2.00" in peer
    assert peer[-3:] == ["<=", "0.5:", "missed"]
    assert "2.00" in other
    assert "missed" not in other


def test_long_times_are_told_in_seconds() -> None:
    report = base.Report("t", "ours")
    report.results.append(Result("c", "p", "seconds", {"ours": [9.5], "peer": [12.25]}))

    assert "9.5 s" in report.text()
    assert "12.25 s" in report.text()
