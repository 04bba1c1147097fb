"""The notation says what the scripts mean."""

import pytest

from tests.hermitage.scripts.anomalies import SCRIPTS
from tests.hermitage.scripts.notation import (
    Condition,
    Delete,
    Insert,
    Layout,
    Operation,
    Read,
    Update,
    parse_steps,
    sql_of,
)
from tests.hermitage.scripts.orders import sampled_orders
from tests.hermitage.scripts.script import FIRST_ROWS, Script


@pytest.mark.parametrize(
    ("word", "rows", "sql"),
    [
        ("w1=11", ((1, 11), (2, 20)), "UPDATE t SET v = 11 WHERE id = 1"),
        ("w2+=5", ((1, 10), (2, 25)), "UPDATE t SET v = v + 5 WHERE id = 2"),
        ("set v=12 where v=10", ((1, 12), (2, 20)), "UPDATE t SET v = 12 WHERE v = 10"),
        ("v+=10 all", ((1, 20), (2, 30)), "UPDATE t SET v = v + 10"),
        ("delete v=20", ((1, 10),), "DELETE FROM t WHERE v = 20"),
        ("insert(3,30)", ((1, 10), (2, 20), (3, 30)), "INSERT INTO t VALUES (3, 30)"),
        ("r*", ((1, 10), (2, 20)), "SELECT id, v FROM t"),
        ("r2", ((2, 20),), "SELECT id, v FROM t WHERE id = 2"),
        ("p(v%5=0)", ((1, 10), (2, 20)), "SELECT id, v FROM t WHERE v % 5 = 0"),
        ("p(v%3=1)", ((1, 10),), "SELECT id, v FROM t WHERE v % 3 = 1"),
    ],
)
def test_step_means_the_same_on_rows_and_in_sql(word: str, rows: object, sql: str) -> None:
    (step,) = parse_steps(f"T1 {word}")
    assert not isinstance(step.does, str)
    assert step.does.on(FIRST_ROWS) == rows
    assert sql_of(step.does, ["t"]) == [sql]


@pytest.mark.parametrize("text", ["r1", "T1 w1", "T1 p(x=1)", "T1 r1;;T2 c", "T1 insert(3)", "T1 w1=11 c"])
def test_text_that_is_not_in_the_notation_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"notation|condition|starts with"):
        parse_steps(text)


def test_step_without_a_transaction_goes_on_with_the_last() -> None:
    steps = parse_steps("T1 w1=11,r2; c; T2 insert(3,30),a")
    assert [(step.owner, step.text) for step in steps] == [
        ("T1", "w1=11"),
        ("T1", "r2"),
        ("T1", "c"),
        ("T2", "insert(3,30)"),
        ("T2", "a"),
    ]


def test_one_table_holds_everything() -> None:
    layout = Layout()
    assert layout.inserts(FIRST_ROWS) == [("t", ((1, 10),)), ("t", ((2, 20),))]
    assert Layout(apart=False).inserts(FIRST_ROWS) == [("t", FIRST_ROWS)]
    assert {*layout.tables_of(Read(None)), *layout.tables_of(Insert((4, 42)))} == {"t"}


@pytest.mark.parametrize(
    ("operation", "tables"),
    [
        (Update(Condition("id", 1), 11), ("a",)),
        (Read(Condition("id", 2)), ("b",)),
        (Insert((3, 30)), ("a",)),
        (Insert((4, 42)), ("b",)),
        (Delete(Condition("v", 20)), ("a", "b")),
        (Update(None, 10, adds=True), ("a", "b")),
        (Read(None), ("a", "b")),
    ],
)
def test_two_tables_share_the_ids_and_conditions_scan_both(operation: Operation, tables: object) -> None:
    layout = Layout(tables=("a", "b"))
    assert layout.inserts(FIRST_ROWS) == [("a", ((1, 10),)), ("b", ((2, 20),))]
    assert layout.tables_of(operation) == tables


def test_read_of_two_tables_is_one_statement() -> None:
    assert sql_of(Read(Condition("v", 0, 3)), ["a", "b"]) == [
        "SELECT id, v FROM a WHERE v % 3 = 0 UNION ALL SELECT id, v FROM b WHERE v % 3 = 0"
    ]


def test_orders_are_all_that_keep_each_transactions_own() -> None:
    script = Script("s", "T1 r1,c; T2 w1=11,c", "", seen=lambda outcome: True)
    assert list(script.orders()) == ["1122", "1212", "1221", "2112", "2121", "2211"]
    assert script.in_order("2112") == "T2 w1=11; T1 r1; T1 c; T2 c"


def test_every_script_ends_its_transactions_and_knows_its_orders() -> None:
    for script in SCRIPTS:
        assert script.ends.keys() == script.transactions.keys()
        assert script.in_order(script.order) == "; ".join(f"{s.owner} {s.text}" for s in script.parsed)
        orders = list(script.orders()) if script.count_orders() < 1000 else []
        assert not orders or (len(set(orders)) == script.count_orders() and script.order in orders)
    assert sum(script.count_orders() for script in SCRIPTS) == 9786


def test_sample_is_shared_out_and_has_every_scripts_own_order() -> None:
    sample = sampled_orders(SCRIPTS, 300)
    assert len(set(sample)) == 300
    assert sample == sampled_orders(SCRIPTS, 300)
    for script in SCRIPTS:
        orders = [order for owner, order in sample if owner is script]
        assert script.order in orders
        assert len(orders) >= min(20, script.count_orders())
