"""A process of its own that opens a table and reads one row: how long that takes, and how much memory.

Measured from after the imports on, and memory as growth above what the process held then: what grows with
the table is of interest, not how large a library is. `run_cold` starts such a process, which prints what it
found as one line of JSON.
"""

import gc
import json
import subprocess
import sys
import time
from dataclasses import asdict

from bench.data.big_log import BigTable
from bench.measures.memory import PeakMemory
from bench.measures.timing import Metrics
from bench.stores.places import Place
from bench.systems.local import SYSTEMS, System


def run_cold(system: System, place: Place, table: BigTable) -> Metrics:
    """Seconds and peak megabytes of a fresh process that opens the table and reads the row of its key."""
    asked = {
        "system": system.name,
        "place": {**asdict(place), "proxy": None},
        "table": table.path,
        "key": table.key,
    }
    # By standard input, because the options hold secrets.
    done = subprocess.run(
        [sys.executable, "-m", "bench.cold"], input=json.dumps(asked), capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{system.name} could not open {table.path}:\n{done.stderr[-2000:]}")
    metrics: Metrics = json.loads(done.stdout)
    return metrics


def _measure(system: System, place: Place, table: str, key: int) -> Metrics:
    system.load()
    # What the imports left behind would otherwise be collected while the clock runs.
    gc.collect()
    memory = PeakMemory()
    start = time.perf_counter()
    rows = system.open(place, table).read_row(key)
    seconds = time.perf_counter() - start
    if rows.column("id").to_pylist() != [key]:
        raise RuntimeError(f"expected the row of key {key}, found {rows.num_rows} rows")
    return {"seconds": seconds, "megabytes": memory.grown_mb()}


if __name__ == "__main__":
    given = json.load(sys.stdin)
    place = Place(**given["place"])
    print(json.dumps(_measure(SYSTEMS[given["system"]], place, given["table"], given["key"])))
