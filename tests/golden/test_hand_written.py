"""Tables that bend the specification, on the local engine: the right rows, or an error of ours."""

from pathlib import Path

import pytest

import lakevilla as lv
from tests.golden.hand_written import TABLES, Folder, text, texts


@pytest.mark.parametrize("name", TABLES)
def test_table_that_bends_the_specification_is_read_or_refused(tmp_path: Path, name: str) -> None:
    make, rows = TABLES[name]
    make(Folder(tmp_path / "t"))
    lake = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    if rows is None:
        with pytest.raises(lv.LakeVillaError):
            lake.read("t").toArrow()
        return
    known = sorted(map(text, rows))
    assert texts(lake.read("t").toArrow()) == known
    first = lake.read("t").columns[0]
    assert lake.sql(f"UPDATE t SET {first} = {first}").updated == len(rows)
    assert texts(lake.read("t").toArrow()) == known
