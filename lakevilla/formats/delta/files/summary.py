"""What statistics say exactly of many files: how many rows they have, and the range of columns.

Statistics are made for skipping, so most bounds may be wide. Only these count as exact, and only of a file
without deleted rows, whose `tightBounds` is not false: integers, dates, and decimals of up to 15 digits. Not
strings and timestamps, which are cut; nor floating point numbers, of which writers disagree where NaN and
-0.0 sort. Values of partition columns are exact, whatever was deleted, where a file has a row left.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.formats.delta.files.blocks import FileBlock
from lakevilla.formats.delta.files.bounds import EXACT_DIGITS, BlockBounds, Leaf


def has_exact_bounds(data_type: pa.DataType) -> bool:
    """Whether statistics hold the exact least and greatest value of a column of this type."""
    if pa.types.is_decimal(data_type):
        return bool(data_type.precision <= EXACT_DIGITS)
    return bool(pa.types.is_integer(data_type) or pa.types.is_date(data_type))


def has_exact_values(data_type: pa.DataType) -> bool:
    """Whether a partition column of this type is ordered here as engines order it."""
    return bool(
        pa.types.is_integer(data_type)
        or pa.types.is_date(data_type)
        or pa.types.is_decimal(data_type)
        or pa.types.is_boolean(data_type)
        or pa.types.is_string(data_type)
    )


class FileCounts:
    """The rows of the files at these places of a block; `living` is null where that is not known."""

    def __init__(self, block: FileBlock, bounds: BlockBounds, chosen: pa.Array) -> None:
        self._bounds, self._chosen = bounds, chosen
        self.rows: pa.Array = bounds.counts().take(chosen)
        self.living, self.has_vector = self.rows, pa.repeat(pa.scalar(False), len(chosen))
        if "deletionVector" in block.core.schema.names:
            vectors = block.core.column("deletionVector").combine_chunks().take(chosen)
            self.has_vector = vectors.is_valid()
            deleted = pc.if_else(self.has_vector, vectors.field("cardinality"), pa.scalar(0, pa.int64()))
            self.living = pc.subtract(self.rows, deleted)

    @property
    def total(self) -> int | None:
        """All rows; None if that is not known, or contradicts itself."""
        if self.living.null_count or pc.any(pc.less(self.living, 0)).as_py():
            return None
        return int(pc.sum(self.living).as_py() or 0)

    def of_column(self, leaf: Leaf) -> pa.Array | None:
        """Values among which are the column's least and greatest; None if statistics do not say them."""
        if not (leaf.ordered and has_exact_bounds(leaf.type)) or pc.any(self.has_vector).as_py():
            return None
        self._bounds.load([leaf])
        if pc.any(pc.invert(pc.fill_null(self._bounds.tight().take(self._chosen), True))).as_py():
            return None
        bounds = self._bounds.of(leaf)
        minimum, maximum, nulls = (
            array.take(self._chosen) for array in (bounds.minimum, bounds.maximum, bounds.nulls)
        )
        unknown = pc.or_(minimum.is_null(), maximum.is_null())
        empty = pc.fill_null(pc.equal(nulls, self.rows), False)
        if pc.any(pc.and_(unknown, pc.invert(empty))).as_py():
            return None
        return pa.concat_arrays([minimum, maximum])

    def of_partition(self, values: pa.Array) -> pa.Array | None:
        """The same for a partition column with these values of all files of the block."""
        if not has_exact_values(values.type):
            return None
        return values.take(self._chosen).filter(pc.greater(self.living, 0))


def range_of(pieces: Sequence[pa.Array], data_type: pa.DataType) -> tuple[pa.Scalar, pa.Scalar]:
    """The least and the greatest value; null if there is none."""
    found = pc.min_max(pa.chunked_array(pieces, data_type))
    return found["min"], found["max"]
