"""One ORC object in a store, fetched whole, with the surface that `reader` needs of a data file.

Iceberg's writers put field ids into ORC as attributes; here they are where Parquet has them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from pyarrow import orc

from lakevilla.errors import Corrupt, Unsupported
from lakevilla.files.column_mapping import FIELD_ID
from lakevilla.store.port import Store

_FIELD_ID = b"iceberg.id"
# Arrow has the timestamps of ORC in nanoseconds, which do not reach beyond the year 2262.
_TOO_FAR = "out of range for nanosecond"


class OrcObject:
    """An opened ORC object. All its rows are one group."""

    def __init__(self, store: Store, key: str) -> None:
        self._name = f"{store.url}/{key}"
        found = store.get(key)
        if found is None:
            raise Corrupt(f"{self._name} is missing, but the table refers to it")
        with self._honest():
            self._file = orc.ORCFile(pa.BufferReader(found.data))
            self.schema = pa.schema([_with_ids(field) for field in self._file.schema])
            self.group_rows = [self._file.nrows]

    def read(
        self,
        columns: Sequence[str],
        row_groups: Sequence[int],
        dictionaries: bool = False,  # noqa: ARG002 - as of a Parquet object
    ) -> pa.Table:
        """These columns (dotted paths into structs) of all rows: there is one group."""
        assert list(row_groups) == [0]
        if not columns:
            return pa.table({"row": pa.nulls(self.group_rows[0])}).select([])
        with self._honest():
            rows = self._file.read(list(columns))
        return rows.cast(pa.schema([_with_ids(field) for field in rows.schema]))

    def portions(self, columns: Sequence[str], row_groups: Sequence[int]) -> list[list[int]]:  # noqa: ARG002
        """The row groups, as they are read together."""
        return [list(row_groups)]

    @contextmanager
    def _honest(self) -> Iterator[None]:
        try:
            yield
        except pa.ArrowNotImplementedError as error:
            raise Unsupported(f"{self._name} uses an ORC feature that cannot be read: {error}") from error
        except (pa.ArrowException, OSError, ValueError) as error:
            if _TOO_FAR in str(error):
                raise Unsupported(f"{self._name} holds a time that cannot be read: {error}") from error
            raise Corrupt(f"{self._name} is not a valid ORC file: {error}") from error


def _with_ids(field: pa.Field) -> pa.Field:
    number = (field.metadata or {}).get(_FIELD_ID)
    metadata = None if number is None else {FIELD_ID: number}
    return pa.field(field.name, _type_with_ids(field.type), metadata=metadata)


def _type_with_ids(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(data_type):
        return pa.struct([_with_ids(child) for child in data_type])
    if pa.types.is_map(data_type):
        return pa.map_(_with_ids(data_type.key_field).with_nullable(False), _with_ids(data_type.item_field))
    if pa.types.is_list(data_type):
        return pa.list_(_with_ids(data_type.value_field))
    return data_type
