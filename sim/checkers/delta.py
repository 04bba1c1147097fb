"""A Delta log reader of its own: small, slow and independent of the one that it judges.

Reads the JSON entries from version 0 on; the simulator never cleans a log. Knows add, remove, metaData,
protocol and commitInfo; no deletion vectors, no column mapping.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

LOG_ENTRY = re.compile(r"^(?P<root>.*?)/?_delta_log/(?P<version>\d{20})\.json$")
CHECKPOINT = re.compile(r"^(?P<root>.*?)/?_delta_log/(?P<version>\d{20})\.checkpoint\.parquet$")


@dataclass
class Commit:
    """One parsed log entry."""

    version: int
    adds: dict[str, dict[str, Any]] = field(default_factory=dict)
    removes: list[str] = field(default_factory=list)
    metadata: dict[str, Any] | None = None
    protocol: dict[str, Any] | None = None
    info: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def log_key(root: str, version: int) -> str:
    folder = f"{root}/" if root else ""
    return f"{folder}_delta_log/{version:020d}.json"


def parse_commit(version: int, data: bytes) -> Commit:
    """A log entry; what is wrong with it by itself stands in `problems`."""
    commit = Commit(version)
    for line in data.decode().splitlines():
        if not line.strip():
            continue
        action = json.loads(line)
        if len(action) != 1:
            commit.problems.append(f"an action with {len(action)} keys")
        if (add := action.get("add")) is not None:
            if add["path"] in commit.adds:
                commit.problems.append(f"adds {add['path']} twice")
            commit.adds[add["path"]] = add
        elif (remove := action.get("remove")) is not None:
            commit.removes.append(remove["path"])
        elif "metaData" in action:
            commit.metadata = action["metaData"]
        elif "protocol" in action:
            commit.protocol = action["protocol"]
        elif "commitInfo" in action:
            commit.info = action["commitInfo"]
    if version == 0 and (commit.metadata is None or commit.protocol is None):
        commit.problems.append("is the first and lacks metaData or protocol")
    return commit


def read_log(objects: Mapping[str, bytes], root: str) -> list[Commit]:
    """All entries of a table, from version 0 up to the first gap."""
    commits: list[Commit] = []
    while (data := objects.get(log_key(root, len(commits)))) is not None:
        commits.append(parse_commit(len(commits), data))
    return commits


def live_files(commits: list[Commit]) -> dict[str, dict[str, Any]]:
    """The files of the last of these commits, with their add actions."""
    live: dict[str, dict[str, Any]] = {}
    for commit in commits:
        for path in commit.removes:
            live.pop(path, None)
        live.update(commit.adds)
    return live


def data_key(root: str, path: str) -> str:
    """The key of a data file; paths in the log are URL-encoded."""
    return f"{root}/{unquote(path)}" if root else unquote(path)


def parse_rows(data: bytes) -> list[dict[str, Any]]:
    """The rows of one data file: a JSON list, or Parquet."""
    if data.startswith(b"PAR1"):
        table: list[dict[str, Any]] = _parquet(data).read(use_threads=False).to_pylist()
        return table
    rows: list[dict[str, Any]] = json.loads(data)
    return rows


def read_rows(objects: Mapping[str, bytes], root: str, commits: list[Commit]) -> list[dict[str, Any]]:
    """All rows of the last of these commits."""
    return [row for path in live_files(commits) for row in parse_rows(objects[data_key(root, path)])]


def checkpoint_paths(data: bytes) -> set[str]:
    """The live files that a classic checkpoint tells of."""
    table = _parquet(data).read(columns=["add"], use_threads=False)
    return {row["add"]["path"] for row in table.to_pylist() if row["add"] is not None}


def _parquet(data: bytes) -> pq.ParquetFile:
    return pq.ParquetFile(pa.BufferReader(data), pre_buffer=False)


def table_roots(objects: Mapping[str, bytes]) -> list[str]:
    """The roots of all tables in the store."""
    found = (LOG_ENTRY.match(key) for key in objects)
    return sorted({match["root"] for match in found if match is not None})
