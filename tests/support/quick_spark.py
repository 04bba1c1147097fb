"""What makes Spark quick on tables of a few rows, in a JVM that lives for some minutes."""

YOUNG_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The second compiler and parallel collection only take cores away from many small jobs."""

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""To compile a query takes longer than to run it. For clients that are not what is tested."""

FEW_ROWS = {**INTERPRETED, "spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false"}
"""Nor is there much to shuffle."""
