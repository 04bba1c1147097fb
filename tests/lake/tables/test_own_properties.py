"""Table properties that LakeVilla defines: a misspelt one would be kept and have no effect."""

from pathlib import Path

import pytest

import lakevilla as lv

pytestmark = pytest.mark.formats("delta", "iceberg")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("lakevilla.exclusiv", "did you mean 'lakevilla.exclusive'"),
        ("lakevilla.sorted-by", "available: 'lakevilla.markers'"),
    ],
)
def test_misspelt_property_is_refused_with_a_suggestion(tmp_path: Path, name: str, told: str) -> None:
    lake = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    with pytest.raises(lv.InvalidInput, match=told):
        lake.create("t", "id BIGINT", properties={name: "true"})
    lake.create("t", "id BIGINT")
    with pytest.raises(lv.InvalidInput, match=told):
        lake.sql(f"ALTER TABLE t SET TBLPROPERTIES ('{name}' = 'true')")
    assert len(lake.history("t")) == 1
