"""A lake with a table that has markers in its log, and what its entries look like."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

import lakevilla as lv
from lakevilla.store.metered import KINDS
from tests.support.outsiders import OUTSIDERS, Outsider

OPTIONS = {"fsync": "false"}


def open_lake(place: Path, lease_seconds: float = 10.0) -> lv.Lake:
    return lv.Lake(place, engine="local", features=lv.R, storage_options=OPTIONS, lease_seconds=lease_seconds)


def marked_lake(place: Path) -> lv.Lake:
    """A table `t` with rows in two files: ids 1 to 10, and 11 to 20."""
    lake = open_lake(place)
    lake.create("t", "id BIGINT, v BIGINT", properties={"lakevilla.markers": "log"})
    lake.append("t", pa.table({"id": list(range(1, 11)), "v": [0] * 10}))
    lake.append("t", pa.table({"id": list(range(11, 21)), "v": [0] * 10}))
    return lake


def value(lake: lv.Lake | lv.Transaction, key: int) -> int:
    found: int = lake.sql("SELECT v FROM t WHERE id = :key", key=key).collect()[0].v
    return found


def outsider(place: Path) -> Outsider:
    """A client that knows no markers."""
    return OUTSIDERS["delta" if (place / "t/_delta_log").exists() else "iceberg"]


def entry(place: Path, version: int) -> list[dict[str, Any]]:
    """The JSON objects in what makes a version, one in a line."""
    data = (place / "t" / outsider(place).entry(version)).read_text()
    return [json.loads(line) for line in data.splitlines()]


def is_pending(place: Path, version: int) -> bool:
    """Whether the entry is a marker that holds its version; it must be empty then."""
    first, *others = entry(place, version)
    if "commitInfo" in first:
        ours, is_empty = first["commitInfo"]["lakevilla"], not others
    else:
        ours = json.loads(first["properties"].pop("lakevilla.commit"))
        (below,) = entry(place, ours["state_of"]) if "marker" in ours else [first]
        below["properties"].pop("lakevilla.commit", None)
        is_empty = first == below
    if ours.get("marker") is None:
        return False
    assert is_empty
    return bool(ours["marker"])


def versions(place: Path) -> int:
    """How many there are."""
    return len([*place.glob("t/_delta_log/*.json"), *place.glob("t/metadata/v*.metadata.json")])


def legacy(place: Path) -> tuple[int, int, int]:
    """What a client that opens the table anew and knows no markers sees: version, rows, sum of v."""
    other = outsider(place)
    rows = other.rows(place / "t")
    return other.version(place / "t"), len(rows), sum(row["v"] for row in rows)


def sent(requests: Mapping[str, int]) -> dict[str, int]:
    return {kind: requests[kind] for kind in KINDS if requests[kind]}
