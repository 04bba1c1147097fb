"""`lake.restore`: the rows of an earlier instant come back, on all tables together or on none."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import lakevilla as lv
from lakevilla.maintenance import instants
from tests.support.iceberg_files import FilesCatalog
from tests.support.outsiders import OUTSIDERS

pytestmark = pytest.mark.formats("delta", "vectors", "iceberg", "deletes", "mixed")


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    lake = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    lake.create("a", "id BIGINT, v STRING")
    lake.create("b", "id BIGINT")
    with lake.transaction() as tx:
        tx.append("a", [{"id": 1, "v": "old"}, {"id": 2, "v": "old"}])
        tx.append("b", [{"id": 1}])
    lake.tag("good")
    return lake


def rows(lake: Any, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in lake.read(name).collect())


GOOD = [(1, "old"), (2, "old")]


def spoil(lake: lv.Lake) -> None:
    lake.update("a", {"v": "'bad'"}, where="id = 1")
    lake.append("a", [{"id": 3, "v": "bad"}])
    lake.delete("b")


def test_all_tables_come_back_in_one_commit(lake: lv.Lake) -> None:
    spoil(lake)
    before = lake.history()[0].seq
    report = lake.restore(tag="good")
    assert (rows(lake, "a"), rows(lake, "b")) == (GOOD, [(1,)])
    assert sorted(report.restored) == ["a", "b"]
    assert report.receipt is not None
    assert (lake.history()[0].seq, report.receipt.seq) == (before + 1, before + 1)
    assert sorted(report.receipt.versions) == ["a", "b"]
    assert lake.history("a")[0].operation == "RESTORE"
    assert rows(lake.at(seq=before), "b") == []
    lake.append("a", [{"id": 9, "v": "new"}])
    assert rows(lake, "a") == [*GOOD, (9, "new")]


def test_restore_itself_can_be_undone(lake: lv.Lake) -> None:
    spoil(lake)
    bad, seq = rows(lake, "a"), lake.history()[0].seq
    lake.restore(tag="good")
    assert lake.restore(seq=seq).restored.keys() == {"a", "b"}
    assert (rows(lake, "a"), rows(lake, "b")) == (bad, [])
    lake.restore(at=lake.at(tag="good"), tables=["A"])
    assert (rows(lake, "a"), rows(lake, "b")) == (GOOD, [])


def test_table_that_has_not_changed_is_not_written(lake: lv.Lake) -> None:
    lake.delete("b")
    versions = lake.history("a")[0].version
    report = lake.restore(tag="good")
    assert (report.unchanged, list(report.restored)) == (("a",), ["b"])
    assert lake.history("a")[0].version == versions
    again = lake.restore(tag="good")
    assert (again.receipt, again.unchanged) == (None, ("a", "b"))
    assert "a: has not changed since" in str(again)


def test_one_table_comes_back_to_a_version(lake: lv.Lake) -> None:
    version = lake.history("a")[0].version
    spoil(lake)
    report = lake.restore(version=version, tables=["A"])
    assert (rows(lake, "a"), rows(lake, "b")) == (GOOD, [])
    assert report.restored == {"a": version}
    assert f"has the rows of version {version}" in repr(report)


def test_columns_come_back_too(lake: lv.Lake) -> None:
    lake.add_column("a", "extra", "INT")
    lake.append("a", [{"id": 3, "v": "bad", "extra": 7}])
    seq = lake.history()[0].seq
    lake.restore(tag="good")
    assert (lake.read("a").columns, rows(lake, "a")) == (["id", "v"], GOOD)
    lake.append("a", [{"id": 4, "v": "new"}])
    lake.restore(seq=seq)
    assert rows(lake, "a") == [(1, "old", None), (2, "old", None), (3, "bad", 7)]


def test_other_clients_see_what_was_restored(lake: lv.Lake, tmp_path: Path, table_format: str) -> None:
    spoil(lake)
    lake.restore(tag="good")
    if table_format in ("iceberg", "deletes"):
        found = FilesCatalog().load_table(str(tmp_path / "a")).scan().to_arrow().to_pylist()
    else:
        found = OUTSIDERS["vectors"].rows(tmp_path / "a")
    assert sorted((row["id"], row["v"]) for row in found) == GOOD


def test_commit_of_another_client_in_between_is_restored_over(lake: lv.Lake, monkeypatch: Any) -> None:
    """A commit after the restore began and before it was decided: the restore is redone."""
    spoil(lake)
    other = lv.Lake(lake.url, engine="local", storage_options={"fsync": "false"})
    _before_commit(monkeypatch, lambda: other.append("a", [{"id": 4, "v": "late"}]))
    report = lake.restore(tag="good")
    assert report.receipt is not None
    assert report.receipt.redone >= 1
    assert (rows(lake, "a"), rows(lake, "b")) == (GOOD, [(1,)])


def _before_commit(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    commit, acted = lv.Transaction.commit, []

    def first_act(self: lv.Transaction) -> lv.Receipt:
        if not acted:
            acted.append(True)
            act()
        return commit(self)

    monkeypatch.setattr(lv.Transaction, "commit", first_act)


def test_client_that_dies_after_the_decision_is_completed_by_the_next(
    lake: lv.Lake, monkeypatch: Any
) -> None:
    spoil(lake)
    dying = lv.Lake(lake.url, engine="local", storage_options={"fsync": "false"})

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("lakevilla.transaction.commit.slot_commit.SlotCommit._settle", die)
        with pytest.raises(KeyboardInterrupt):
            dying.restore(tag="good")
    lake.recover()
    assert (rows(lake, "a"), rows(lake, "b")) == (GOOD, [(1,)])


def test_tables_that_came_and_went_are_left_alone_and_named(lake: lv.Lake) -> None:
    lake.drop("b")
    lake.create("b", "other STRING")
    lake.create("later", [{"x": 1}])
    lake.delete("a")
    report = lake.restore(tag="good")
    assert (rows(lake, "a"), rows(lake, "later")) == (GOOD, [(1,)])
    assert report.skipped.keys() == {"b", "later"}
    assert lake.read("b").columns == ["other"]
    for name in ("b", "later", "never"):
        with pytest.raises(lv.InvalidInput) as refused:
            lake.restore(tag="good", tables=["a", name])
        assert refused.value.table == name


def test_renamed_table_is_restored_under_its_new_name(lake: lv.Lake) -> None:
    lake.rename("a", "c")
    lake.delete("c")
    assert list(lake.restore(tag="good", tables=["a"]).restored) == ["c"]
    assert rows(lake, "c") == GOOD


def test_files_that_were_deleted_are_noticed_before_anything_is_written(
    lake: lv.Lake, tmp_path: Path
) -> None:
    spoil(lake)
    bad = rows(lake, "a"), rows(lake, "b"), lake.history()[0].seq
    for file in _data_files(tmp_path / "b"):
        file.unlink()
    with pytest.raises(lv.InvalidInput, match="deleted") as refused:
        lake.restore(tag="good")
    assert refused.value.table == "b"
    assert (rows(lake, "a"), rows(lake, "b"), lake.history()[0].seq) == bad


def _data_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts]


def test_version_whose_log_was_cleaned_up_is_refused_with_the_name_of_the_table(
    lake: lv.Lake, tmp_path: Path
) -> None:
    lake.append("a", [{"id": 10, "v": "new"}])
    is_delta = (tmp_path / "a/_delta_log").exists()
    if is_delta:
        DeltaTable(str(tmp_path / "a")).create_checkpoint()
    outsider = OUTSIDERS["delta" if is_delta else "iceberg"]
    cleaned = outsider.begin + 1
    (tmp_path / "a" / outsider.entry(cleaned)).unlink()
    other = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    with pytest.raises(lv.InvalidInput, match=f"table 'a' cannot be restored to version {cleaned}: version"):
        other.restore(version=cleaned, tables=["a"])


def test_instant_that_expires_before_the_decision_is_refused(lake: lv.Lake, monkeypatch: Any) -> None:
    """Vacuum moves the horizon past the instant after the restore has looked for its files."""
    seq = lake.history()[0].seq
    lake.untag("good")
    spoil(lake)
    other = lv.Lake(lake.url, engine="local", storage_options={"fsync": "false"})

    def expire() -> None:
        monkeypatch.setattr(instants, "decide_horizon", lambda head, *_: head.seq)
        other.vacuum(dry_run=False)

    bad = rows(lake, "a")
    _before_commit(monkeypatch, expire)
    with pytest.raises(lv.InvalidInput, match="expired"):
        lake.restore(seq=seq)
    assert rows(lake, "a") == bad


def test_wrong_calls_are_refused(lake: lv.Lake) -> None:
    wrong: list[dict[str, Any]] = [
        {},
        {"seq": 1, "tag": "good"},
        {"version": 1},
        {"version": 1, "tables": ["a", "b"]},
        {"version": 1, "seq": 1, "tables": ["a"]},
        {"version": "1", "tables": ["a"]},
        {"version": 99, "tables": ["a"]},
        {"tag": "good", "tables": "a"},
        {"tag": "good", "tables": []},
        {"tag": "none"},
        {"seq": 99},
    ]
    for given in wrong:
        with pytest.raises(lv.InvalidInput):
            lake.restore(**given)


@pytest.mark.formats("delta")
def test_constraints_come_back_and_other_properties_stay(lake: lv.Lake) -> None:
    lake.sql("ALTER TABLE a ADD CONSTRAINT small CHECK (id < 10)")
    seq = lake.history()[0].seq
    lake.sql("ALTER TABLE a SET TBLPROPERTIES ('lakevilla.exclusive' = 'true')")
    lake.restore(tag="good")
    lake.append("a", [{"id": 11, "v": "now allowed"}])
    lake.restore(seq=seq)
    with pytest.raises(lv.InvalidInput):
        lake.append("a", [{"id": 12}])
    with pytest.raises(lv.Unsupported), lake.transaction(lv.R) as tx:
        tx.append("a", [{"id": 3}])


@pytest.mark.formats("delta")
def test_statistics_of_files_come_back(lake: lv.Lake, tmp_path: Path) -> None:
    spoil(lake)
    lake.restore(tag="good")
    newest = sorted((tmp_path / "a" / "_delta_log").glob("*.json"))[-1]
    adds = [json.loads(line).get("add") for line in newest.read_text().splitlines()]
    stats = [json.loads(add["stats"]) for add in adds if add]
    assert [one["numRecords"] for one in stats] == [2]


@pytest.mark.formats("delta")
def test_table_that_is_append_only_is_not_restored(lake: lv.Lake) -> None:
    lake.sql("ALTER TABLE a SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    lake.append("a", [{"id": 5}])
    lake.delete("b")
    with pytest.raises(lv.InvalidInput):
        lake.restore(tag="good")
    assert rows(lake, "b") == []


@pytest.mark.formats("delta")
def test_change_of_column_mapping_since_is_refused(lake: lv.Lake) -> None:
    lake.sql("ALTER TABLE a SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    with pytest.raises(lv.Unsupported, match=r"table 'a' cannot be restored.*column mapping"):
        lake.restore(tag="good")
