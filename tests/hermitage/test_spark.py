"""R on Spark prevents every anomaly, in Hermitage's own order of the steps.

The engines share the transaction's code, of which the local engine tries many more orders; what is tried
here is that Spark tells what it read, and reads what the transaction wrote.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.hermitage.cases import ACROSS, BY_NAME, LAYOUTS, find_broken_promise
from tests.hermitage.player import play
from tests.hermitage.scripts.anomalies import SCRIPTS
from tests.hermitage.scripts.notation import Layout
from tests.hermitage.scripts.script import Script
from tests.hermitage.systems.columns import ON_SPARK_SECONDS, spark_lake
from tests.hermitage.systems.ours import WAYS, by_hand, by_run
from tests.hermitage.verdict import complaint, complaint_across

WRITE_AFTER_READ = [script for script in SCRIPTS if script.name in {"p4", "g2", "g2-item"}]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_steps_on_spark_by_lake_run_are_explained_by_a_serial_order(
    quick: Any, tmp_path: Path, script: Script
) -> None:
    outcome = play(spark_lake(quick, tmp_path, Layout(), by_run), script, script.order, ON_SPARK_SECONDS)
    assert not complaint(script, outcome), str(outcome)
    assert not find_broken_promise(script, outcome, again=True), str(outcome)


@pytest.mark.parametrize("script", WRITE_AFTER_READ, ids=lambda script: script.name)
def test_steps_on_spark_by_hand_are_explained_by_a_serial_order(
    quick: Any, tmp_path: Path, script: Script
) -> None:
    outcome = play(spark_lake(quick, tmp_path, Layout(), by_hand), script, script.order, ON_SPARK_SECONDS)
    assert not complaint(script, outcome), str(outcome)
    assert not find_broken_promise(script, outcome, again=False), str(outcome)


@pytest.mark.parametrize("name", ["g0", "g2-item", "g-single-write-1"])
def test_steps_on_two_tables_on_spark_are_explained_by_a_serial_order(
    quick: Any, tmp_path: Path, name: str
) -> None:
    script, layout = BY_NAME[name], LAYOUTS[ACROSS]
    place = spark_lake(quick, tmp_path, layout, WAYS["R,CT, lake.run"])
    outcome = play(place, script, script.order, ON_SPARK_SECONDS)
    assert not complaint_across(script, outcome, layout), str(outcome)
    assert not find_broken_promise(script, outcome, again=True), str(outcome)
