"""A Delta log reader of its own: small, slow and independent of the one that it judges.

Reads the JSON entries from version 0 on; the simulator never cleans a log. Knows add, remove, metaData,
protocol and commitInfo, and deletion vectors; no column mapping.
"""

import json
import re
from typing import Any
from urllib.parse import unquote

from sim.checkers.tables.commits import Commit, File, Objects, Place, parquet
from sim.checkers.tables.vectors import Vector, name_of

LOG_ENTRY = re.compile(r"^(?P<root>.*?)/?_delta_log/(?P<version>\d{20})\.json$")
CHECKPOINT = re.compile(r"^(?P<root>.*?)/?_delta_log/(?P<version>\d{20})\.checkpoint\.parquet$")

FIRST_VERSIONS = (0,)


def place_of(key: str) -> Place | None:
    """Whose log entry lies at this key; None for other objects."""
    found = LOG_ENTRY.match(key)
    return None if found is None else Place(found["root"], int(found["version"]), "delta")


def root_beside(key: str) -> str | None:
    """The table whose checkpoint this is."""
    found = CHECKPOINT.match(key)
    return None if found is None else found["root"]


def log_key(root: str, version: int) -> str:
    folder = f"{root}/" if root else ""
    return f"{folder}_delta_log/{version:020d}.json"


def told(version: int, data: bytes) -> dict[str, Any]:
    """What LakeVilla says of itself in an entry."""
    return parse_commit(version, data).ours


def parse_commit(version: int, data: bytes, root: str = "") -> Commit:
    """A log entry; `problems` lists what is wrong with it, apart from other entries."""
    commit = Commit(version)
    defined = set()
    for line in data.decode().splitlines():
        if not line.strip():
            continue
        action = json.loads(line)
        if len(action) != 1:
            commit.problems.append(f"an action with {len(action)} keys")
        if (add := action.get("add")) is not None:
            file = file_of(root, add)
            if file.path in {known.path for known in commit.adds.values()}:
                commit.problems.append(f"adds {add['path']} twice")
            commit.adds[name_of(add)] = file
            commit.names[file.key] = add.get("size")
            commit.names |= dict.fromkeys(file.deletes)
            if problem := _statistics_problem(add):
                commit.problems.append(problem)
        elif (remove := action.get("remove")) is not None:
            commit.removes.append(name_of(remove))
        elif "commitInfo" in action:
            ours = action["commitInfo"].get("lakevilla")
            commit.ours = ours if isinstance(ours, dict) else {}
        defined |= action.keys() & {"metaData", "protocol"}
    commit.redefines = bool(defined)
    if version == 0 and len(defined) < 2:
        commit.problems.append("is the first and lacks metaData or protocol")
    return commit


class DeltaLog:
    """The log of one table, see `commits.Log`."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.commits: list[Commit] = []
        self.live: dict[str, File] = {}

    def follows(self, version: int) -> bool:
        return version == len(self.commits)

    def read(self, version: int, data: bytes, objects: Objects) -> Commit:  # noqa: ARG002
        commit = parse_commit(version, data, self._root)
        for path in commit.removes:
            if self.live.pop(path, None) is None:
                commit.problems.append(f"removes {path}, which is not live")
        live = {file.path for file in self.live.values()}
        paths = [file.path for file in commit.adds.values()]
        commit.problems += [f"adds {path}, which is live" for path in paths if path in live]
        self.live.update(commit.adds)
        self.commits.append(commit)
        return commit

    def beside(self, key: str, data: bytes) -> str | None:
        found = CHECKPOINT.match(key)
        assert found is not None, "a Delta log has no objects but entries and checkpoints"
        version = int(found["version"])
        if version >= len(self.commits):
            return f"the checkpoint of version {version} of {self._root} is ahead of its log"
        if checkpoint_paths(data) != live_files(self.commits[: version + 1]).keys():
            return f"the checkpoint of version {version} of {self._root} differs from its log"
        return None


def file_of(root: str, add: dict[str, Any]) -> File:
    """The file of an `add`."""
    told = add.get("deletionVector")
    vector = None if told is None else Vector.of(root, told)
    deletes = () if vector is None or vector.key is None else (vector.key,)
    return File(data_key(root, add["path"]), add["path"], deletes, vector)


def _statistics_problem(add: dict[str, Any]) -> str:
    """A file with a vector must say how many rows it holds, and that its bounds are of all of them."""
    if add.get("deletionVector") is None:
        return ""
    found = json.loads(add.get("stats") or "{}")
    right = isinstance(found.get("numRecords"), int) and found.get("tightBounds") is False
    return "" if right else f"adds {add['path']} with a vector and the statistics {found}"


def live_files(commits: list[Commit]) -> dict[str, File]:
    """The files of the last of these commits."""
    live: dict[str, File] = {}
    for commit in commits:
        for path in commit.removes:
            live.pop(path, None)
        live.update(commit.adds)
    return live


def data_key(root: str, path: str) -> str:
    """The key of a data file; paths in the log are URL-encoded."""
    return f"{root}/{unquote(path)}" if root else unquote(path)


def checkpoint_paths(data: bytes) -> set[str]:
    """The live files that a classic checkpoint lists, by their names."""
    table = parquet(data).read(columns=["add"], use_threads=False)
    return {name_of(row["add"]) for row in table.to_pylist() if row["add"] is not None}
