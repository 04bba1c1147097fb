"""What a read holds in both processes is released with the DataFrame."""

import gc
import time
from pathlib import Path
from typing import Any

import lakevilla as lv


def test_reads_leave_nothing_behind_in_the_gateway(quick: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=quick)
    lake.create("t", [{"id": 1}])
    before = held(quick, 0)
    for _ in range(5):
        lake.read("t")
        lake.sql("SELECT id FROM t").collect()
        lake.sql("UPDATE t SET id = id + 1 WHERE id > 0")
    assert held(quick, before) <= before


def held(session: Any, wanted: int) -> int:
    """How many of our objects the JVM may call, after collections on both sides."""
    pool = session.sparkContext._gateway.gateway_property.pool
    for _ in range(40):
        gc.collect()
        session._jvm.System.gc()
        session._jvm.System.runFinalization()
        if len(pool) <= wanted:
            break
        time.sleep(0.1)
    return len(pool)
