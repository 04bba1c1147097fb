"""What bounds of files say of a predicate: they may keep too much, never too little."""

from typing import Any

import pyarrow as pa
import pytest

from lakevilla.predicates import Compare, Operator
from lakevilla.pruning import Bounds, may_match

NAN = float("nan")


def keeps(low: Any, high: Any, operator: Operator, value: Any, data_type: pa.DataType) -> bool:
    count = pa.array([0], pa.int64()), pa.array([10], pa.int64())
    bounds = Bounds(pa.array([low], data_type), pa.array([high], data_type), *count)
    return bool(may_match(Compare(("x",), operator, value), lambda column: bounds, 1)[0])


@pytest.mark.parametrize("data_type", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("operator", ["=", "<", "<=", ">", ">="])
@pytest.mark.parametrize(("low", "high"), [(NAN, NAN), (1.0, NAN), (NAN, 9.0)])
def test_bound_that_is_nan_keeps_the_file(
    low: float, high: float, operator: Operator, data_type: pa.DataType
) -> None:
    assert keeps(low, high, operator, 5.0, data_type)


def test_bound_beside_nan_still_counts() -> None:
    assert not keeps(6.0, NAN, "=", 5.0, pa.float64())
    assert not keeps(6.0, NAN, "<", 5.0, pa.float64())
    assert not keeps(NAN, 4.0, "=", 5.0, pa.float64())
