"""What a read holds in both processes is released with the DataFrame."""

import gc
import time
from pathlib import Path
from typing import Any

import lakevilla as lv


def test_reads_leave_nothing_behind_in_the_gateway(quick: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=quick)
    lake.create("t", [{"id": 1}])
    before = held(quick)
    for _ in range(3):
        lake.read("t")
        lake.sql("SELECT id FROM t").collect()
        lake.sql("UPDATE t SET id = id + 1 WHERE id > 0")
    assert held(quick) - before, "the JVM calls no object of ours"
    assert after_collections(quick, before) == set()


def held(session: Any) -> set[str]:
    """The names of our objects that the JVM may call."""
    return set(session.sparkContext._gateway.gateway_property.pool.dict)


def after_collections(session: Any, before: set[str]) -> set[str]:
    """What is held that was not before, after collections on both sides."""
    for _ in range(40):
        gc.collect()
        session._jvm.System.gc()
        session._jvm.System.runFinalization()
        if not held(session) - before:
            break
        time.sleep(0.1)
    return held(session) - before
