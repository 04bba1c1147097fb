"""Tables that are made and dropped inside a transaction, on Spark as on the local engine."""

from pathlib import Path
from typing import Any

import lakevilla as lv
from tests.spark.both import content


def _work(tx: lv.Transaction) -> list[Any]:
    """Make tables in each way, change and read them, and replace one by another."""
    tx.sql("CREATE TABLE plain (id BIGINT, v BIGINT) PARTITIONED BY (day DATE)")
    tx.sql("INSERT INTO plain SELECT id, v, DATE'2026-01-31' FROM src WHERE id <= 2")
    tx.append("plain", [{"id": 7, "v": 70}])
    tx.sql("UPDATE plain SET v = v + 1 WHERE id = 1")
    tx.sql("DELETE FROM plain WHERE id = 2")
    tx.sql("CREATE TABLE made AS SELECT id, sum(v) AS total FROM src GROUP BY id")
    tx.sql(
        "MERGE INTO made USING plain ON made.id = plain.id WHEN MATCHED THEN UPDATE SET total = plain.v "
        "WHEN NOT MATCHED THEN INSERT (id, total) VALUES (plain.id, plain.v)"
    )
    seen = [content(tx.read("plain")), content(tx.sql("SELECT * FROM made JOIN plain USING (id)"))]
    tx.sql("DROP TABLE src")
    tx.sql("CREATE TABLE src AS SELECT * FROM made")
    return [*seen, content(tx.sql("SELECT * FROM src WHERE id < 3")), content(tx.sql("SHOW TABLES"))]


def test_tables_made_on_spark_are_what_they_are_locally(spark: Any, tmp_path: Path) -> None:
    places = {name: tmp_path / name for name in ("spark", "local")}
    for path in places.values():
        maker = lv.Lake(path, engine="local")
        maker.create("src", "id BIGINT, v BIGINT")
        maker.append("src", [{"id": number, "v": 10 * number} for number in (1, 2, 3)])
    lakes = {
        "spark": lv.Lake(places["spark"], spark=spark),
        "local": lv.Lake(places["local"], engine="local"),
    }
    seen = {}
    for name, lake in lakes.items():
        with lake.transaction(lv.R | lv.CT) as tx:
            seen[name] = _work(tx)
            assert lake.tables() == ["src"]
            lv.Lake(places[name], engine="local").append("src", [{"id": 4, "v": 40}])
        assert tx.receipt is not None
        assert tx.receipt.redone > 0
    assert seen["spark"] == seen["local"]
    judges = [lv.Lake(path, engine="local") for path in places.values()]
    assert [judge.tables() for judge in judges] == [["made", "plain", "src"]] * 2
    for table in ("made", "plain", "src"):
        assert content(judges[0].read(table)) == content(judges[1].read(table))
    assert [row[0] for row in judges[0].sql("SELECT id FROM src ORDER BY id").collect()] == [1, 2, 3, 4, 7]
