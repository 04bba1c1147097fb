"""A table whose rows are changed: what it holds at first, the changes, and what it must hold after them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

CITIES = ("amber", "basalt", "cedar", "dune", "ember", "fjord")
SCAN = "SELECT count(id), sum(id), sum(quantity), sum(price), sum(length(city)) FROM t"
_SHARE = 100
"""One row in so many is changed by a statement that changes rows all over the table."""

Answer = tuple[int, ...]


def first_rows(start: int, end: int) -> pa.Table:
    """The rows of these keys, as they are at first."""
    keys = np.arange(start, end, dtype=np.int64)
    return _table(keys, (keys * 31 % 97 + 1).astype(np.int32))


def _table(keys: Any, quantities: Any) -> pa.Table:
    cities = pa.DictionaryArray.from_arrays(pa.array(keys % len(CITIES)), pa.array(CITIES))
    return pa.table(
        {
            "id": keys,
            "quantity": quantities,
            "price": keys * 104_729 % 9_999_991,
            "city": cities.cast(pa.string()),
        }
    )


def one_row(rows: int, number: int) -> str:
    """The condition of a change of one row."""
    return f"id = {(rows // 3 + number * 7919) % rows}"


def scattered(number: int) -> str:
    """The condition of a change of one row in a hundred."""
    return f"id % {_SHARE} = {(7 + number) % _SHARE}"


def merged(rows: int, number: int) -> pa.Table:
    """The source of a MERGE: a hundredth of the rows, one in eleven of them new."""
    count = max(rows // _SHARE, 1)
    keys = (np.arange(count, dtype=np.int64) * (rows * 11 // 10)) // count + number % 100
    return _table(keys, np.full(count, 200 + number, np.int32))


@dataclass
class Expected:
    """The quantities of all keys: what every system must hold after the same changes."""

    rows: int
    quantities: Any = field(init=False)
    present: Any = field(init=False)

    def __post_init__(self) -> None:
        space = self.rows * 12 // 10 + 200
        self.quantities = np.zeros(space, np.int64)
        self.quantities[: self.rows] = first_rows(0, self.rows).column("quantity").to_numpy()
        self.present = np.arange(space) < self.rows

    def update_one(self, number: int) -> None:
        self.quantities[int(one_row(self.rows, number).rpartition(" ")[2])] += 1

    def update_scattered(self, number: int) -> None:
        rest = (7 + number) % _SHARE
        self.quantities[rest::_SHARE] += self.present[rest::_SHARE]

    def merge(self, number: int) -> None:
        source = merged(self.rows, number)
        keys = source.column("id").to_numpy()
        self.quantities[keys] = source.column("quantity").to_numpy()
        self.present[keys] = True

    @property
    def answer(self) -> Answer:
        """What `SCAN` must give."""
        keys = np.flatnonzero(self.present)
        lengths = np.array([len(city) for city in CITIES])
        prices = keys * 104_729 % 9_999_991
        sums = (keys, self.quantities[keys], prices, lengths[keys % len(CITIES)])
        return (len(keys), *(int(values.sum()) for values in sums))
