"""Each expression of a change is evaluated once, for one row; what cannot be is refused by both engines."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import lakevilla as lv
from lakevilla.engines.spark.write import writer

REFUSED = [
    "UPDATE t SET a = row_number() OVER (ORDER BY b)",
    "UPDATE t SET a = 1 WHERE row_number() OVER (ORDER BY b) = 1",
    "UPDATE t SET a = sum(b)",
    "UPDATE t SET a = explode(array(1, 2))",
    "DELETE FROM t WHERE count(*) OVER () > 5",
    "DELETE FROM t WHERE count(*) > 0",
    "INSERT INTO t REPLACE WHERE count(*) OVER () > 0 SELECT * FROM t",
    "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN UPDATE SET b = row_number() OVER (ORDER BY t.b)",
    "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED AND sum(t.b) OVER () > 0 THEN DELETE",
    "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN UPDATE SET b = max(t.b)",
    "MERGE INTO t USING u ON t.a = max(u.a) WHEN MATCHED THEN DELETE",
    "MERGE INTO t USING u ON t.a = u.a WHEN NOT MATCHED THEN INSERT (a) VALUES (count(*))",
    "MERGE INTO t USING u ON t.a = u.a "
    "WHEN NOT MATCHED BY SOURCE AND rank() OVER (ORDER BY t.a) = 1 THEN DELETE",
    "MERGE INTO t USING u ON t.a = u.a AND window(now(), '1 day').start > now() WHEN MATCHED THEN DELETE",
]


@pytest.fixture
def lakes(quick: Any, tmp_path: Path) -> list[lv.Lake]:
    made = [lv.Lake(tmp_path / "s", spark=quick), lv.Lake(tmp_path / "l", engine="local")]
    for lake in made:
        lake.create("t", [{"a": n, "b": n * 10, "c": 0} for n in range(40)])
        lake.create("u", [{"a": 1}, {"a": 100}])
    return made


def test_expression_over_several_rows_is_refused_by_both_engines(lakes: list[lv.Lake]) -> None:
    for lake in lakes:
        for text in REFUSED:
            with pytest.raises(lv.InvalidInput):
                lake.sql(text)
        assert [entry.version for entry in lake.history("t")] == [0]


def test_window_in_a_subquery_is_no_expression_over_several_rows(lakes: list[lv.Lake]) -> None:
    text = "DELETE FROM t WHERE a IN (SELECT n FROM (SELECT row_number() OVER (ORDER BY a) AS n FROM u))"
    for lake in lakes:
        assert lake.sql(text).deleted == 2


CHANCES = [
    "UPDATE t SET a = 1 WHERE rand() < 0.5",
    "DELETE FROM t WHERE rand() < 0.5",
    "MERGE INTO t USING u ON t.a = u.a AND rand() < 0.5 WHEN MATCHED THEN DELETE",
    "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED AND rand() < 0.5 THEN UPDATE SET a = 1, b = 1, c = 1",
    "MERGE INTO t USING u ON t.a = u.a WHEN NOT MATCHED BY SOURCE AND uuid() < '8' THEN DELETE",
    "DELETE FROM t WHERE by_chance(a) < 0.5",
    "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED AND by_chance(t.a) < 0.5 THEN DELETE",
    "DELETE FROM t WHERE a IN (SELECT a FROM u TABLESAMPLE (50 PERCENT))",
    "MERGE INTO t USING u ON t.a = u.a AND u.a IN (SELECT a FROM u TABLESAMPLE (50 PERCENT)) "
    "WHEN NOT MATCHED THEN INSERT (a) VALUES (u.a)",
]


def test_condition_by_chance_is_refused(quick: Any, lakes: list[lv.Lake]) -> None:
    quick.udf.register("by_chance", F.udf(lambda value: 0.1, "double").asNondeterministic())
    for text in CHANCES:
        with pytest.raises(lv.InvalidInput):
            lakes[0].sql(text)
    assert [entry.version for entry in lakes[0].history("t")] == [0]


@pytest.mark.parametrize("few_rows", [-1, 10_000], ids=["by tasks", "here"])
def test_value_by_chance_is_drawn_once(
    lakes: list[lv.Lake], few_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "FEW_ROWS", few_rows)
    lake = lakes[0]
    lake.sql("CREATE TABLE i (a BIGINT, n INT)")
    lake.sql("INSERT INTO i SELECT a, 0 FROM t")
    # Half of the values would not fit: either a value is refused, or it is stored.
    with pytest.raises(lv.InvalidInput):
        lake.sql("UPDATE i SET n = rand() * 4294967296")
    lake.sql("UPDATE i SET n = rand() * 2147483647")
    assert lake.sql("SELECT * FROM i WHERE n IS NULL").count() == 0
    lake.sql("MERGE INTO i USING t ON i.a = t.a WHEN MATCHED THEN UPDATE SET n = rand() * 2147483647")
    assert lake.sql("SELECT * FROM i WHERE n IS NULL").count() == 0


def test_source_by_chance_gives_one_result(quick: Any, lakes: list[lv.Lake]) -> None:
    lake = lakes[0]
    drawn = quick.range(0, 200, 1, 2).selectExpr("CAST(rand() * 100000 AS BIGINT) AS a", "id AS b")
    merge = lake.merge("t", drawn, "target.a = source.a AND target.a > 50", not_matched={"a": "source.a"})
    assert merge.inserted == 200
    again = quick.range(0, 40).where("rand() < 0.5").selectExpr("id AS a", "uuid() AS u")
    counts = lake.merge(
        "t",
        again,
        "target.a = source.a AND target.c = 0",
        matched=[(None, {"b": "hash(u)", "c": "hash(u)"})],
    )
    changed = lake.sql("SELECT b, c FROM t WHERE a < 40 AND c <> 0").collect()
    assert len(changed) == counts.updated
    assert all(row.b == row.c for row in changed)
