"""Frames that the user has cached stay cached, and statements leave no cache and no view of their own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakevilla as lv

ROWS = pa.table({"a": [1, 2], "b": [1, 2]})
FRAMES: dict[str, Callable[[Any], Any]] = {
    "computed": lambda session: session.range(3).selectExpr("id AS a", "id AS b"),
    "local": lambda session: session.createDataFrame(ROWS),
}
STATEMENTS: dict[str, Callable[[lv.Lake, Any], object]] = {
    "append": lambda lake, frame: lake.append("t", frame),
    "overwrite": lambda lake, frame: lake.overwrite("t", frame),
    "create": lambda lake, frame: lake.create("u", frame),
    "merge": lambda lake, frame: lake.merge(
        "t", frame, "target.a = source.a", matched="update", not_matched="insert"
    ),
}


@pytest.fixture
def lake(quick: Any, tmp_path: Path) -> lv.Lake:
    lake = lv.Lake(tmp_path, spark=quick)
    lake.create("t", ROWS)
    return lake


@pytest.mark.parametrize("kind", FRAMES)
def test_cached_frame_of_the_user_stays_cached_after_every_statement(
    quick: Any, lake: lv.Lake, kind: str
) -> None:
    frame = FRAMES[kind](quick).cache()
    try:
        assert frame.count() > 0
        for name, run in STATEMENTS.items():
            run(lake, frame)
            assert frame.storageLevel.useMemory, name
    finally:
        frame.unpersist()


def test_statements_keep_no_rows_and_no_views(quick: Any, lake: lv.Lake) -> None:
    kept = len(quick.sparkContext._jsc.getPersistentRDDs())
    for run in STATEMENTS.values():
        run(lake, FRAMES["computed"](quick))
    lake.sql("SELECT a FROM t WHERE b IN (SELECT b FROM u)").collect()
    assert len(quick.sparkContext._jsc.getPersistentRDDs()) == kept
    assert quick.sql("SHOW VIEWS LIKE 'lakevilla*'").collect() == []
