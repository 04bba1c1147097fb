"""Which files of a manifest may hold a row for which a predicate is true: by bounds and by partition values.

Both are asked alike, as bounds of columns: a partition value of `day(ts)` bounds `ts`. A file stays only if
neither says no. Bounds are made once for each column of a manifest.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyiceberg.types import NestedField, PrimitiveType

from lakevilla.formats.iceberg.layout import Layout
from lakevilla.formats.iceberg.manifests import Manifest
from lakevilla.formats.iceberg.values import from_bytes
from lakevilla.predicates import ANYTHING, Bounds, Column, Predicate, may_match

Mask = np.ndarray[Any, np.dtype[np.bool_]]


def matching(manifest: Manifest, predicate: Predicate, layout: Layout) -> Mask:
    """One flag per file of a manifest that was read."""
    entries = manifest.entries or ()
    keep: Mask = np.ones(len(entries), dtype=np.bool_)
    if predicate == ANYTHING or not entries:
        return keep
    keep &= may_match(predicate, lambda column: _statistics(manifest, column, layout), len(entries))
    keep &= may_match(predicate, lambda column: _partitions(manifest, column, layout), len(entries))
    return keep


def _statistics(manifest: Manifest, column: Column, layout: Layout) -> Bounds | None:
    leaf = layout.leaves.get(column)
    if leaf is None:
        return None
    arrow = _arrow_type(layout.schema, column)
    key = ("statistics", leaf.field_id, arrow)
    return _noted(manifest, key, lambda: _bounds(manifest, leaf, arrow))


def _bounds(manifest: Manifest, leaf: NestedField, arrow: pa.DataType) -> Bounds | None:
    kind = leaf.field_type
    assert isinstance(kind, PrimitiveType), "a leaf holds single values"
    entries = manifest.entries or ()
    lower, upper, nulls = [], [], []
    for entry in entries:
        low, high = (
            _of(entry.file, "lower_bounds", leaf.field_id),
            _of(entry.file, "upper_bounds", leaf.field_id),
        )
        lower.append(None if low is None else from_bytes(kind, low))
        upper.append(None if high is None else from_bytes(kind, high))
        nulls.append(_of(entry.file, "null_value_counts", leaf.field_id))
    try:
        minimum, maximum = pa.array(lower, arrow), pa.array(upper, arrow)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        # Somebody's bounds are none of the column's type: they do not count.
        return None
    rows = pa.array([entry.rows for entry in entries], pa.int64())
    return Bounds(minimum, maximum, pa.array(nulls, pa.int64()), rows)


def _partitions(manifest: Manifest, column: Column, layout: Layout) -> Bounds | None:
    """Bounds of a column by the partition field that tells most of it."""
    spec = layout.specs[manifest.record["partition_spec_id"]]
    arrow = _arrow_type(layout.schema, column)
    found = None
    for position, (field, name) in enumerate(zip(spec.fields, spec.names, strict=True)):
        transform = str(field.transform)
        if name == column and transform == "identity":
            key = ("partition", field.field_id, arrow)
            made = _noted(manifest, key, lambda at=position: _made(manifest, at, arrow))  # type: ignore[misc]
            found = made if found is None or transform == "identity" else found
    return found


def _made(manifest: Manifest, position: int, arrow: pa.DataType) -> Bounds | None:
    entries = manifest.entries or ()
    values = [entry.partition[position] for entry in entries]
    same = pa.array(values, arrow)
    rows = pa.array([entry.rows for entry in entries], pa.int64())
    # A partition value is null just where the source is, in all rows.
    nulls = pa.array(
        [entry.rows if value is None else 0 for entry, value in zip(entries, values, strict=True)]
    )
    return Bounds(same, same, nulls.cast(pa.int64()), rows)


def _noted(manifest: Manifest, key: Any, make: Callable[[], Bounds | None]) -> Bounds | None:
    if key not in manifest.notes:
        manifest.notes[key] = make()
    found: Bounds | None = manifest.notes[key]
    return found


def _of(file: Any, name: str, number: int) -> Any:
    for pair in file.get(name) or ():
        if pair["key"] == number:
            return pair["value"]
    return None


def _arrow_type(schema: pa.Schema, column: Column) -> pa.DataType:
    found = schema.field(column[0]).type
    for name in column[1:]:
        found = found.field(name).type
    return found
