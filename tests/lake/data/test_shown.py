"""What a lake gives back shows itself readably, at a prompt and in a notebook."""

import copy
import pickle
from dataclasses import asdict
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.maintenance.reports import Finding, Ticket


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    lake = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    lake.create("t", [{"id": 1}, {"id": 2}])
    return lake


def test_lake_is_closed_at_the_end_of_its_block(tmp_path: Path) -> None:
    with lv.Lake(tmp_path, engine="local") as lake:
        lake.create("t", "id INT")
        ended: list[bool] = []
        lake._background.start(lambda: ended.append(True))
    assert ended == [True]
    assert lake.tables() == ["t"]


def test_result_of_a_read_is_public(lake: lv.Lake) -> None:
    assert isinstance(lake.read("t"), lv.Result)
    assert isinstance(lake.sql("SHOW TABLES"), lv.Result)
    assert isinstance(lake.at(seq=1).read("t"), lv.Result)


def test_counts_say_their_numbers_and_nothing_else(lake: lv.Lake) -> None:
    with lake.transaction() as tx:
        counts = tx.delete("t", where="id = 1")
        assert repr(counts) == "Counts(inserted=0, updated=0, deleted=1)"
        assert type(counts).__name__ == "Counts"
        assert asdict(counts) == {"inserted": 0, "updated": 0, "deleted": 1}
        assert copy.copy(counts) == pickle.loads(pickle.dumps(counts)) == lv.Counts(deleted=1)


def test_counts_that_were_shown_count_as_seen(lake: lv.Lake) -> None:
    """Another commit changes how many rows match: only a client that has not looked is redone."""
    with lake.transaction() as unseen:
        later = unseen.delete("t", where="id > 1")
        lake.append("t", [{"id": 3}])
    assert later == lv.Counts(deleted=2)
    lake.append("t", [{"id": 4}])
    with pytest.raises(lv.Conflict), lake.transaction() as seen:
        repr(seen.delete("t", where="id > 1"))
        lake.append("t", [{"id": 5}])


def test_receipt_tells_what_differs_from_nothing(lake: lv.Lake) -> None:
    receipt = lake.run(lambda tx: tx.append("t", [{"id": 3}]))
    assert repr(receipt).startswith(f"Receipt(id='{receipt.id}', seq=2, versions={{'t': 1}}, requests=")
    assert "redone" not in repr(receipt)
    assert "<td>t</td><td>1</td>" in receipt._repr_html_()
    assert repr(lv.Receipt("a", redone=2)) == "Receipt(id='a', redone=2)"


def test_history_is_a_list_that_shows_a_table(lake: lv.Lake) -> None:
    lake.tag("<first>")
    entries, versions = lake.history(), lake.history("t")
    assert [entry.seq for entry in entries] == [2, 1]
    assert isinstance(entries, list)
    lines = repr(entries).splitlines()
    assert lines[0].split() == ["seq", "time", "kind", "tables", "tags", "transaction"]
    assert [line.split()[0] for line in lines[1:]] == ["2", "1"]
    assert "<td>&lt;first&gt; = 1</td>" in entries._repr_html_()  # type: ignore[attr-defined]
    assert "CREATE TABLE AS SELECT" in repr(versions)
    assert repr(versions[0]).startswith("HistoryEntry(version='0', time='2")
    assert repr(lake.history(limit=0)) == "[]"
    assert "kind='commit', tables='t v0'" in repr(entries[1])


def test_reports_show_the_text_that_they_print(lake: lv.Lake) -> None:
    diagnosis = lake.doctor(probe=False, files=False)
    for report in (lake.status(), lake.explain(), lake.recover(), lake.vacuum(), diagnosis):
        assert repr(report) == str(report)
        assert report._repr_html_().startswith("<pre>")


def test_html_of_reports_is_escaped() -> None:
    status = lv.Status(tickets=(Ticket("<t>", 1, "txn", 2.0),))
    assert "<td>&lt;t&gt;</td><td>1</td>" in status._repr_html_()
    explanation = lv.Explanation("lake", (Finding("first", "<b>"),))
    assert explanation._repr_html_() == "<pre>&lt;b&gt;</pre>"


def test_outcome_leaves_out_what_does_not_apply(lake: lv.Lake) -> None:
    outcome = lake.outcome(lake.history()[0].txn)
    assert repr(outcome).startswith("Outcome(txn=")
    assert "None" not in repr(outcome)
