"""Small tables with one file of each kind that a table of others may have, to be damaged."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

import lakevilla as lv
from tests.support.evolved import make_evolved
from tests.unit.files.raw_bitmaps import encode, framed

ROWS = pa.table(
    {
        "id": pa.array(range(20)),
        "p": [None if n == 3 else f"p{n % 4}" for n in range(20)],
        "s": [f"text {n}" for n in range(20)],
        "f": [n / 2 for n in range(20)],
        "d": pa.array(range(20), pa.int32()).cast(pa.date32()),
        "st": [{"x": n, "y": [n]} for n in range(20)],
    }
)
_LOG = "_delta_log"


def make_tables(root: Path) -> None:
    """The tables, each in a folder that begins with the name of its format."""
    _delta(root / "delta-log")
    _checkpointed(root / "delta-log", root / "delta-checkpoint")
    _with_vector(root / "delta-vector")
    lake = lv.Lake(root, engine="local", storage_options={"fsync": "false"})
    lake.create("iceberg-plain", ROWS, format="iceberg", partition_by=["p"])
    lake.append("iceberg-plain", ROWS.slice(0, 5))
    lake.sql("DELETE FROM `iceberg-plain` WHERE id = 2")
    make_evolved(root / "iceberg-evolved")


def _delta(place: Path) -> None:
    write_deltalake(str(place), ROWS, partition_by=["p"])
    for start in (0, 5, 10):
        write_deltalake(str(place), ROWS.slice(start, 5), mode="append")
    entries = [(place / _LOG / f"{version:020}.json").read_text().splitlines() for version in (1, 2)]
    lines = [line for entry in entries for line in entry if "commitInfo" not in json.loads(line)]
    (place / _LOG / f"{1:020}.{2:020}.compacted.json").write_text("\n".join(lines))
    (place / _LOG / f"{3:020}.crc").write_text('{"numFiles":1,"tableSizeBytes":2,"numMetadata":1}')


def _checkpointed(source: Path, place: Path) -> None:
    shutil.copytree(source, place)
    DeltaTable(str(place)).create_checkpoint()
    write_deltalake(str(place), ROWS.slice(0, 2), mode="append")


def _with_vector(place: Path) -> None:
    write_deltalake(str(place), ROWS.select(["id", "s"]))
    entry = place / _LOG / f"{0:020}.json"
    actions: list[dict[str, Any]] = [json.loads(line) for line in entry.read_text().splitlines()]
    vector = framed(encode({1, 2, 7, 8, 9}, runs=True))
    (place / "vector.bin").write_bytes(b"\1" + vector)
    for action in actions:
        if "add" in action:
            action["add"]["deletionVector"] = {
                "storageType": "p",
                "pathOrInlineDv": f"file://{place}/vector.bin",
                "offset": 1,
                "sizeInBytes": len(vector) - 8,
                "cardinality": 5,
            }
        if "protocol" in action:
            features = ["deletionVectors"]
            action["protocol"] = {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": features,
                "writerFeatures": features,
            }
    entry.write_text("\n".join(map(json.dumps, actions)))


def damageable(place: Path) -> list[Path]:
    """Every file of a table, in an order that is always the same."""
    found = [Path(folder, name) for folder, _, names in os.walk(place) for name in names]
    return sorted(path for path in found if "_lakevilla" not in path.parts)
