"""Reads damaged tables in a process of its own: a crash ends this process, and the test sees where.

`python -m tests.damage.worker ROOT FIRST COUNT` prints each seed before it runs, and what came out after it.
"""

import sys
import traceback
from pathlib import Path
from random import Random

from lakevilla.environment import SystemEnvironment
from lakevilla.errors import LakeVillaError
from lakevilla.files.reader import read_files
from lakevilla.formats.delta.checkpoints.writer import write_checkpoint
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.formats.port import Snapshot, Table
from lakevilla.formats.registry import open_table
from lakevilla.predicates import ANYTHING, And, Compare, IsNotNull, IsNull, Or, Predicate
from lakevilla.store.open import open_store
from tests.damage.mutations import damaged
from tests.damage.tables import damageable

PREDICATES: list[Predicate] = [
    ANYTHING,
    Or((Compare(("id",), "=", 3), Compare(("p",), "=", "p1"))),
    And((Compare(("s",), ">=", "text 1"), IsNotNull(("st", "x")), Compare(("f",), "<", 5.0))),
    Or((IsNull(("p",)), Compare(("kind",), "=", "b"))),
]
OPTIONAL = ("_last_checkpoint", ".crc")
"""What only saves work: damage to it must not change rows."""


def digest(place: Path) -> str:
    """All that a reader is told of the table, with what a checkpoint of ours makes of it."""
    environment = SystemEnvironment(threads=2)
    store = open_store(str(place), {"fsync": "false"}, environment=environment)
    table = open_table(place.name.partition("-")[0], store, environment, open_store)
    snapshot = table.latest()
    if snapshot is None:
        return "no table"
    for predicate in PREDICATES[1:]:
        _rows(environment, table, snapshot, predicate)
    rows = _rows(environment, table, snapshot, ANYTHING)
    if isinstance(snapshot, DeltaSnapshot):
        write_checkpoint(store, environment, snapshot)
        again = table.latest()
        assert again is not None
        assert _rows(environment, table, again, ANYTHING) == rows, "a checkpoint of ours changed rows"
    return rows


def _rows(environment: SystemEnvironment, table: Table, snapshot: Snapshot, predicate: Predicate) -> str:
    files = snapshot.files(predicate)
    parts = read_files(environment, table.open, files, snapshot.schema, snapshot.partition_columns, predicate)
    return "\n".join(sorted(str(row) for part in parts for row in part.to_pylist()))


def run(root: Path, seed: int, known: dict[Path, str]) -> str:
    """What came of one damage: `ok`, or what is wrong."""
    chance = Random(seed)
    place = chance.choice(sorted(root.glob("delta-*")) + sorted(root.glob("iceberg-*")))
    before = {path: path.read_bytes() for path in damageable(place)}
    if place not in known:
        known[place] = digest(place)
        _restore(place, before)
    # Each kind of file as often as another, however many there are.
    kinds = sorted({_kind(path) for path in before})
    kind = chance.choice(kinds)
    target = chance.choice(sorted(path for path in before if _kind(path) == kind))
    target.write_bytes(damaged(before[target], chance))
    try:
        found = digest(place)
        if target.name.endswith(OPTIONAL) and found != known[place]:
            return f"{target.name}: rows changed"
    except LakeVillaError:
        pass
    except Exception:  # noqa: BLE001 # That is what is looked for.
        return f"{place.name}/{target.name}: {traceback.format_exc(limit=-6)}"
    finally:
        _restore(place, before)
    return "ok"


def _kind(path: Path) -> str:
    """What a file is, by the part of its name that says so."""
    if path.name.endswith((*OPTIONAL, ".compacted.json", ".checkpoint.parquet")):
        return path.name.partition(".")[2] or path.name
    return (
        path.parent.name.partition("=")[0] + path.name[:2] + path.suffix
        if "meta" in str(path)
        else path.suffix
    )


def _restore(place: Path, before: dict[Path, bytes]) -> None:
    for path in damageable(place):
        if path not in before:
            path.unlink()
    for path, data in before.items():
        path.write_bytes(data)


def main(root: Path, first: int, count: int) -> None:
    known: dict[Path, str] = {}
    for seed in range(first, first + count):
        print(f"seed {seed}", flush=True)
        print(f"result {run(root, seed, known)!r}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
