"""What several statements changed together, row by row."""

import numpy as np
import pyarrow as pa
import pytest

from lakevilla.engines.row_groups import groups_of
from lakevilla.transaction.redo.net_rows import Pair, net_pairs


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ([[(1, 2)]], [(1, 2)]),
        ([[(1, 2)], [(2, 3)]], [(1, 3)]),
        ([[(1, 2)], [(2, None)]], [(1, None)]),
        ([[(None, 2)], [(2, 3)]], [(None, 3)]),
        ([[(None, 2)], [(2, None)]], []),
        ([[(1, 2)], [(2, 1)]], []),
        ([[(1, None)], [(None, 1)]], []),
        ([[(1, None)], [(None, 2)]], [(1, None), (None, 2)]),
        # One statement changes no row twice, and says also of rows that stay equal that it changed them.
        ([[(1, 2), (2, 1)]], [(1, 2), (2, 1)]),
        ([[(1, 1)]], [(1, 1)]),
        ([[(1, 2), (2, 3)], [(3, 4)]], [(1, 2), (2, 4)]),
        # Of equal rows, each continues another one.
        ([[(1, 3), (2, 3)], [(3, None), (3, None)]], [(1, None), (2, None)]),
        ([[(1, 3)], [(3, None), (3, None)]], [(1, None), (3, None)]),
    ],
)
def test_statements_are_put_together(statements: list[list[Pair]], expected: list[Pair]) -> None:
    assert sorted(net_pairs(statements), key=repr) == sorted(expected, key=repr)


def test_equal_rows_share_a_group_whatever_their_types() -> None:
    rows = pa.table(
        {
            "n": [1, 1, 2, None, None],
            "f": [float("nan"), float("nan"), 0.5, None, None],
            "s": [{"at": 1}, {"at": 1}, {"at": 1}, None, {"at": None}],
        }
    )
    groups = groups_of(rows)
    assert groups[0] == groups[1]
    assert len(np.unique(groups)) == 4
