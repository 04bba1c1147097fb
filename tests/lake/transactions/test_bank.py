"""Clients on a real store that are killed and paused, and storms of deadlocks there: the short forms of
`python -m bench.bank` and `python -m bench.storm`."""

from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

import lakevilla as lv
from bench import bank, storm
from bench.bank_clients import Journals, Teller, find_wrong
from bench.stores.places import Place
from bench.stores.seaweed import S3Server


def test_bank_adds_up_while_clients_are_killed_and_paused(s3: S3Server, tmp_path: Path) -> None:
    teller = Teller(s3.new_url(), s3.storage_options, tmp_path, lease_seconds=0.5)
    report = bank.run(teller, seconds=5, clients=4, rest_after=2.5)
    assert report.violations == []
    assert min(report.committed, report.kills + report.pauses, report.deposits) > 0
    assert report.rests >= 2


@pytest.mark.long
@pytest.mark.parametrize("work", sorted(storm.WORK))
def test_storm_of_deadlocks_on_a_real_store_adds_up(s3: S3Server, work: str) -> None:
    told, wrong = storm.real(Place("s3", s3.new_url(), s3.storage_options), work, transactions=5, clients=3)
    assert wrong == []
    assert "15 commits, 0 gave up" in told


def _row(**values: int) -> SimpleNamespace:
    return SimpleNamespace(**{"id": 0, "balance": 5, "deposited": 3, "moved": 2, "changes": 4, **values})


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        (_row(), ""),
        (_row(balance=6), "does not add up"),
        (_row(balance=-1, moved=-4), "does not add up"),
        (_row(changes=3), "went back"),
        (_row(balance=4, deposited=2, changes=9), "went back"),
    ],
)
def test_reader_finds_an_account_that_does_not_add_up(
    row: SimpleNamespace, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.bank_clients.ACCOUNTS", 1)
    found = find_wrong([row], {0: _row()})
    assert [wrong in one for one in found] == ([True] if wrong else [])
    assert "its accounts are" in find_wrong([row, row], {})[0]


def test_journals_tell_who_was_answered(tmp_path: Path) -> None:
    (tmp_path / "client-0").write_text("B t1 5 left\nA t1\nB t2 0 left,right\nI 1\nB t3 1 left\n")
    (tmp_path / "client-1").write_text("B t4 7 right\nF t4\nX what is this\nI 2\n")
    told = Journals(tmp_path).read()
    assert (told.unanswered, told.acknowledged, told.failed) == ({"t2", "t3"}, {"t1"}, {"t4"})
    assert told.asked["t2"].tables == ("left", "right")
    assert told.complaints == ["client-1: what is this"]
    assert [Journals(tmp_path).rests(name, 2) for name in ("client-0", "client-1", "none")] == [
        False,
        True,
        False,
    ]


def _deposit(lake: lv.Lake, *tables: str) -> str:
    """The id of a transaction that pays five into an account of each table."""
    paid = {"balance": "balance + 5", "deposited": "deposited + 5", "changes": "changes + 1"}
    with lake.transaction(lv.R | lv.CT) as tx:
        for table in tables:
            tx.update(table, paid, where="id = 0")
    return tx.id


def test_books_add_up_or_say_what_does_not(tmp_path: Path) -> None:
    journals = tmp_path / "journals"
    journals.mkdir()
    lake = lv.Lake(tmp_path / "lake", engine="local", storage_options={"fsync": "false"}, lease_seconds=0.1)
    bank.make(lake)

    def check(*lines: str) -> list[str]:
        (journals / "client-0").write_text("\n".join(lines) + "\n")
        report = bank.Report()
        bank.Books(lake, Journals(journals), report).check(Random(1))
        return report.violations

    one, two = _deposit(lake, "left"), _deposit(lake, "left", "right")
    right = (f"B {one} 5 left", f"A {one}", f"B {two} 10 left,right")
    assert check(*right, f"A {two}") == check(*right) == []
    assert check(*right, f"B {'0' * 32} 5 right") == []
    lost = "1" * 32
    assert check(*right, f"B {lost} 5 left", f"A {lost}") == [f"{lost} was acknowledged and is in no table"]
    assert "failed and is in" in check(*right, f"F {two}")[0]
    assert "not in all of" in check(f"B {one} 5 left,right", *right[2:])[0]
    assert "and 5 were deposited" in check(*right[:2])[0]
