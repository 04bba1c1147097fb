"""A lake in a bucket on the user's session, which has the jars for S3 and no credentials.

Executors and Hadoop get them from the lake's `storage_options`; nothing else ever sees them.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa

import lakevilla as lv
from bench.stores.seaweed import S3Server
from lakevilla.store.open import open_store


def test_statements_in_a_bucket_leave_no_secret_behind(
    spark: Any, s3: S3Server, tmp_path: Path, capfd: Any, caplog: Any
) -> None:
    caplog.set_level("DEBUG", logger="lakevilla")
    url, options = s3.new_url(), s3.storage_options
    lake = lv.Lake(url, spark=spark, storage_options=options)
    lake.create("t", "id BIGINT, v STRING, p STRING", partition_by=["p"])
    data = spark.range(0, 100, 1, 2).selectExpr("id", "'new' AS v", "concat('ü/', id % 2) AS p")
    assert lake.append("t", data).inserted == 100
    assert lake.sql("UPDATE t SET v = 'changed' WHERE id < 10").updated == 10
    assert lake.delete("t", "p = 'ü/1' AND id > 50").deleted == 25
    changes = pa.table({"id": [0, 1000], "v": ["merged", "merged"], "p": ["ü/0", "ü/0"]})
    lake.merge("t", changes, "source.id = target.id", matched="update", not_matched="insert")
    frame = lake.read("t")
    counts = {row.v: row["count"] for row in frame.groupBy("v").count().collect()}
    assert counts == {"merged": 2, "changed": 9, "new": 65}
    judge = lv.Lake(url, engine="local", storage_options=options).read("t").toArrow()
    assert sorted(judge.column("id").to_pylist()) == sorted(row.id for row in frame.collect())

    secret = options["AWS_SECRET_ACCESS_KEY"]
    store = open_store(url, options)
    objects = [listed.key for listed in store.list("")]
    assert any(key.endswith(".parquet") for key in objects)
    assert not [key for key in objects if secret.encode() in store.get(key).data]
    told = capfd.readouterr()
    assert secret not in told.out + told.err + caplog.text
    assert secret not in str(frame._jdf.queryExecution().toString()) + str(
        frame._jdf.queryExecution().logical()
    )
    assert secret not in str(spark.sparkContext.getConf().getAll()) + str(spark.sql("SET").collect())
