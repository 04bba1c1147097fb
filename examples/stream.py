"""A Spark stream into two tables, which can be killed at any moment and started again.

    python examples/stream.py LAKE FOLDER CHECKPOINT

Parquet files in the folder are the source. Every batch is one transaction: its rows go to `events`, and their
sums to `totals`. A reader sees both or neither, and every row is there exactly once.
"""

import sys
from typing import Any

from pyspark.sql import SparkSession

import lakevilla as lv


def load(tx: lv.Transaction, batch: Any, number: int) -> None:
    print(f"batch {number}", flush=True)
    tx.append("events", batch)
    tx.append("totals", batch.selectExpr("id", "v * 10 AS v"))


def run(spark: Any, root: str, folder: str, checkpoint: str) -> None:
    """Work through all files that are there."""
    lake = lv.Lake(root, spark=spark)
    with lake.transaction() as tx:
        tx.sql("CREATE TABLE IF NOT EXISTS events (id BIGINT, v BIGINT)")
        tx.sql("CREATE TABLE IF NOT EXISTS totals (id BIGINT, v BIGINT)")
    stream = spark.readStream.schema("id BIGINT, v BIGINT").option("maxFilesPerTrigger", 1).parquet(folder)
    query = (
        stream.writeStream.foreachBatch(lv.streaming.sink(lake, load, app="events"))
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    print("done", flush=True)


if __name__ == "__main__":
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    run(session, *sys.argv[1:4])
