"""The engine that chooses, where it must not."""

from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.engines.auto import AutoEngine
from lakevilla.engines.local.engine import LocalEngine
from lakevilla.engines.port import ADJACENT_LITERALS, Engine
from lakevilla.environment import SystemEnvironment
from lakevilla.sql.parser import parse


def test_spark_does_not_join_two_strings_that_may_mean_a_quote() -> None:
    """Spark would store `its` for 'it''s', which most SQL reads as `it's`."""

    def start() -> Engine:
        raise AssertionError("Spark was started")

    engine = AutoEngine(LocalEngine(SystemEnvironment()), start)
    with pytest.raises(lv.Unsupported) as caught:
        engine.query(parse("SELECT 'it''s' AS a").tree, {}, 0)  # type: ignore[union-attr]
    assert caught.value.rule == ADJACENT_LITERALS


def test_local_engine_says_how_to_write_a_quote(tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, engine="local")
    with pytest.raises(lv.Unsupported, match=r"write \\' for a quote"):
        lake.sql("SELECT 'it''s' AS a")
    assert lake.sql(r"SELECT 'it\'s' AS a").collect()[0].a == "it's"
