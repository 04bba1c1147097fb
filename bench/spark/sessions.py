"""Spark sessions for tests and benchmarks: one JVM with every jar, and in it sessions that differ.

A process has one JVM, and its jars are chosen when it starts; so it starts with all of them. The first
session is plain Spark, as a user of LakeVilla has it. Sessions for Delta and Iceberg bring their extensions
and catalogs for themselves alone, so that none of it touches what we measure and test of our own.
"""

import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from bench.spark.jars import EVERY, resolve

_DELTA = {"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"}
_ICEBERG = {
    "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.iceberg.type": "hadoop",
}


def start(
    settings: Mapping[str, str] | None = None, packages: Iterable[str] = EVERY, cores: int = 2
) -> SparkSession:
    """A plain local session in a JVM that has these packages; end it with `stop()`."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    jars = resolve(packages)
    chosen = {
        "spark.jars": ",".join(str(jar) for jar in jars),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir(), "lakevilla-warehouse")),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **(settings or {}),
    }
    builder: Any = SparkSession.builder
    for name, value in chosen.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.master(f"local[{cores}]").appName("LakeVilla tests").getOrCreate()
    return session


def with_delta(spark: SparkSession, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session of Spark + Delta in the JVM of this one, tuned as a small machine wants it."""
    resolve(EVERY)  # says what is wrong if this JVM had to start without
    extension = _jvm(spark).io.delta.sql.DeltaSparkSessionExtension()
    tuned = {
        "spark.databricks.delta.snapshotPartitions": "2",
        # VACUUM lists folders in as many tasks as this says: 10,000 otherwise.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    }
    return _beside(spark, extension, {**_DELTA, **tuned, **(settings or {})})


def with_iceberg(
    spark: SparkSession, warehouse: str, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """A session of Spark + Iceberg, whose catalog `iceberg` lies in the warehouse's folder or bucket."""
    resolve(EVERY)
    extension = _jvm(spark).org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions()
    place = {"spark.sql.catalog.iceberg.warehouse": warehouse}
    return _beside(spark, extension, {**_ICEBERG, **place, **(settings or {})})


def s3a(options: Mapping[str, str]) -> dict[str, str]:
    """Settings of a session that may use the server of these storage options."""
    return {
        "fs.s3a.endpoint": options["AWS_ENDPOINT_URL"],
        "fs.s3a.endpoint.region": options["AWS_REGION"],
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "fs.s3a.access.key": options["AWS_ACCESS_KEY_ID"],
        "fs.s3a.secret.key": options["AWS_SECRET_ACCESS_KEY"],
    }


def _jvm(spark: SparkSession) -> Any:
    assert spark._jvm is not None, "the session is not one of Spark Connect"
    return spark._jvm


def _beside(spark: SparkSession, extension: JavaObject, settings: Mapping[str, str]) -> SparkSession:
    """Another session of the same JVM. A builder makes one only where none is active or the default."""
    sessions = _jvm(spark).org.apache.spark.sql.classic.SparkSession
    usual = spark._jsparkSession
    sessions.clearActiveSession()
    sessions.clearDefaultSession()
    try:
        builder = sessions.builder().withExtensions(extension)
        for name, value in settings.items():
            builder = builder.config(name, value)
        made = builder.getOrCreate()
    finally:
        sessions.setDefaultSession(usual)
        sessions.setActiveSession(usual)
    return SparkSession(spark.sparkContext, made)
