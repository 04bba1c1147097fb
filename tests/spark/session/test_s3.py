"""A lake in a bucket, on a session that LakeVilla starts, with the jars that it needs."""

import json
import subprocess
import sys

import pytest

import lakevilla as lv
from bench.spark.jars import S3A, resolve
from bench.stores.seaweed import S3Server

PROGRAM = """
import json, sys
import lakevilla as lv
url, options = sys.argv[1], json.loads(sys.argv[2])
lake = lv.Lake(url, engine="spark", storage_options=options)
lake.create("t", "id BIGINT, p STRING", partition_by=["p"])
lake.append("t", lake.sql("SELECT id, concat('p ', id % 2) AS p FROM range(100)"))
counts = lake.sql("UPDATE t SET id = id + 1000 WHERE id < 10")
total = lake.sql("SELECT count(*) AS n, sum(id) AS s FROM t WHERE p = 'p 1'").collect()[0]
print(json.dumps([counts.updated, total.n, total.s]))
"""


@pytest.mark.long
def test_lake_in_a_bucket_works_with_a_session_of_its_own(s3: S3Server) -> None:
    resolve(S3A)  # says so where Maven Central cannot be reached
    url = s3.new_url()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, url, json.dumps(s3.storage_options)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [10, 50, 5 * 1000 + sum(range(1, 100, 2))]
    assert s3.storage_options["AWS_SECRET_ACCESS_KEY"] not in done.stderr
    assert lv.Lake(url, engine="local", storage_options=s3.storage_options).read("t").count() == 100
