"""Tables that bend the specification, on Spark: the right rows, or an error of ours."""

from pathlib import Path
from typing import Any

import pytest

import lakevilla as lv
from tests.golden.hand_written import TABLES, Folder, text, texts


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", TABLES)
def test_table_that_bends_the_specification_is_read_or_refused_on_spark(
    quick: Any, tmp_path: Path, name: str
) -> None:
    make, rows = TABLES[name]
    make(Folder(tmp_path / "t"))
    lake = lv.Lake(tmp_path, spark=quick)
    if rows is None:
        with pytest.raises(lv.LakeVillaError):
            lake.read("t").collect()
        return
    assert texts(lake.read("t").toArrow()) == sorted(map(text, rows))
