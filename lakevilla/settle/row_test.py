"""Whether rows of a data file may satisfy a predicate: each row is asked as a file of one row.

So it is the rule of pruning that decides, with the values of a row for bounds, and what pruning cannot tell
stays a maybe.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.files.bitmaps import Positions
from lakevilla.files.leaves import member
from lakevilla.files.reader import open_file
from lakevilla.model import DataFile
from lakevilla.predicates import Column, Predicate, columns_of, disjunction
from lakevilla.pruning import Bounds, may_match
from lakevilla.store.port import Store


def may_hold(
    locate: Callable[[DataFile], tuple[Store, str]],
    file: DataFile,
    schema: pa.Schema,
    partition_columns: Sequence[str],
    predicates: Sequence[Predicate],
    positions: Positions | None = None,
) -> bool:
    """Whether one of these rows, or of the rows that are not deleted, may satisfy one of the predicates.

    Of the file, the columns that the predicates name are read.
    """
    predicate = disjunction(list(predicates))
    names = {column[0] for column in columns_of(predicate)}
    wanted = pa.schema([field for field in schema if field.name in names])
    if not len(wanted):
        return True
    opened = open_file(locate, file, partition_columns)
    rows = opened.living(wanted, predicate) if positions is None else opened.at(wanted, positions)
    flags = may_match(predicate, lambda column: _values(rows, column), rows.num_rows)
    return bool(flags.any())


def _values(rows: pa.Table, column: Column) -> Bounds | None:
    """The values of a column as the bounds of files with one row each; None if it has none that compare."""
    if column[0] not in rows.schema.names:
        return None
    values = rows.column(column[0]).combine_chunks()
    nulls = np.array(values.is_null())
    for name in column[1:]:
        if not pa.types.is_struct(values.type) or values.type.get_field_index(name) < 0:
            return None
        values = member(values, name)
        nulls |= np.asarray(values.is_null())
    if pa.types.is_nested(values.type) or pa.types.is_dictionary(values.type):
        return None
    known = values if not nulls.any() else pc.if_else(pa.array(nulls), pa.scalar(None, values.type), values)
    ones = pa.repeat(pa.scalar(1, pa.int64()), len(values))
    return Bounds(known, known, pa.array(nulls).cast(pa.int64()), ones)
