"""Bounds and null counts of a data file's columns, from its Parquet footer.

The Parquet writer has looked at every value already, so the footer costs nothing. It says nothing of
NaN, which it leaves out of its bounds, while to Spark NaN is larger than any number: a reader that trusts
such bounds misses rows. So NaN is looked for while the rows pass by, and a leaf that holds one gets no
statistics in the footer. Bounds here are exact; formats round or shorten them as they need.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakevilla.files.leaves import Leaf, member
from lakevilla.model import ColumnStatistics


def bounded(leaf: Leaf) -> bool:
    """Whether the leaf can have bounds: it lies in no list or map, and its type has a useful order."""
    return leaf.path is not None and not (pa.types.is_binary(leaf.type) or pa.types.is_null(leaf.type))


def holds_nan(rows: pa.Table, leaf: Leaf) -> bool:
    """Whether a floating point leaf has a NaN among these rows."""
    if leaf.path is None or not pa.types.is_floating(leaf.type):
        return False
    return bool(pc.any(pc.is_nan(_values(rows, leaf.path))).as_py())


def count_nulls(rows: pa.Table, leaf: Leaf) -> int:
    """How many of these rows have no value in a leaf that lies in no list or map."""
    assert leaf.path is not None
    return int(_values(rows, leaf.path).null_count)


def _values(rows: pa.Table, path: tuple[str, ...]) -> pa.ChunkedArray:
    column = rows.column(path[0])
    for name in path[1:]:
        column = member(column, name)
    return column


def file_statistics(
    footer: pq.FileMetaData, leaves: tuple[Leaf, ...], unbounded: Mapping[Leaf, int]
) -> dict[tuple[str, ...], ColumnStatistics]:
    """Statistics by logical path; `leaves` are the file's, in order.

    `unbounded` are the leaves without statistics in the footer, and how many nulls they have.
    """
    groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    found = {}
    for position, leaf in enumerate(leaves):
        if leaf in unbounded and leaf.path is not None:
            found[leaf.path] = ColumnStatistics(None, None, unbounded[leaf])
        elif leaf.path is not None:
            columns = [group.column(position).statistics for group in groups]
            statistics = _column_statistics(columns, bounded(leaf))
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
