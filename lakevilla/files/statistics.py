"""Bounds and null counts of a data file's columns, as its Parquet footer tells them.

The Parquet writer has looked at every value already, so the footer costs nothing. It says nothing of
NaN, which it leaves out of its bounds: those are looked for while the rows pass by. Bounds here are
exact; how a format rounds or shortens them is the format's affair.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakevilla.files.leaves import Leaf
from lakevilla.model import ColumnStatistics


def bounded(leaf: Leaf) -> bool:
    """Whether the leaf can have bounds: it lies in no list or map, and its type has a useful order."""
    return leaf.path is not None and not (pa.types.is_binary(leaf.type) or pa.types.is_null(leaf.type))


def holds_nan(rows: pa.Table, leaf: Leaf) -> bool:
    """Whether a floating point leaf has a NaN among these rows."""
    if leaf.path is None or not pa.types.is_floating(leaf.type):
        return False
    column = rows.column(leaf.path[0])
    if len(leaf.path) > 1:
        column = pc.struct_field(column, list(leaf.path[1:]))
    return bool(pc.any(pc.is_nan(column)).as_py())


def file_statistics(
    footer: pq.FileMetaData, leaves: tuple[Leaf, ...], with_nan: set[Leaf]
) -> dict[tuple[str, ...], ColumnStatistics]:
    """Statistics by logical path; `leaves` are the file's, in order, `with_nan` those that hold a NaN."""
    groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    found = {}
    for position, leaf in enumerate(leaves):
        if leaf.path is not None:
            columns = [group.column(position).statistics for group in groups]
            statistics = _column_statistics(columns, bounded(leaf) and leaf not in with_nan)
            if statistics is not None:
                found[leaf.path] = statistics
    return found


def _column_statistics(groups: list[Any], with_bounds: bool) -> ColumnStatistics | None:
    if any(group is None or not group.has_null_count for group in groups):
        return None
    nulls = sum(group.null_count for group in groups)
    filled = [group for group in groups if group.num_values]
    if not with_bounds or not filled or not all(group.has_min_max for group in filled):
        return ColumnStatistics(None, None, nulls)
    try:
        return ColumnStatistics(min(group.min for group in filled), max(group.max for group in filled), nulls)
    except (OverflowError, ValueError):
        # A date that Python's calendar does not reach.
        return ColumnStatistics(None, None, nulls)
