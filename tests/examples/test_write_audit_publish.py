"""`examples/write_audit_publish.py`: what fails its tests is never seen."""

from decimal import Decimal
from pathlib import Path

import pytest

import lakevilla as lv
from examples import write_audit_publish as example

GOOD = "id,customer,day,amount\n1, Ada ,2026-01-01,10.00\n2,Grace,2026-01-02,20.50\n3,ada,2026-01-02,\n"
BAD = "id,customer,day,amount\n2,Grace,2026-01-03,5.00\n4,Alan,2026-01-03,-7.00\n"
MORE = "id,customer,day,amount\n5,ADA,2026-01-02,1.25\n"


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    for name, text in (("good", GOOD), ("bad", BAD), ("more", MORE)):
        (tmp_path / f"{name}.csv").write_text(text)
    return lv.Lake(tmp_path / "lake", engine="local", storage_options={"fsync": "false"})


def seen(lake: lv.Lake) -> list[tuple[str, int, float]]:
    rows = lake.read("customers").collect()
    return sorted((row.customer, row.orders, float(row.amount)) for row in rows)


def test_models_that_pass_are_published_together(lake: lv.Lake, tmp_path: Path) -> None:
    first = example.publish(lake, tmp_path / "good.csv")
    second = example.publish(lake, tmp_path / "more.csv")
    assert set(first.versions) == {"raw_orders", *example.MODELS}
    assert seen(lake) == [("ada", 2, 11.25), ("grace", 1, 20.5)]
    assert set(second.versions) == set(first.versions)
    then = lake.at(seq=first.seq)
    assert then.sql("SELECT sum(amount) AS amount FROM daily").collect()[0].amount == Decimal("30.50")


def test_models_that_fail_leave_what_was_published(
    lake: lv.Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(example.AuditFailed):
        example.publish(lake, tmp_path / "bad.csv")
    assert lake.tables() == []
    example.publish(lake, tmp_path / "good.csv")
    before = lake.history()[0].seq
    with pytest.raises(example.AuditFailed) as failed:
        example.publish(lake, tmp_path / "bad.csv")
    assert set(failed.value.found) == {"orders.id is unique", "orders.amount is positive"}
    assert (lake.history()[0].seq, lake.read("raw_orders").count()) == (before, 3)
    assert seen(lake) == [("ada", 1, 10.0), ("grace", 1, 20.5)]
    assert example.main(lake.url, str(tmp_path / "bad.csv")) == 1
    assert "orders.id is unique: 1 rows" in capsys.readouterr().out


def test_rows_that_come_while_it_runs_are_built_too(
    lake: lv.Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example.publish(lake, tmp_path / "good.csv")
    work = example._work
    late = lv.Lake(lake.url, engine="local")

    def interrupted(tx: lv.Transaction, file: Path) -> None:
        work(tx, file)
        monkeypatch.setattr(example, "_work", work)
        late.append("raw_orders", [{"id": 9, "customer": "Late", "amount": 1}])

    monkeypatch.setattr(example, "_work", interrupted)
    example.publish(lake, tmp_path / "more.csv")
    assert seen(lake) == [("ada", 2, 11.25), ("grace", 1, 20.5), ("late", 1, 1.0)]
