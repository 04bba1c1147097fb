"""SQL sessions: scripts, transactions by statements, settings, and what an error leaves behind."""

import pytest

import lakevilla as lv


@pytest.fixture
def lake() -> lv.Lake:
    lake = lv.Lake("memory://", engine="local")
    lake.create("t", [{"id": i, "v": 0} for i in range(3)])
    lake.create("u", [{"id": 1}])
    return lake


def _values(lake: lv.Lake | lv.Session | lv.PastLake, name: str = "t") -> list[object]:
    return [row[1] for row in lake.sql(f"SELECT * FROM {name} ORDER BY id").collect()]


def test_script_runs_in_order_and_gives_the_last_result(lake: lv.Lake) -> None:
    session = lake.session()
    rows = session.sql("UPDATE t SET v = :v WHERE id = 1; SELECT v FROM t WHERE id = :id", v=5, id=1)
    assert [tuple(row) for row in rows.collect()] == [(5,)]
    assert len(lake.history("t")) == 2


def test_transaction_is_seen_by_others_at_its_commit_only(lake: lv.Lake) -> None:
    session = lake.session()
    session.sql("BEGIN; UPDATE t SET v = 7; DELETE FROM u")
    assert session.state == "open"
    assert _values(session) == [7, 7, 7]
    assert _values(lake) == [0, 0, 0]
    receipt = session.sql("COMMIT")
    assert receipt.versions == {"t": 1, "u": 1}
    assert session.state == "idle"
    assert _values(lake) == [7, 7, 7]


def test_rollback_and_savepoints_undo(lake: lv.Lake) -> None:
    session = lake.session()
    session.sql("BEGIN; UPDATE t SET v = 1; SAVEPOINT a; UPDATE t SET v = 2; ROLLBACK TO a")
    assert _values(session) == [1, 1, 1]
    session.sql("ROLLBACK")
    assert session.state == "idle"
    assert _values(lake) == [0, 0, 0]


def test_begin_picks_features_isolation_and_slack(lake: lv.Lake) -> None:
    session = lake.session(lv.R)
    assert session.settings == {"features": "R", "isolation": "serializable", "slack": "0"}
    session.sql("SET features = 'R,CT,I'; SET slack = 1; BEGIN ISOLATION LEVEL SNAPSHOT WITH (slack = 2)")
    assert session.transaction is not None
    picked = session.transaction._guarantees
    assert (picked.features, picked.isolation, picked.slack) == (lv.R | lv.CT | lv.I, "snapshot", 2)
    session.sql("ROLLBACK; BEGIN WITH (features = 'R'); UPDATE t SET v = 1")
    with pytest.raises(lv.InvalidInput, match=r"with lakevilla\.R alone"):
        session.sql("DELETE FROM u")


def test_wrong_statement_in_a_transaction_is_undone_and_leaves_it_open(lake: lv.Lake) -> None:
    session = lake.session()
    session.sql("BEGIN; UPDATE t SET v = 1")
    with pytest.raises(lv.InvalidInput, match="the transaction is still open"):
        session.sql("UPDATE t SET v = 1 DIV 0")
    assert session.state == "open"
    session.sql("COMMIT")
    assert _values(lake) == [1, 1, 1]


def test_conflict_in_a_transaction_aborts_it_until_rollback(lake: lv.Lake) -> None:
    session = lake.session(lv.CT | lv.I)
    session.sql("BEGIN; SELECT * FROM t; INSERT INTO u VALUES (2)")
    lake.sql("UPDATE t SET v = 3")
    with pytest.raises(lv.Aborted, match="the session has none"):
        session.sql("COMMIT")
    assert session.state == "idle"


@pytest.mark.parametrize("looks", [False, True])
def test_change_is_redone_at_commit_unless_its_counts_were_looked_at(lake: lv.Lake, looks: bool) -> None:
    session = lake.session()
    answers = list(session.run("BEGIN; UPDATE t SET v = v + 1"))
    if looks:
        assert answers[1].message == "0 inserted, 3 updated, 0 deleted"
    lake.sql("DELETE FROM t WHERE id = 2")
    if looks:
        with pytest.raises(lv.Conflict):
            session.sql("COMMIT")
    else:
        assert session.sql("COMMIT").redone == 1
        assert _values(lake) == [1, 1]


def test_aborted_statement_refuses_all_but_rollback(lake: lv.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    session = lake.session()
    session.sql("BEGIN; UPDATE t SET v = 1")

    def lose(*_: object, **__: object) -> None:
        raise lv.Conflict("another commit came first")

    monkeypatch.setattr(session.transaction, "_sql", lose)
    with pytest.raises(lv.Conflict, match="write ROLLBACK"):
        session.sql("DELETE FROM u")
    assert session.state == "aborted"
    for text in ("SELECT 1", "COMMIT", "BEGIN", "BEGIN ATOMIC DELETE FROM u; END"):
        with pytest.raises(lv.InvalidInput, match="ROLLBACK"):
            session.sql(text)
    session.sql("ROLLBACK")
    assert session.state == "idle"
    assert _values(lake) == [0, 0, 0]
    assert lake.status().transactions == ()


def test_statement_after_one_that_fails_does_not_run(lake: lv.Lake) -> None:
    session = lake.session()
    with pytest.raises(lv.InvalidInput):
        session.sql("UPDATE t SET v = 1; UPDATE t SET nothing = 1; UPDATE t SET v = 2")
    assert _values(lake) == [1, 1, 1]


def test_mistake_in_a_later_statement_is_found_before_the_first_runs(lake: lv.Lake) -> None:
    text = "UPDATE t SET v = 1;\nUPDATE t\n  SETT v = 2"
    with pytest.raises(lv.InvalidInput) as error:
        lake.session().sql(text)
    assert error.value.position is not None
    assert (error.value.position.line, error.value.position.column) == (3, 3)
    assert str(error.value).endswith("  SETT v = 2\n    ^^^^")
    assert _values(lake) == [0, 0, 0]


def test_atomic_block_is_one_commit_and_undone_as_a_whole(lake: lv.Lake) -> None:
    session = lake.session()
    receipt = session.sql(
        "BEGIN ATOMIC UPDATE t SET v = CASE WHEN id = 1 THEN 5 ELSE 6 END; DELETE FROM u; END"
    )
    assert receipt.versions == {"t": 1, "u": 1}
    with pytest.raises(lv.InvalidInput) as error:
        session.sql("SELECT 1;\nBEGIN ATOMIC\n  UPDATE t SET v = 0;\n  SELECT no FROM t;\nEND")
    assert "still open" not in str(error.value)
    assert session.state == "idle"
    assert _values(lake) == [6, 5, 6]


def test_atomic_block_runs_again_when_a_value_that_it_read_has_changed(lake: lv.Lake) -> None:
    calls: list[int] = []
    original = lv.Transaction.commit
    run = lv.Transaction.attempt

    def disturbed(tx: lv.Transaction, work: object) -> lv.Receipt:
        def interrupted(inner: lv.Transaction) -> None:
            work(inner)  # type: ignore[operator]
            calls.append(1)
            if len(calls) == 1:
                lake.sql("UPDATE t SET v = v + 10")

        return run(tx, interrupted)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lv.Transaction, "attempt", disturbed)
        lake.session().sql("BEGIN ATOMIC SELECT * FROM t; INSERT INTO u VALUES (9); END")
    assert original is lv.Transaction.commit
    assert len(calls) == 2
    assert lake.read("u").count() == 2


@pytest.mark.parametrize("text", ["BEGIN ATOMIC COMMIT; END", "BEGIN ATOMIC SELECT 1; TAG x; END"])
def test_command_inside_of_an_atomic_block_is_refused(lake: lv.Lake, text: str) -> None:
    with pytest.raises(lv.InvalidInput, match="cannot stand inside of BEGIN ATOMIC"):
        lake.session().sql(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("COMMIT", "no transaction is open"),
        ("ROLLBACK", "no transaction is open"),
        ("SAVEPOINT a", "no transaction is open"),
        ("BEGIN; BEGIN", "is open: COMMIT or ROLLBACK"),
        ("BEGIN; BEGIN ATOMIC SELECT 1; END", "a transaction of its own"),
        ("SELECT :a", "parameter :a"),
        ("RELEASE SAVEPOINT a", "RELEASE"),
    ],
)
def test_statement_at_the_wrong_time_is_refused(lake: lv.Lake, text: str, words: str) -> None:
    session = lake.session()
    with pytest.raises(lv.LakeVillaError, match=words):
        session.sql(text)
    session.close()


def test_parameter_that_no_statement_names_is_refused(lake: lv.Lake) -> None:
    with pytest.raises(lv.InvalidInput, match=":unknown"):
        lake.session().sql("SELECT 1; SELECT :a", a=1, unknown=2)


def test_session_that_ends_with_an_open_transaction_rolls_it_back_and_warns(lake: lv.Lake) -> None:
    with pytest.warns(ResourceWarning, match="rolled back"), lake.session() as session:
        session.sql("BEGIN; UPDATE t SET v = 1")
    assert session.state == "idle"
    assert _values(lake) == [0, 0, 0]


def test_lake_runs_one_statement_and_points_to_sessions(lake: lv.Lake) -> None:
    for text in ("SELECT 1; SELECT 2", "BEGIN", "SET slack = 1", "BEGIN ATOMIC SELECT 1; END"):
        with pytest.raises(lv.InvalidInput, match=r"lake\.session\(\)"):
            lake.sql(text)


def test_statements_about_the_lake_run_in_sessions_and_alone(lake: lv.Lake) -> None:
    session = lake.session()
    session.sql("TAG month-end; UPDATE t SET v = 1")
    assert [tuple(row) for row in lake.sql("SHOW TAGS").collect()] == [("month-end", 2)]
    assert _values(lake.at(tag="month-end")) == [0, 0, 0]
    for where in ("TAG => 'month-end'", "SEQ => 2"):
        rows = lake.sql(f"SELECT t.v, u.id FROM t JOIN u USING (id) WHERE v = :v AT ({where})", v=0)
        assert [tuple(row) for row in rows.collect()] == [(0, 1)]
    assert session.sql("SHOW HISTORY LIMIT 1").collect()[0].tables == "t 1"
    assert session.sql("SHOW TRANSACTIONS").columns[0] == "txn"
    assert "no client waits" in session.sql("EXPLAIN CONFLICT").collect()[0][0]
    assert "dry run" in session.sql("VACUUM t RETAIN 200 HOURS DRY RUN").collect()[-1][0]
    session.sql("UNTAG month-end")
    assert lake.tags() == {}


def test_tables_are_restored_in_one_commit_outside_of_transactions(lake: lv.Lake) -> None:
    session = lake.session()
    session.sql("TAG before; UPDATE t SET v = 1; DELETE FROM u; RESTORE LAKE TO TAG before")
    assert _values(lake) == [0, 0, 0]
    assert lake.read("u").count() == 1
    lake.sql("RESTORE TABLE t TO VERSION AS OF 1")
    assert _values(lake) == [1, 1, 1]
    session.sql("BEGIN")
    with pytest.raises(lv.InvalidInput, match="a transaction of its own"):
        session.sql("RESTORE LAKE TO TAG before")
    session.close()


def test_statement_about_the_lake_is_refused_in_python_transactions(lake: lv.Lake) -> None:
    with lake.transaction() as tx, pytest.raises(lv.InvalidInput, match="about the lake"):
        tx.sql("SHOW TAGS")
