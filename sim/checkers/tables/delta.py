"""A Delta log reader of its own: small, slow and independent of the one that it judges.

Reads the JSON entries from version 0 on; the simulator never cleans a log. Knows add, remove, metaData,
protocol and commitInfo; no deletion vectors, no column mapping.
"""

import json
import re
from typing import Any
from urllib.parse import unquote

from sim.checkers.tables.commits import Commit, File, Objects, Place, parquet

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
            if add["path"] in commit.adds:
                commit.problems.append(f"adds {add['path']} twice")
            file = File(data_key(root, add["path"]), add["path"])
            commit.adds[add["path"]] = file
            commit.names[file.key] = add.get("size")
        elif (remove := action.get("remove")) is not None:
            commit.removes.append(remove["path"])
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
        commit.problems += [f"adds {path}, which is live" for path in commit.adds if path in self.live]
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
    """The live files that a classic checkpoint lists."""
    table = parquet(data).read(columns=["add"], use_threads=False)
    return {row["add"]["path"] for row in table.to_pylist() if row["add"] is not None}
