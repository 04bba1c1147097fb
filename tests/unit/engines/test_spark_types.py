"""Which of a table's types Spark can hold."""

import pyarrow as pa
import pytest
from pyspark.sql import types as spark

from lakevilla.engines.spark import types
from lakevilla.errors import InvalidInput, Unsupported


@pytest.mark.parametrize("data_type", [pa.time64("us"), pa.binary(3), pa.timestamp("ns", "UTC")])
@pytest.mark.parametrize("inside", [False, True])
def test_type_that_spark_lacks_is_refused_with_a_way_out(data_type: pa.DataType, inside: bool) -> None:
    wanted = pa.list_(pa.struct([pa.field("a", data_type)])) if inside else data_type
    with pytest.raises(Unsupported, match="engine='local'"):
        types.logical(wanted)


def test_map_without_a_type_for_its_keys_is_refused_with_a_way_out() -> None:
    void = spark.NullType()
    with pytest.raises(InvalidInput, match="CAST"):
        types.arrow_type(spark.ArrayType(spark.MapType(void, void, False)))
