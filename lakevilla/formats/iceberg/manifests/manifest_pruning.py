"""Which manifests are worth reading for a predicate, by what the list says of their partition values.

A manifest is skipped only if no file of it can hold a row for which the predicate is true: so what a
selective statement reads of a table's metadata grows with what it selects. `file_pruning`
chooses files.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lakevilla.files.partitioning import type_of
from lakevilla.formats.iceberg.definition.layout import Layout
from lakevilla.formats.iceberg.definition.specs import Spec
from lakevilla.formats.iceberg.manifests.cache import Manifest
from lakevilla.formats.iceberg.manifests.file_pruning import Mask, ends_of
from lakevilla.formats.iceberg.values import from_bytes
from lakevilla.predicates import ANYTHING, Predicate
from lakevilla.pruning import Bounds, may_match

Summary = Mapping[str, Any]
"""What a manifest list says of one partition field over all files of a manifest."""


def worth_reading(manifests: Sequence[Manifest], predicate: Predicate, layout: Layout) -> list[Manifest]:
    """Those of these manifests that may name a file with such a row, in their order."""
    if predicate == ANYTHING:
        return list(manifests)
    by_spec: dict[int, list[Manifest]] = {}
    for manifest in manifests:
        by_spec.setdefault(manifest.record["partition_spec_id"], []).append(manifest)
    chosen: set[str] = set()
    for spec_id, some in by_spec.items():
        spec = layout.specs.get(spec_id)
        flags = _all(some) if spec is None else _may_match(some, predicate, spec, layout)
        chosen |= {some[int(at)].path for at in np.flatnonzero(flags)}
    return [manifest for manifest in manifests if manifest.path in chosen]


def _may_match(manifests: Sequence[Manifest], predicate: Predicate, spec: Spec, layout: Layout) -> Mask:
    keep = _all(manifests)
    for position, name in enumerate(spec.names):
        if name is not None:
            bounds = _bounds(manifests, position, spec, type_of(layout.schema, name))
            keep &= may_match(predicate, {name: bounds}.get, len(manifests))
    return keep


def _bounds(manifests: Sequence[Manifest], position: int, spec: Spec, arrow: pa.DataType) -> Bounds | None:
    """Bounds of the column that a partition field comes from, over each of these manifests of one spec."""
    summaries = [_summary(manifest, position, spec) for manifest in manifests]
    transform = str(spec.fields[position].transform)
    lowest = ends_of(
        transform, [_value(summary, "lower_bound", position, spec) for summary in summaries], arrow
    )
    highest = ends_of(
        transform, [_value(summary, "upper_bound", position, spec) for summary in summaries], arrow
    )
    if lowest is None or highest is None:
        return None
    nulls = [0 if summary.get("contains_null") is False else None for summary in summaries]
    # How many rows there are is not asked of manifests whose nulls are not counted.
    rows = pa.array([1] * len(summaries), pa.int64())
    return Bounds(lowest[0], highest[1], pa.array(nulls, pa.int64()), rows)


def _summary(manifest: Manifest, position: int, spec: Spec) -> Summary:
    """Empty if the list has no bounds, or bounds that do not fit."""
    summaries = manifest.record.get("partitions") or ()
    return summaries[position] if len(summaries) == len(spec.fields) else {}


def _value(summary: Summary, end: str, position: int, spec: Spec) -> Any:
    data = summary.get(end)
    if data is None:
        return None
    kind: Any = spec.partition_type.fields[position].field_type
    return spec.plain_at(position, from_bytes(kind, data))


def _all(manifests: Sequence[Manifest]) -> Mask:
    return np.ones(len(manifests), dtype=np.bool_)
