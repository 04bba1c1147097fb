"""Random MERGE statements leave the same rows as Delta's own MERGE on the same data, or both refuse.

`LAKEVILLA_CONFORMANCE_SEEDS=0:200` runs more of them. What differs on purpose is in docs/sql.md.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import lakevilla as lv
from tests.conformance.engines.choice import SEEDS, some
from tests.conformance.engines.comparison import difference
from tests.conformance.engines.generated import merges
from tests.conformance.engines.generated.merges import SOURCE, SOURCE_ROWS, TARGET, TARGET_FILES, TWICE

_FULL = 200
# Several rows of the source match one row of the target. The second is Delta's own check of its result, which
# has rows twice where only one of them changes it.
_SEVERAL = ("DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE", "DELTA_NUM_RECORDS_MISMATCH")


def _seeds() -> range:
    first, _, end = os.environ.get(SEEDS, "0:6").partition(":")
    return range(int(first), min(int(end), int(first) + _FULL))


def _rows(schema: pa.Schema, rows: list[Any]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


@pytest.fixture(scope="module")
def lake(quick: Any, tmp_path_factory: pytest.TempPathFactory) -> lv.Lake:
    made = lv.Lake(tmp_path_factory.mktemp("merges"), spark=quick)
    made.create("t", TARGET)
    for rows in TARGET_FILES:
        made.append("t", _rows(TARGET, rows))
    made.create("once", _rows(SOURCE, SOURCE_ROWS))
    made.create("twice", _rows(SOURCE, TWICE))
    return made


@pytest.fixture
def copied(lake: lv.Lake, tmp_path: Path) -> str:
    """A copy of the target for Delta."""
    shutil.copytree(Path(lake.url.removeprefix("file://")) / "t", tmp_path / "t")
    return str(tmp_path / "t")


@some(6)
@pytest.mark.parametrize("seed", _seeds())
def test_merge_does_what_deltas_own_merge_does(
    lake: lv.Lake, spark_delta: Any, copied: str, seed: int
) -> None:
    twice, text = merges.statement(seed)
    source = "twice" if twice else "once"
    path = Path(lake.url.removeprefix("file://")) / source
    theirs = _theirs(spark_delta, text.format(t=f"delta.`{copied}`", u=f"delta.`{path}`"), copied)
    ours = _ours(lake, text.format(t="t", u=source))
    if not isinstance(ours, str) and isinstance(theirs, str) and any(kind in theirs for kind in _SEVERAL):
        # On purpose: we refuse only where two rows of the source would change one row of the target.
        theirs = _ours(lv.Lake(lake.url, engine="local"), text.format(t="t", u=source))
    if isinstance(ours, str) or isinstance(theirs, str):
        assert isinstance(ours, str), f"{text}\nDelta refuses: {theirs}"
        assert isinstance(theirs, str), f"{text}\nwe refuse: {ours}"
        return
    differs = difference(ours, theirs, ordered=False)
    assert differs is None, f"{text}\n{differs}"


def _ours(lake: lv.Lake, text: str) -> pa.Table | str:
    with lake.transaction() as tx:
        try:
            tx.sql(text)
            return tx.read("t").toArrow()
        except lv.LakeVillaError as error:
            return str(error)
        finally:
            tx.abort()


def _theirs(session: Any, text: str, path: str) -> pa.Table | str:
    try:
        session.sql(text)
        rows: pa.Table = session.read.format("delta").load(path).toArrow()
        return rows
    except (PySparkException, Py4JJavaError) as error:
        return str(error)[:300]
