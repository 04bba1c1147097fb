"""Errors carry the names in their texts as attributes, also through pickle."""

import pickle

import pytest

from lakevilla import errors
from lakevilla.errors import Conflict, Corrupt, InvalidInput, LakeVillaError, Torn

CLASSES = [
    kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LakeVillaError)
]


@pytest.mark.parametrize("kind", CLASSES)
def test_error_carries_its_names_through_pickle(kind: type[LakeVillaError]) -> None:
    error = kind("text", table="t", column="a.b", transaction="x", version=0, entry=7, rule="R1")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (kind, "text", vars(error))
    assert (again.table, again.column, again.transaction) == ("t", "a.b", "x")
    assert (again.version, again.entry, again.rule) == (0, 7, "R1")


def test_names_that_do_not_apply_are_empty() -> None:
    error = InvalidInput("text")
    assert (error.table, error.column, error.transaction, error.rule) == ("", "", "", "")
    assert (error.version, error.entry) == (None, None)


def test_conflict_says_where_and_torn_names_all_tables() -> None:
    conflict = Conflict("text", table="t", operation="UPDATE", file="f", winner="version 3")
    assert (conflict.table, conflict.operation, conflict.file, conflict.winner) == (
        "t",
        "UPDATE",
        "f",
        "version 3",
    )
    torn = Torn("text", tables=("a", "b"))
    assert isinstance(torn, Corrupt)
    assert torn.tables == ("a", "b")
