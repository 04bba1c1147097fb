"""Rows of one partition of a table brought together, so that not every task writes a file of each.

Nothing depends on it but the number of files: tasks divide the rows that they get exactly. So Spark's own
expressions need not mean quite the same as a transform (its days begin where the session's time zone says).
"""

from typing import Any

import pyarrow as pa
from pyspark.sql.functions import expr
from pyspark.sql.pandas.functions import arrow_udf

from lakevilla.engines.port import Target
from lakevilla.engines.spark.names import Names
from lakevilla.engines.spark.types import quoted
from lakevilla.files.partitioning import type_of
from lakevilla.files.transforms import PERIODS, apply, parsed
from lakevilla.model import PartitionField


def spread(frame: Any, target: Target, names: Names) -> Any:
    """The rows, those of one partition in few tasks; columns may be added to them."""
    keys, added = [], {}
    for number, field in enumerate(target.partitioning.fields):
        if field.transform == "identity" and len(field.source) == 1:
            keys.append(quoted(field.source[0]))
        elif field.transform != "void":
            added[names.key(number)] = _expression(field, type_of(target.schema, field.source))
            keys.append(names.key(number))
    frame = frame.withColumns(added) if added else frame
    return frame.hint("rebalance", *keys) if keys else frame


def _expression(field: PartitionField, data_type: pa.DataType) -> Any:
    source = ".".join(quoted(name) for name in field.source)
    what = parsed(field.transform)
    if what.name == "identity":
        return expr(source)
    if what.name in PERIODS:
        return expr(f"date_trunc('{what.name}', {source})")
    if what.name == "bucket":
        return _applied(field.transform)(source)
    if pa.types.is_decimal(data_type):
        return expr(f"floor(CAST({source} AS DOUBLE) * 1e{data_type.scale} / {what.width})")
    if pa.types.is_integer(data_type):
        return expr(f"floor(CAST({source} AS DOUBLE) / {what.width})")
    return expr(f"substring({source}, 1, {what.width})")


def _applied(transform: str) -> Any:
    """The transform as a function that runs in Python workers: Spark's hashes are others than Iceberg's."""

    def applied(values: pa.Array) -> pa.Array:
        return apply(transform, values)

    # The kind follows from the hints above, which PySpark prefers; its stubs ask for it all the same.
    return arrow_udf(applied, "int")  # type: ignore[call-overload]
