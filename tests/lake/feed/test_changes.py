"""`lake.changes` on tables of both formats, with and without a change data feed."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import lakevilla as lv
from tests.support.outsiders import OUTSIDERS

Row = tuple[Any, ...]
WENT = ("delete", "update_preimage")


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    """Two tables, `t` with the ids 0 to 9 in one file."""
    lake = lv.Lake(tmp_path / "lake", engine="local", storage_options={"fsync": "false"})
    lake.create("t", pa.table({"id": list(range(10)), "v": [0] * 10}))
    lake.create("u", pa.table({"id": [1], "v": [0]}))
    return lake


def newest(lake: lv.Lake) -> int:
    return lake.history()[0].seq


def changes(lake: lv.Lake, since: Any = None, until: Any = None, table: str = "t") -> Counter[Row]:
    rows = lake.changes(table, since, until).toArrow().to_pylist()
    return Counter((row["id"], row["v"], row["_change_type"], row["_commit_seq"]) for row in rows)


@pytest.mark.formats("delta", "vectors", "iceberg")
def test_rows_that_a_change_copied_are_not_shown(lake: lv.Lake) -> None:
    lake.sql("UPDATE t SET v = 1 WHERE id = 3")
    assert changes(lake, newest(lake) - 1) == Counter(
        [(3, 0, "delete", newest(lake)), (3, 1, "insert", newest(lake))]
    )
    lake.sql("DELETE FROM t WHERE id IN (1, 2)")
    assert changes(lake, newest(lake) - 1) == Counter(
        [(1, 0, "delete", newest(lake)), (2, 0, "delete", newest(lake))]
    )
    assert changes(lake, newest(lake)) == Counter()


@pytest.mark.formats("delta", "vectors", "iceberg")
def test_changes_from_the_beginning_lead_to_the_rows_of_each_instant(lake: lv.Lake) -> None:
    lake.append("t", [{"id": 20, "v": 1}, {"id": 20, "v": 1}])
    lake.sql("UPDATE t SET v = v + 1 WHERE id IN (1, 20)")
    lake.overwrite("t", [{"id": 5, "v": 9}], where="id = 5")
    lake.sql("DELETE FROM t WHERE id < 3")
    lake.sql("ALTER TABLE t ADD COLUMNS (w BIGINT)")
    lake.restore(version=lake.history("t")[3].version, tables=["t"])
    lake.overwrite("t", [{"id": 0, "v": 0}])
    lake.sql("INSERT INTO t SELECT * FROM t")
    for entry in lake.history():
        past = lake.at(seq=entry.seq)
        if "t" not in past.tables():
            continue
        rows: Counter[Row] = Counter()
        for (i, v, kind, seq), count in changes(lake, None, entry.seq).items():
            assert seq <= entry.seq
            rows[i, v] += -count if kind in WENT else count
        assert +rows == Counter((row["id"], row["v"]) for row in past.read("t").toArrow().to_pylist())
        assert min(rows.values()) >= 0


@pytest.mark.formats("delta", "iceberg")
def test_two_tables_are_followed_at_one_instant(lake: lv.Lake) -> None:
    since = lake.at(seq=newest(lake))
    with lake.transaction() as tx:
        tx.append("t", [{"id": 50, "v": 1}])
        tx.append("u", [{"id": 50, "v": 1}])
    lake.append("u", [{"id": 51, "v": 1}])
    middle = newest(lake) - 1
    for table in ("t", "u"):
        (row,) = lake.changes(table, since, middle).toArrow().to_pylist()
        assert (row["_commit_seq"], row["_transaction"]) == (middle, tx.id)
        assert row["_commit_timestamp"] == lake.at(seq=middle).time
    assert changes(lake, middle) == Counter()
    assert changes(lake, middle, None, "u") == Counter([(51, 1, "insert", middle + 1)])


@pytest.mark.formats("delta", "iceberg")
def test_version_of_a_legacy_client_appears_when_it_is_adopted(
    lake: lv.Lake, tmp_path: Path, table_format: str
) -> None:
    since = newest(lake)
    OUTSIDERS[table_format].append(tmp_path / "lake" / "t", pa.table({"id": [70], "v": [7]}))
    assert changes(lake, since) == Counter()
    lake.sync()
    rows = lake.changes("t", since).toArrow().to_pylist()
    assert [(row["id"], row["_commit_seq"], row["_transaction"]) for row in rows] == [(70, since + 1, None)]


def test_optimize_of_a_legacy_client_gives_no_rows(lake: lv.Lake, tmp_path: Path) -> None:
    since = newest(lake)
    place = str(tmp_path / "lake" / "t")
    write_deltalake(place, pa.table({"id": [70], "v": [7]}), mode="append")
    from deltalake import DeltaTable

    DeltaTable(place).optimize.compact()
    lake.sync()
    assert changes(lake, since) == Counter([(70, 7, "insert", since + 1)])


def test_instants_are_given_by_tag_time_or_entry(lake: lv.Lake) -> None:
    lake.tag("start")
    moment = lake.at(tag="start").time
    lake.append("t", [{"id": 50, "v": 1}])
    expected = changes(lake, newest(lake) - 1)
    assert len(expected) == 1
    assert changes(lake, "start") == changes(lake, moment) == changes(lake, lake.at(tag="start")) == expected
    assert changes(lake, "start", "start") == Counter()


def test_table_that_was_renamed_is_followed_under_its_new_name(lake: lv.Lake) -> None:
    since = newest(lake)
    lake.append("t", [{"id": 50, "v": 1}])
    lake.rename("t", "w")
    assert changes(lake, since, None, "w") == Counter([(50, 1, "insert", since + 1)])
    with pytest.raises(lv.InvalidInput, match="unknown table 't'"):
        lake.changes("t", since)
    assert changes(lake, since, since + 1) == Counter([(50, 1, "insert", since + 1)])


def test_table_that_was_dropped_and_made_anew_begins_empty(lake: lv.Lake) -> None:
    since = newest(lake)
    lake.drop("t")
    lake.create("t", pa.table({"id": [1], "v": [5]}))
    assert changes(lake, since) == Counter([(1, 5, "insert", newest(lake))])


def test_since_after_until_is_refused(lake: lv.Lake) -> None:
    with pytest.raises(lv.InvalidInput, match="later than `until`"):
        lake.changes("t", newest(lake), newest(lake) - 1)
    with pytest.raises(lv.InvalidInput, match="entry 99"):
        lake.changes("t", 99)


def test_column_that_is_named_like_one_of_the_changes_is_refused(lake: lv.Lake) -> None:
    lake.create("c", pa.table({"_commit_seq": [1]}))
    with pytest.raises(lv.InvalidInput, match="_commit_seq"):
        lake.changes("c")


def test_log_that_was_cleaned_is_an_error_of_ours(lake: lv.Lake, tmp_path: Path) -> None:
    since = newest(lake)
    lake.append("t", [{"id": 50, "v": 1}])
    lake.append("t", [{"id": 51, "v": 1}])
    (tmp_path / "lake" / "t" / "_delta_log" / f"{1:020}.json").unlink()
    fresh = lv.Lake(tmp_path / "lake", engine="local")
    with pytest.raises(lv.LakeVillaError):
        fresh.changes("t", since)
