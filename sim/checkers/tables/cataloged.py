"""Tables of catalogs as if they were kept by files: so every other checker judges them too.

A version is there when the pointer of its table names its metadata file. This write does what the create of a
version does for tables kept by files; files left by losers of a race do not count as versions. A commit of
ours that a catalog brought further up than it expected is known by the snapshot that it made, which the
version before does not have. Properties of others are left out: a catalog lets commits pass over them.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sim.checkers.tables.iceberg import OURS, log_key
from sim.world.bucket import Bucket, Write
from sim.world.catalogs import URL, WAREHOUSE, key_of, number_of
from sim.world.client import World

Raw = dict[str, Any]


def judged(world: World) -> Bucket:
    """What was written in this world, as checkers want it."""
    if not world.formats.has_catalogs:
        return world.bucket
    plain = Bucket()
    plain.replay(as_files(world.bucket.writes))
    return plain


def as_files(writes: Iterable[Write]) -> list[Write]:
    """The same writes in a world without catalogs, where each table lies in a folder of its own name."""
    found: list[Write] = []
    metadata: dict[str, bytes] = {}
    current: dict[str, tuple[str, Raw]] = {}
    for write in writes:
        if write.key.startswith("_catalogs/"):
            assert write.data is not None, "no client drops tables of catalogs here"
            location, table = write.data.decode(), write.key.rpartition("/")[2]
            raw = json.loads(metadata[key_of(location)])
            before = current.get(table)
            current[table] = location, raw
            found.append(_version(write, table, number_of(location), raw, before))
        elif write.key.startswith(f"{WAREHOUSE}/"):
            if write.key.endswith(".metadata.json"):
                assert write.data is not None, "no client deletes metadata files here"
                known = metadata.setdefault(write.key, write.data)
                assert known == write.data, f"{write.client} writes over {write.key}"
            found.append(replace(write, key=write.key.removeprefix(f"{WAREHOUSE}/")))
        elif write.key.startswith("_lakevilla/") and write.data is not None:
            data = write.data.replace(f"{URL}/{WAREHOUSE}/".encode(), b"")
            found.append(replace(write, data=data))
        else:
            found.append(write)
    return found


def _version(write: Write, table: str, number: int, raw: Raw, before: tuple[str, Raw] | None) -> Write:
    """The create of this version by files."""
    log = raw.get("metadata-log") or []
    last = log[-1]["metadata-file"] if log else None
    assert last == (before and before[0]), f"version {number} of {table} follows {last}, and not {before}"
    for entry in log:
        entry["metadata-file"] = (
            f"{raw['location']}/metadata/v{number_of(entry['metadata-file'])}.metadata.json"
        )
    told = (raw.get("properties") or {}).get(OURS)
    raw = {**raw, "metadata-log": log, "properties": {} if told is None else {OURS: told}}
    snapshot = raw.get("current-snapshot-id")
    if told is not None and before is not None and before[1].get("current-snapshot-id") != snapshot:
        ours = json.loads(told)
        if ours.get("snapshot") == snapshot:
            raw["properties"][OURS] = json.dumps({**ours, "version": number})
    return replace(write, kind="create", key=log_key(table, number), data=json.dumps(raw).encode())
