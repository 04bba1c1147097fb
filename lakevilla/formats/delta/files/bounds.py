"""Bounds of columns over the files of a block, for pruning (PROTOCOL.md, "Per-file Statistics").

Statistics come as JSON text, parsed in bulk with a schema of just the columns asked for, or as structs of a
checkpoint. Every doubt makes a bound unknown, which keeps the file. The known traps:
- timestamps are cut to milliseconds, so both bounds are widened by one;
- long strings are cut, so a long maximum is raised above everything with that prefix;
- with a deletion vector (`tightBounds` false) a count of nulls means something only if it is none or all, but
  another count never skips a file anyway;
- NaN has no place in the order, and a collated string has another order than its bytes;
- a double that was a float has bounds printed as floats, which as doubles are other numbers;
- some writers (delta-rs) print decimals as doubles, which round from the 16th digit on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.files.leaves import member
from lakevilla.formats.delta.files.blocks import FileBlock
from lakevilla.formats.delta.files.partition_values import parse_values
from lakevilla.formats.delta.files.statistics_json import has_bounds, parse_texts
from lakevilla.pruning import Bounds

_ROWS = ("numRecords",)
_TIGHT = ("tightBounds",)
_KINDS = ("minValues", "maxValues", "nullCount")
_CUT_LENGTH = 32
_ABOVE_ALL = "\U0010ffff"
EXACT_DIGITS = 15
_ROOM = 60


@dataclass(frozen=True)
class Leaf:
    """A column below the table's root: its path in statistics (physical names) and its logical type."""

    path: tuple[str, ...]
    type: pa.DataType
    ordered: bool = True

    @property
    def bounded(self) -> bool:
        """Whether minimum and maximum can be used at all."""
        return self.ordered and has_bounds(self.type)


class BlockBounds:
    """The bounds of one block's files, kept once they have been read."""

    def __init__(self, block: FileBlock) -> None:
        self._block = block
        self._known: dict[Leaf, Bounds] = {}
        self._partitions: dict[tuple[str, pa.DataType], pa.Array] = {}
        self._rows: pa.Array | None = None
        self._tight: pa.Array | None = None

    def load(self, leaves: Sequence[Leaf]) -> None:
        """Read what is not known yet of these columns, all at once."""
        # By type too: a widened column has other bounds than before.
        missing = [leaf for leaf in leaves if leaf not in self._known]
        if not missing:
            return
        pieces = list(_pieces(self._block, missing))
        self._keep(pieces)
        for leaf in missing:
            self._known[leaf] = _bounds(pieces, leaf, self._rows)

    def of(self, leaf: Leaf) -> Bounds:
        """The bounds of a column that has been loaded."""
        return self._known[leaf]

    def rows(self) -> pa.Array | None:
        """How many rows each file holds, or None if telling it would take a request."""
        return self.counts() if self._rows is not None or self._block.at_hand else None

    def counts(self) -> pa.Array:
        """The same, also if that takes a request; null where statistics do not tell it."""
        if self._rows is None:
            self._keep(list(_pieces(self._block, [])))
        assert self._rows is not None
        return self._rows

    def tight(self) -> pa.Array:
        """Whether the bounds of each file are exact; null where statistics do not tell it."""
        if self._tight is None:
            self._keep(list(_pieces(self._block, [])))
        assert self._tight is not None
        return self._tight

    def _keep(self, pieces: "list[Piece]") -> None:
        self._rows = _concat([piece[_ROWS] for piece in pieces], pa.int64())
        self._tight = _concat([piece[_TIGHT] for piece in pieces], pa.bool_())

    def partition(self, name: str, data_type: pa.DataType) -> pa.Array:
        """The typed values of a partition column, by its physical name."""
        if (name, data_type) not in self._partitions:
            column = self._block.core.column("partitionValues")
            texts = [pc.map_lookup(chunk, name, "first") for chunk in column.chunks]
            self._partitions[name, data_type] = parse_values(_concat(texts, pa.string()), data_type)
        return self._partitions[name, data_type]


def partition_bounds(values: pa.Array) -> Bounds:
    """Bounds of a partition column: every row of a file has the same value."""
    nulls = values.is_null().cast(pa.int64())
    return Bounds(values, values, nulls, pa.repeat(pa.scalar(1, pa.int64()), len(values)))


Piece = dict[tuple[str, ...], pa.Array]
"""Statistics of some files: arrays by path, `("numRecords",)` or `("minValues", "a", "b")`."""


def _pieces(block: FileBlock, leaves: Sequence[Leaf]) -> Iterator[Piece]:
    paths = [_ROWS, _TIGHT] + [(kind, *leaf.path) for leaf in leaves for kind in _KINDS]
    structs = block.parsed([".".join(path) for path in paths])
    if structs is None:
        types: dict[tuple[str, ...], pa.DataType] = {_ROWS: pa.int64(), _TIGHT: pa.bool_()}
        for leaf in leaves:
            types["nullCount", *leaf.path] = pa.int64()
            if leaf.bounded:
                types["minValues", *leaf.path] = types["maxValues", *leaf.path] = leaf.type
        structs = (parse_texts(texts, types) for texts in block.texts())
    for struct in structs:
        yield _unfold(struct, leaves)


def _unfold(statistics: pa.StructArray, leaves: Sequence[Leaf]) -> Piece:
    count = len(statistics)
    piece: Piece = {_ROWS: _cast(_member(statistics, _ROWS), pa.int64(), count)}
    piece[_TIGHT] = _cast(_member(statistics, _TIGHT), pa.bool_(), count)
    for leaf in leaves:
        nulls = _member(statistics, ("nullCount", *leaf.path))
        piece["nullCount", *leaf.path] = _cast(nulls, pa.int64(), count)
        for kind in ("minValues", "maxValues"):
            found = _member(statistics, (kind, *leaf.path)) if leaf.bounded else None
            piece[kind, *leaf.path] = _cast(found, leaf.type, count)
    return piece


def _member(array: pa.StructArray, path: tuple[str, ...]) -> pa.Array | None:
    for name in path:
        if not pa.types.is_struct(array.type) or array.type.get_field_index(name) < 0:
            return None
        array = member(array, name)
    return array


def _cast(array: pa.Array | None, data_type: pa.DataType, count: int) -> pa.Array:
    if array is None:
        return pa.nulls(count, data_type)
    try:
        return array.cast(data_type)
    except pa.ArrowException:
        return pa.nulls(count, data_type)


def _bounds(pieces: list[Piece], leaf: Leaf, rows: pa.Array) -> Bounds:
    minimum = _concat([piece["minValues", *leaf.path] for piece in pieces], leaf.type)
    maximum = _concat([piece["maxValues", *leaf.path] for piece in pieces], leaf.type)
    nulls = _concat([piece["nullCount", *leaf.path] for piece in pieces], pa.int64())
    if pa.types.is_timestamp(leaf.type):
        # Made here: making the first scalar imports pandas.
        millisecond = pa.scalar(1000, pa.duration("us"))
        minimum, maximum = pc.subtract(minimum, millisecond), pc.add(maximum, millisecond)
    elif pa.types.is_string(leaf.type):
        long = pc.greater_equal(pc.utf8_length(maximum), _CUT_LENGTH)
        maximum = pc.if_else(long, pc.binary_join_element_wise(maximum, _ABOVE_ALL, ""), maximum)
    elif pa.types.is_decimal(leaf.type) and leaf.type.precision > EXACT_DIGITS:
        minimum, maximum = _lowered(minimum), pc.negate(_lowered(pc.negate(maximum)))
    elif pa.types.is_floating(leaf.type):
        unknown = pc.or_(pc.is_nan(minimum), pc.is_nan(maximum))
        minimum = pc.if_else(unknown, pa.scalar(None, leaf.type), minimum)
        maximum = pc.if_else(unknown, pa.scalar(None, leaf.type), maximum)
    return Bounds(minimum, maximum, nulls, rows)


def _lowered(values: pa.Array) -> pa.Array:
    """Decimals that are below all decimals which round to these as doubles."""
    wide = pa.decimal256(_ROOM, values.type.scale)
    error = pc.multiply(pc.abs(values.cast(pa.float64())), 2.0**-52).cast(wide, safe=False)
    unit = pa.scalar(Decimal(1).scaleb(-values.type.scale), wide)
    return pc.subtract(pc.subtract(values.cast(wide), error), unit)


def _concat(pieces: list[pa.Array], data_type: pa.DataType) -> pa.Array:
    if len(pieces) == 1:
        return pieces[0]
    return pa.concat_arrays(pieces) if pieces else pa.array([], data_type)
