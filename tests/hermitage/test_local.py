"""R on the local engine prevents every anomaly on one table, R with CT every anomaly of those who write on
several, I every anomaly, but for write skew with snapshot: in some hundred orders here, in all of them by
`make hermitage-all`.

Nothing here says that an anomaly occurs without R; the table that `make hermitage` prints shows it.
"""

from contextlib import nullcontext

import pytest

from tests.hermitage.cases import ACROSS, BY_NAME, find_broken_promise, judge
from tests.hermitage.outcome import End, Ended, Outcome
from tests.hermitage.player import play
from tests.hermitage.scripts.anomalies import ACROSS_TABLES, SCRIPTS
from tests.hermitage.scripts.notation import Layout
from tests.hermitage.scripts.orders import sampled_orders, telling_orders
from tests.hermitage.scripts.script import FIRST_ROWS, Script
from tests.hermitage.systems.ours import WAYS, WITH_I, MemoryLakes, by_hand, queueing

SAMPLE = sampled_orders(SCRIPTS, 300)
SAMPLE_ACROSS = sampled_orders(ACROSS_TABLES, 120)
SAMPLE_ISOLATED = sampled_orders(SCRIPTS, 40)

every_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
both_ways = pytest.mark.parametrize("way", ["R", "R, lake.run"])


def one_half(sample: list[tuple[Script, str]], script: Script, way: str) -> list[str]:
    """The orders of a script: one half is played by hand, the other by `lake.run`."""
    return [order for owner, order in sample if owner is script]["lake.run" in way :: 2]


@pytest.mark.sampled(3)
@every_script
@both_ways
def test_steps_in_many_orders_with_r_are_explained_by_a_serial_order(script: Script, way: str) -> None:
    for order in one_half(SAMPLE, script, way):
        _, wrong, _ = judge((script.name, order, way, "apart"))
        assert not wrong


@pytest.mark.sampled(3)
@every_script
@both_ways
@pytest.mark.parametrize("layout", ["together", "together, iceberg", "apart, iceberg"])
def test_rows_in_one_file_and_apart_with_r_are_explained_by_a_serial_order(
    script: Script, way: str, layout: str
) -> None:
    _, wrong, _ = judge((script.name, script.order, way, layout))
    assert not wrong


@pytest.mark.sampled(3)
@every_script
@pytest.mark.parametrize("way", [way for way in WAYS if way != "NONE"])
def test_rows_of_one_file_with_vectors_are_explained_by_an_order(script: Script, way: str) -> None:
    """Both rows lie in one file, and changes of one do not conflict with changes of the other."""
    for order in dict.fromkeys([script.order, *telling_orders(script, 2)]):
        _, wrong, _ = judge((script.name, order, way, "together, vectors"))
        assert not wrong


@every_script
@both_ways
def test_transactions_that_wait_for_each_other_are_explained_by_a_serial_order(
    script: Script, way: str
) -> None:
    _, wrong, _ = judge((script.name, script.order, way, "apart"), queued=True)
    assert not wrong


@pytest.mark.sampled(3)
@pytest.mark.parametrize("script", ACROSS_TABLES, ids=lambda script: f"{script.name}-MT")
@pytest.mark.parametrize("way", ["R,CT", "R,CT, lake.run"])
def test_writers_of_two_tables_in_many_orders_are_explained_by_a_serial_order(
    script: Script, way: str
) -> None:
    for order in one_half(SAMPLE_ACROSS, script, way):
        _, wrong, _ = judge((script.name, order, way, ACROSS))
        assert not wrong


@pytest.mark.sampled(3)
@pytest.mark.parametrize("script", ACROSS_TABLES, ids=lambda script: f"{script.name}-MT")
@pytest.mark.parametrize("way", ["CT", "R,CT, lake.run, verbs"])
def test_writers_of_two_tables_without_recovery_or_by_verbs_are_explained_by_a_serial_order(
    script: Script, way: str
) -> None:
    for order in telling_orders(script, 2):
        _, wrong, _ = judge((script.name, order, way, ACROSS))
        assert not wrong


@pytest.mark.sampled(3)
@every_script
@pytest.mark.parametrize("way", ["I", "R,CT,I", "R,CT,I, lake.run", "R,CT,I snapshot"])
def test_steps_in_many_orders_with_isolation_are_explained_by_an_order(script: Script, way: str) -> None:
    for order in [order for owner, order in SAMPLE_ISOLATED if owner is script]:
        _, wrong, _ = judge((script.name, order, way, "apart"))
        assert not wrong


@pytest.mark.sampled(3)
@pytest.mark.parametrize("script", ACROSS_TABLES, ids=lambda script: f"{script.name}-MT")
@pytest.mark.parametrize("way", ["R,CT,I", "R,CT,I snapshot"])
def test_two_tables_in_many_orders_with_isolation_are_explained_by_an_order(script: Script, way: str) -> None:
    for order in [order for owner, order in SAMPLE_ACROSS if owner is script]:
        _, wrong, _ = judge((script.name, order, way, ACROSS))
        assert not wrong


@pytest.mark.sampled(3)
@pytest.mark.parametrize("script", ACROSS_TABLES, ids=lambda script: f"{script.name}-MT")
@pytest.mark.parametrize("way", [way for way in WITH_I if way not in ("R,CT,I", "R,CT,I snapshot")])
def test_two_tables_with_isolation_in_other_ways_are_explained_by_an_order(script: Script, way: str) -> None:
    for order in telling_orders(script, 2):
        _, wrong, _ = judge((script.name, order, way, ACROSS))
        assert not wrong


@pytest.mark.sampled(3)
@pytest.mark.parametrize("script", ACROSS_TABLES, ids=lambda script: f"{script.name}-MT")
@pytest.mark.parametrize("way", ["R,CT", "R,CT,I", "R,CT,I snapshot"])
@pytest.mark.parametrize("layout", ["across, iceberg", "across, mixed"])
def test_two_tables_of_other_formats_are_explained_by_an_order(script: Script, way: str, layout: str) -> None:
    for order in telling_orders(script, 2):
        _, wrong, _ = judge((script.name, order, way, layout))
        assert not wrong


def test_queueing_transactions_take_places_where_others_take_none() -> None:
    g0, one_after_the_other = BY_NAME["g0"], "111222"
    places = []
    for context in (queueing(), nullcontext()):
        lakes = MemoryLakes(Layout())
        with context:
            place = lakes.place(by_hand)
            play(place, g0, one_after_the_other)
        keys = [meta.key for meta in place.open_lake()._store.list("")]
        places.append(sum("/markers/" in key for key in keys))
    assert places == [2, 0]


@every_script
def test_typed_verbs_with_r_are_explained_by_a_serial_order(script: Script) -> None:
    for order in telling_orders(script, 3):
        _, wrong, _ = judge((script.name, order, "R, lake.run, verbs", "apart"))
        assert not wrong


@every_script
@both_ways
def test_threads_that_share_a_lake_are_explained_by_a_serial_order(script: Script, way: str) -> None:
    _, wrong, _ = judge((script.name, script.order, way, "apart"), shared=True)
    assert not wrong


@pytest.mark.parametrize(
    ("refused", "again", "broken"),
    [("T1", False, False), ("T1", True, True), ("T2", False, True), ("T3", False, True)],
    ids=["reads_and_writes", "would_run_again", "writes_alone", "reads_alone"],
)
def test_refusal_breaks_a_promise_unless_something_read_can_be_gone(
    refused: str, again: bool, broken: bool
) -> None:
    script = next(script for script in SCRIPTS if script.name == "g2-two-edges")
    ends = {name: Ended(End.REFUSED if name == refused else End.COMMITTED, (), 0, 0) for name in script.ends}
    found = find_broken_promise(script, Outcome(ends, FIRST_ROWS), again)
    assert bool(found) == broken
