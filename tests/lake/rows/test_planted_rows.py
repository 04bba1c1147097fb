"""Wrong rules of rows, planted one by one: the rows show each. `sim.planted.vectors` has others."""

from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.conflicts import files as rules
from lakevilla.conflicts.files import Hit
from lakevilla.conflicts.rows import RowFacts
from lakevilla.model import Change, Footprint

_lost, _appeared = rules._lost, rules._appeared

Rule = Callable[[Change, Footprint, RowFacts], Hit | None]


def later_vector_is_another_file(change: Change, theirs: Footprint, facts: RowFacts) -> Hit | None:
    """Files go by path and vector: the second commit that deletes rows of a file is not recognised."""
    touched = change.read.files | {file.identity for file in change.removed}
    return _lost(change, theirs, facts) if touched & theirs.removed else None


def commit_that_shrinks_files_brings_no_rows(
    change: Change, theirs: Footprint, facts: RowFacts
) -> Hit | None:
    """The new rows of a commit that also deletes rows are not tested against what was read."""
    return None if facts.shrunk else _appeared(change, theirs, facts)


@pytest.mark.parametrize(
    ("target", "wrong", "commits"),
    [
        (
            "_lost",
            later_vector_is_another_file,
            ["UPDATE t SET v = 2 WHERE id = 7", "DELETE FROM t WHERE id = 5"],
        ),
        ("_appeared", commit_that_shrinks_files_brings_no_rows, ["UPDATE t SET v = 3 WHERE id = 7"]),
    ],
    ids=["later vector", "new rows"],
)
def test_wrong_rule_leaves_other_rows_than_the_right_one(
    target: str, wrong: Rule, commits: list[str], tmp_path: Path
) -> None:
    right = rows_after(tmp_path / "right", commits)
    with patch(f"lakevilla.conflicts.files.{target}", wrong):
        assert rows_after(tmp_path / "wrong", commits) != right


def rows_after(path: Path, commits: list[str]) -> list[tuple[int, int]]:
    """The rows that are left if these commits come before that of a transaction."""
    lake, second = (
        lv.Lake(path, engine="local", storage_options={"fsync": "false"}, merge_on_read=True)
        for _ in range(2)
    )
    lake.create("t", pa.table({"id": list(range(20)), "v": [0] * 20}))
    with lake.transaction(lv.R) as tx:
        tx.sql("UPDATE t SET v = v + 1 WHERE id = 5 OR v = 3")
        for text in commits:
            second.sql(text)
    return sorted((row.id, row.v) for row in lake.sql("SELECT id, v FROM t").collect())
