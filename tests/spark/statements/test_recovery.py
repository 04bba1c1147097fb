"""Recovery on Spark: a transaction that outlives its client, and markers in the log."""

from pathlib import Path
from typing import Any

import pytest

import lakevilla as lv


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> lv.Lake:
    lake = lv.Lake(tmp_path, spark=spark, features=lv.R)
    lake.create("t", "id BIGINT, v BIGINT")
    lake.append("t", spark.range(0, 20_000, 1, 2).selectExpr("id", "0L AS v"))
    return lake


def total(lake: lv.Lake | lv.Transaction) -> tuple[int, int]:
    row = lake.sql("SELECT count(*) AS n, sum(v) AS s FROM t").collect()[0]
    return row.n, row.s


def test_restarted_client_goes_on_after_the_last_statement(lake: lv.Lake, spark: Any, tmp_path: Path) -> None:
    old = lake.transaction(lv.R)
    old.sql("UPDATE t SET v = v + 1 WHERE id < 100")
    old.append("t", spark.range(20_000, 40_000, 1, 2).selectExpr("id", "1L AS v"))
    lake.close()
    again = lv.Lake(tmp_path, spark=spark, features=lv.R)
    with again.resume(old.id) as tx:
        assert (tx.statements, total(tx)) == (2, (40_000, 20_100))
        tx.sql("DELETE FROM t WHERE id >= 30000")
    assert total(again) == (30_000, 10_100)
    with pytest.raises(lv.Fenced):
        old.commit()
    assert total(again) == (30_000, 10_100)


def test_statement_of_the_old_client_is_redone_after_another_commit(lake: lv.Lake, spark: Any) -> None:
    old = lake.transaction(lv.R)
    old.sql("UPDATE t SET v = v + 1")
    old.sql("DELETE FROM t WHERE id = 7")
    lake.close()
    with lake.resume(old.id) as tx:
        lv.Lake(lake.url, spark=spark, features=lv.R).sql("UPDATE t SET v = 10 WHERE id < 10")
    assert tx.receipt is not None
    assert tx.receipt.redone == 2
    assert total(lake) == (19_999, 9 * 11 + 19_990)


def test_markers_in_the_log_hold_versions_on_spark(spark: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=spark, features=lv.R)
    lake.create("t", "id BIGINT, v BIGINT", properties={"lakevilla.markers": "log"})
    lake.append("t", spark.range(0, 20_000, 1, 2).selectExpr("id", "0L AS v"))
    with lake.transaction(lv.R) as tx:
        tx.sql("UPDATE t SET v = v + 1 WHERE id < 100")
        tx.sql("UPDATE t SET v = v + 1 WHERE id < 50")
        held = lake.history("t")[0].version
        assert total(lake) == (20_000, 0)
    assert tx.receipt is not None
    assert tx.receipt.versions == {"t": held + 1}
    assert total(lake) == (20_000, 150)
