"""A transaction that another client continues or commits has the feed of all of its statements."""

from collections import Counter
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.transaction.lifecycle import start
from tests.support.lakes.abandoned import abandon, add, make_two_tables, open_lake


@pytest.fixture(autouse=True)
def stored_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "STORED_AFTER_SECONDS", 0.0)


FEED = "ALTER TABLE a SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"


@pytest.mark.formats("delta", "vectors")
def test_resumed_transaction_puts_its_statements_together(tmp_path: Path) -> None:
    make_two_tables(tmp_path)
    open_lake(tmp_path).sql(FEED)
    old = abandon(tmp_path, add("a", 1), add("a", 2), add("b", 1))
    lake = open_lake(tmp_path)
    with lake.resume(old.id) as tx:
        tx.sql("UPDATE a SET v = v + 10 WHERE id = 1")
        tx.sql("DELETE FROM a WHERE id = 2")
    rows = lake.changes("a", lake.history()[0].seq - 1).toArrow().to_pylist()
    assert {row["_transaction"] for row in rows} == {old.id}
    assert Counter((row["id"], row["v"], row["_change_type"]) for row in rows) == Counter(
        [(1, 0, "update_preimage"), (1, 11, "update_postimage"), (2, 0, "delete")]
    )


def test_resume_without_a_file_of_the_feed_is_refused(tmp_path: Path) -> None:
    make_two_tables(tmp_path)
    open_lake(tmp_path).sql(FEED)
    old = abandon(tmp_path, add("a", 1), add("a", 2))
    lake = open_lake(tmp_path)
    for path in (tmp_path / "a" / "_change_data").iterdir():
        path.unlink()
    with pytest.raises(lv.Conflict, match="_change_data"):
        lake.resume(old.id)
    assert lake.read("a").count() == 3
