"""The table says what was seen."""

from collections.abc import Callable

import pytest

from tests.hermitage.cases import ACROSS, BY_NAME, LAYOUTS
from tests.hermitage.player import Place, Program
from tests.hermitage.systems.columns import System
from tests.hermitage.systems.fakes import Dirty, FirstCommitterWins, KeepsStaleReads, Refused
from tests.hermitage.table import Cell, measure, narrow, render


class Moody(FirstCommitterWins):
    """Refuses everybody, for no reason."""

    def run(self, program: Program) -> None:
        raise Refused


@pytest.mark.parametrize(
    ("place", "cell"),
    [
        (Dirty, "**occurs** (12 of 20)"),
        (FirstCommitterWins, "prevented (20)"),
        (Moody, "refused for nothing (20 of 20)"),
    ],
)
def test_cell_counts_the_orders_in_which_the_anomaly_was_seen(place: Callable[[], Place], cell: str) -> None:
    script = BY_NAME["p4"]
    assert str(measure(System("s", place, 5.0), script, script.orders())) == cell


def test_slow_system_stops_when_the_anomaly_was_seen() -> None:
    script = BY_NAME["p4"]
    one_after_the_other = "111222"
    cell = measure(
        System("s", Dirty, 5.0, slow=True), script, [one_after_the_other, script.order, script.order]
    )
    assert str(cell) == "**occurs** (1 of 2)"


def test_anomaly_of_another_name_is_not_passed_over() -> None:
    # Each read what was there before the other, which is a write skew and no circular information flow.
    script = BY_NAME["g1c"]
    cell = measure(System("s", KeepsStaleReads, 5.0), script, [script.order])
    assert str(cell) == "another anomaly (1 of 1)"
    assert not cell.prevented


def test_reader_of_two_instants_is_told_apart_from_writers() -> None:
    # Without transactions T2 sees each table as it is at that step: one before T1, one after it.
    script, layout = BY_NAME["concurrent-reads"], LAYOUTS[ACROSS]
    cell = measure(System("s", Dirty, 5.0), script, ["211122", "111222"], layout)
    assert (str(cell), cell.prevented, cell.promised(script)) == ("readers (1 of 2)", False, True)
    assert not cell.promised(BY_NAME["g2-item"])


def test_table_has_a_row_for_each_script_and_a_column_for_each_system() -> None:
    script = BY_NAME["p4"]
    columns = {
        "none": {"p4": measure(System("none", Dirty, 5.0), script, [script.order])},
        "some": {"p4": measure(System("some", FirstCommitterWins, 5.0), script, [script.order])},
    }
    assert render([script], columns, "-MT").splitlines() == [
        "| anomaly | none | some |",
        "|---|---|---|",
        f"| p4-MT: {script.anomaly} | **occurs** (1 of 1) | prevented (1) |",
        "| refused, of all that would commit | 0 of 2 | 1 of 2 |",
    ]


def test_each_engine_has_tables_of_its_own_that_fit_a_page() -> None:
    names = [
        "Spark + Delta",
        "LakeVilla R on Spark",
        "LakeVilla R, lake.run on Spark",
        "deltalake",
        "LakeVilla R",
    ]
    cells: dict[str, Cell] = {}
    assert [list(table) for table in narrow(dict.fromkeys(names, cells))] == [
        ["Spark + Delta", "LakeVilla R on Spark"],
        ["LakeVilla R, lake.run on Spark"],
        ["deltalake", "LakeVilla R"],
    ]
