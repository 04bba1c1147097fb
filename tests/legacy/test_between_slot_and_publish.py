"""An outside client takes a version after a commit on several tables is decided and before it is published
there: deltalake, or PyIceberg.

Without a conflict the commit lands behind it. With one, what was published is rolled back: without recovery
the transaction aborts, with it the transaction is redone. If the other client builds on what has to be rolled
back, the table is torn, and flagged as torn. What the tables hold at the end is asked of such clients and of
DuckDB too.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.store.metered import Meter
from lakevilla.store.open import open_store
from lakevilla.versions.records import Head
from tests.legacy.clients.lookers import LOOKERS, Rows
from tests.legacy.test_between_requests import FORMATS, append, update
from tests.support.hooked import Hooked
from tests.support.outsiders import OUTSIDERS

Write = Callable[[str], None]
TABLES = ("a", "b")
THEIRS = {"delta": "UPDATE by delta-rs", "iceberg": "overwrite"}
START: Rows = [(1, 0), (2, 0), (3, 0), (4, 0)]


class Stage:
    """A lake of two tables, two versions after their first, and a client that steps in before requests."""

    def __init__(self, root: Path, table_format: str) -> None:
        self.root = root
        self.format = table_format
        self.append, self.update = append(table_format), update(table_format)
        self.store = Hooked(open_store(str(root), {"fsync": "false"}))
        self.lake = lv.Lake(root, engine="local", store=self.store, default_format=table_format)
        for name in TABLES:
            self.lake.create(name, "id BIGINT, v BIGINT")
            self.lake.append(name, [{"id": 1, "v": 0}, {"id": 2, "v": 0}])
            self.lake.append(name, [{"id": 3, "v": 0}, {"id": 4, "v": 0}])

    def commit(self, tx: lv.Transaction, steps: dict[str, Write]) -> None:
        """Commit; before our create of the log entry with one of these keys the other does its step once."""
        left = dict(steps)

        def hook(kind: str, key: str) -> None:
            if kind == "create" and key in left:
                left.pop(key)(str(self.root / key.split("/")[0]))

        self.store.hook = hook
        try:
            tx.commit()
        finally:
            self.store.hook = None
            assert not left, "the other had its turn"

    def at(self, number: int) -> int:
        """The version that comes so many after the first."""
        return OUTSIDERS[self.format].begin + number

    def entry(self, table: str, number: int) -> str:
        """The key of what makes the version that comes so many after the first."""
        return f"{table}/{OUTSIDERS[self.format].entry(self.at(number))}"

    def transfer(self, features: lv.Features) -> lv.Transaction:
        tx = self.lake.transaction(features)
        tx.update("a", {"v": "v + 100"}, where="id = 1")
        tx.update("b", {"v": "v - 100"}, where="id = 1")
        return tx

    def holds(self, table: str) -> Rows:
        """The rows of the newest version, on which all clients agree, also those who go by a hint alone."""
        path = str(self.root / table)
        with self.lake.transaction(lv.R) as tx:
            ours = sorted((row.id, row.v) for row in tx.read(table).collect())
        assert all(make().look(path)[1] == ours for make in LOOKERS[self.format])
        return ours

    def operations(self, table: str) -> list[str]:
        """What is told of the versions since the start, oldest first, in Delta's words."""
        words = {"append": "WRITE", "overwrite": "UPDATE"}
        history = self.lake.history(table)
        return [words.get(entry.operation, entry.operation) for entry in reversed(history)][3:]

    @property
    def head(self) -> Head:
        head = self.lake._catalog.head(Meter(), fresh=True)
        assert head is not None
        return head


@pytest.fixture(params=FORMATS)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    return Stage(tmp_path, request.param)


def other(table: str) -> str:
    return "b" if table == "a" else "a"


def with_first(rows: Rows, value: int) -> Rows:
    return [(1, value), *rows[1:]]


@pytest.mark.parametrize("features", [lv.CT, lv.R | lv.CT], ids=str)
@pytest.mark.parametrize("table", TABLES)
def test_version_taken_without_conflict_is_passed(stage: Stage, table: str, features: lv.Features) -> None:
    tx = stage.transfer(features)
    seq = stage.head.seq
    stage.commit(tx, {stage.entry(table, 3): stage.append})
    assert tx.receipt is not None
    assert (tx.receipt.redone, tx.receipt.seq) == (0, seq + 1)
    assert tx.receipt.versions == {table: stage.at(4), other(table): stage.at(3)}
    assert stage.head.versions == tx.receipt.versions
    values = {"a": 100, "b": -100}
    assert stage.holds(table) == [*with_first(START, values[table]), (50, 0)]
    assert stage.holds(other(table)) == with_first(START, values[other(table)])
    assert stage.operations(table) == ["WRITE", "UPDATE"]
    assert stage.operations(other(table)) == ["UPDATE"]


@pytest.mark.parametrize("table", TABLES)
def test_version_taken_with_conflict_takes_back_what_was_published(stage: Stage, table: str) -> None:
    tx = stage.transfer(lv.CT)
    with pytest.raises(lv.Conflict) as caught:
        stage.commit(tx, {stage.entry(table, 3): stage.update})
    assert (caught.value.table, caught.value.operation) == (table, "UPDATE")
    assert THEIRS[stage.format] in caught.value.winner
    assert stage.holds(table) == with_first(START, 1000)
    assert stage.holds(other(table)) == START
    assert stage.operations(table) == ["UPDATE"]
    assert stage.operations(other(table)) == ["UPDATE", "ROLLBACK"]
    assert stage.head.versions == {other(table): stage.at(4), table: stage.at(3)}
    assert (stage.head.torn, stage.lake.outcome(tx.id).state) == (frozenset(), "aborted")


@pytest.mark.parametrize("table", TABLES)
def test_version_taken_with_conflict_is_redone_with_recovery(stage: Stage, table: str) -> None:
    tx = stage.transfer(lv.R | lv.CT)
    stage.commit(tx, {stage.entry(table, 3): stage.update})
    assert tx.receipt is not None
    assert tx.receipt.redone == 1
    values = {"a": 100, "b": -100}
    assert stage.holds(table) == with_first(START, values[table] + 1000)
    assert stage.holds(other(table)) == with_first(START, values[other(table)])
    assert stage.operations(table) == ["UPDATE", "UPDATE"]
    assert stage.operations(other(table)) == ["UPDATE", "ROLLBACK", "UPDATE"]
    assert stage.head.versions == {table: stage.at(4), other(table): stage.at(5)}
    assert stage.lake.outcome(tx.id).state == "committed"


def test_conflict_on_the_only_update_leaves_appended_tables_untouched(stage: Stage) -> None:
    """Appends are published last: nothing has to be rolled back."""
    tx = stage.lake.transaction(lv.CT)
    tx.append("a", [{"id": 9, "v": 9}])
    tx.update("b", {"v": "v - 100"}, where="id = 1")
    with pytest.raises(lv.Conflict):
        stage.commit(tx, {stage.entry("b", 3): stage.update})
    assert stage.operations("a") == []
    assert (stage.holds("a"), stage.holds("b")) == (START, with_first(START, 1000))


@pytest.mark.parametrize("features", [lv.CT, lv.R | lv.CT])
@pytest.mark.parametrize("table", TABLES)
def test_commit_that_somebody_built_on_before_it_was_taken_back_tears_the_table(
    stage: Stage, table: str, features: lv.Features
) -> None:
    """The other is in the way on one table, and changes what we published on the other. To redo the
    transaction would count there twice."""
    tx = stage.transfer(features)
    with pytest.raises(lv.Torn) as caught:
        stage.commit(tx, {stage.entry(other(table), 3): stage.update, stage.entry(table, 4): stage.update})
    assert (caught.value.tables, caught.value.transaction) == ((table,), tx.id)
    values = {"a": 1100, "b": 900}
    assert stage.holds(table) == with_first(START, values[table])
    assert stage.holds(other(table)) == with_first(START, 1000)
    assert stage.operations(table) == ["UPDATE", "UPDATE"]
    assert stage.head.torn == {table}
    assert stage.head.versions[table] == stage.at(2), "the last clean version is the one before"
    assert sorted((row.id, row.v) for row in stage.lake.read(table).collect()) == START
    with pytest.raises(lv.Torn):
        stage.lake.update(table, {"v": 0})
    assert stage.lake.outcome(tx.id).state == "torn"
    torn = [finding for finding in stage.lake.explain().findings if finding.kind == "torn"]
    assert [(finding.tables, finding.transactions) for finding in torn] == [((table,), (tx.id,))]
    assert f"version {stage.at(3)} (UPDATE by LakeVilla" in torn[0].text
    assert f"version {stage.at(4)} ({THEIRS[stage.format]}" in torn[0].text
    assert stage.lake.sync() == {}
    assert stage.lake.sync(table, accept_torn=True) == {table: stage.at(4)}
    assert sorted((row.id, row.v) for row in stage.lake.read(table).collect()) == stage.holds(table)


def test_append_between_a_commit_and_its_inverse_is_kept(stage: Stage) -> None:
    """It does not build on what is rolled back: the inverse commit follows it."""
    tx = stage.transfer(lv.CT)
    with pytest.raises(lv.Conflict):
        stage.commit(tx, {stage.entry("b", 3): stage.update, stage.entry("a", 4): stage.append})
    assert stage.operations("a") == ["UPDATE", "WRITE", "ROLLBACK"]
    assert stage.holds("a") == [*START, (50, 0)]
    assert (stage.head.torn, stage.head.versions) == (frozenset(), {"a": stage.at(5), "b": stage.at(3)})
