"""Which files of a manifest may hold a row for which a predicate is true: by bounds and by partition values.

Both are asked alike, as bounds of columns: a partition value of `day(ts)` bounds `ts`. A file stays only if
neither says no. Bounds are made once for each column of a manifest. Which manifests are read at all:
`manifest_pruning`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import NestedField, PrimitiveType

from lakevilla.files.partition_bounds import buckets, source_bounds
from lakevilla.files.partitioning import type_of
from lakevilla.files.transforms import PERIODS
from lakevilla.formats.iceberg.definition.layout import Layout
from lakevilla.formats.iceberg.manifests.cache import Manifest
from lakevilla.formats.iceberg.values import from_bytes
from lakevilla.predicates import ANYTHING, Column, Predicate
from lakevilla.pruning import Bounds, may_match

Mask = np.ndarray[Any, np.dtype[np.bool_]]


def matching(manifest: Manifest, predicate: Predicate, layout: Layout) -> Mask:
    """One flag per file of a manifest that was read."""
    entries = manifest.entries or ()
    keep: Mask = np.ones(len(entries), dtype=np.bool_)
    if predicate == ANYTHING or not entries:
        return keep
    keep &= may_match(predicate, lambda column: _statistics(manifest, column, layout), len(entries))
    keep &= may_match(predicate, lambda column: _partitions(manifest, column, layout), len(entries))
    return keep & _in_buckets(manifest, predicate, layout)


def _statistics(manifest: Manifest, column: Column, layout: Layout) -> Bounds | None:
    leaf = layout.leaves.get(column)
    if leaf is None:
        return None
    arrow = type_of(layout.schema, column)
    key = ("statistics", leaf.field_id, arrow)
    return _noted(manifest, key, lambda: _bounds(manifest, leaf, arrow))


def _bounds(manifest: Manifest, leaf: NestedField, arrow: pa.DataType) -> Bounds | None:
    kind = leaf.field_type
    assert isinstance(kind, PrimitiveType), "a leaf holds single values"
    entries = manifest.entries or ()
    lower, upper, nulls = [], [], []
    for entry in entries:
        low, high = (entry.of_column(name, leaf.field_id) for name in ("lower_bounds", "upper_bounds"))
        lower.append(None if low is None else from_bytes(kind, low))
        upper.append(None if high is None else from_bytes(kind, high))
        nulls.append(entry.of_column("null_value_counts", leaf.field_id))
    try:
        minimum, maximum = pa.array(lower, arrow), pa.array(upper, arrow)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        # A writer's bounds are not of the column's type: they do not count.
        return None
    rows = pa.array([entry.rows for entry in entries], pa.int64())
    return Bounds(minimum, maximum, pa.array(nulls, pa.int64()), rows)


def _partitions(manifest: Manifest, column: Column, layout: Layout) -> Bounds | None:
    """Bounds of a column by the partition field that bounds it most tightly."""
    spec = layout.specs[manifest.record["partition_spec_id"]]
    found = None
    for position, (field, name) in enumerate(zip(spec.fields, spec.names, strict=True)):
        transform = str(field.transform)
        if name == column and (found is None or transform == "identity"):
            arrow = type_of(layout.schema, column)
            key = ("partition", field.field_id, arrow)
            made = _noted(manifest, key, partial(_of_partition, manifest, position, transform, arrow))
            found = found if made is None else made
    return found


def _of_partition(manifest: Manifest, position: int, transform: str, arrow: pa.DataType) -> Bounds | None:
    entries = manifest.entries or ()
    values = [entry.partition[position] for entry in entries]
    ends = ends_of(transform, values, arrow)
    if ends is None:
        return None
    # A partition value is null just where the source is, in all rows.
    nulls = [entry.rows if value is None else 0 for entry, value in zip(entries, values, strict=True)]
    rows = [entry.rows for entry in entries]
    return Bounds(*ends, pa.array(nulls, pa.int64()), pa.array(rows, pa.int64()))


def ends_of(transform: str, values: Sequence[Any], arrow: pa.DataType) -> tuple[pa.Array, pa.Array] | None:
    """The least and the greatest value of a column for each of these partition values, if they bound it."""
    try:
        array = pa.array(values, pa.int32() if transform in PERIODS else arrow)
        return source_bounds(transform, array, arrow)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        # A writer's values are not of the column's type: they do not count.
        return None


def _in_buckets(manifest: Manifest, predicate: Predicate, layout: Layout) -> Mask:
    entries = manifest.entries or ()
    keep: Mask = np.ones(len(entries), dtype=np.bool_)
    spec = layout.specs[manifest.record["partition_spec_id"]]
    for position, (field, name) in enumerate(zip(spec.fields, spec.names, strict=True)):
        if name is not None and isinstance(field.transform, BucketTransform):
            arrow = type_of(layout.schema, name)
            wanted = buckets(predicate, name, field.transform.num_buckets, arrow)
            if wanted is not None:
                flags = [entry.partition[position] in wanted for entry in entries]
                keep &= np.array(flags, dtype=np.bool_)
    return keep


def _noted(manifest: Manifest, key: Any, make: Callable[[], Bounds | None]) -> Bounds | None:
    if key not in manifest.notes:
        manifest.notes[key] = make()
    found: Bounds | None = manifest.notes[key]
    return found
