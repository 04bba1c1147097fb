"""Every table and the global log are valid after every prefix of the writes, and nothing published changes.

The writes of all clients are walked in the order in which they applied. For a table: a log entry is written
once and never again; versions have no gaps; an entry removes only live files, adds no file that is live
already, and names only objects that lie there, as long as it says; none of us writes to a dropped table; what
else a format demands is told by its log. For the global log: slots are written once, without gaps; HEAD goes
from one seq to the next, never back, follows the slots, and names tables that are there; states that were put
aside are those that HEAD had.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Protocol

from sim.checkers.lake.heads import PAST, Heads
from sim.checkers.tables.commits import Commit, Log, Place
from sim.checkers.tables.logs import new_log, place_of, root_beside

SLOT = re.compile(r"^_lakevilla/global/log/(?P<seq>\d+)\.json$")
HEAD = "_lakevilla/global/HEAD.json"


class AppliedWrite(Protocol):
    """What a checker wants to know of a write; `data` is None for a delete."""

    @property
    def client(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def data(self) -> bytes | None: ...


def check_published(writes: Iterable[AppliedWrite]) -> list[str]:
    """All violations, in the order in which they happened."""
    judge = _Judge()
    for write in writes:
        judge.see(write)
    return judge.violations


class _Judge:
    def __init__(self) -> None:
        self.violations: list[str] = []
        self._objects: dict[str, bytes] = {}
        self._logs: dict[str, Log] = {}
        self._referenced: set[str] = set()
        self._slots: list[dict[str, Any]] = []
        self._heads = Heads()
        self._head: dict[str, Any] | None = None

    def see(self, write: AppliedWrite) -> None:
        key, data = write.key, write.data
        before = self._objects.get(key)
        place, beside, slot = place_of(key), root_beside(key), SLOT.match(key)
        if place or slot or PAST.match(key) or key in self._referenced:
            if before is not None and data != before:
                self._blame(write, f"changes {key}, which was published before")
                return
            if before is not None:
                return
        if data is None:
            self._objects.pop(key, None)
            return
        self._objects[key] = data
        if place is not None:
            self._see_entry(write, place, data)
        elif beside is not None:
            problem = self._logs[beside].beside(key, data) if beside in self._logs else f"{key} without a log"
            if problem is not None:
                self._blame(write, problem)
        elif slot:
            self._see_slot(write, int(slot["seq"]), json.loads(data))
        elif key == HEAD:
            self._see_head(write, self._heads.unpack(data))
        else:
            self._heads.see(key, data)

    def _see_entry(self, write: AppliedWrite, place: Place, data: bytes) -> None:
        log = self._logs.setdefault(place.root, new_log(place))
        version = f"version {place.version} of {place.root}"
        if not log.follows(place.version):
            last = log.commits[-1].version if log.commits else -1
            self._blame(write, f"{version} follows version {last}")
            return
        last_ours = log.commits[-1].ours if log.commits else {}
        commit = log.read(place.version, data, self._objects)
        for problem in commit.problems:
            self._blame(write, f"{version} {problem}")
        if last_ours.get("notice", {}).get("dropped") and commit.ours:
            self._blame(write, f"{version} follows the end of a dropped table")
        for key, length in commit.names.items():
            self._referenced.add(key)
            found = self._objects.get(key)
            if found is None:
                self._blame(write, f"{version} names {key}, which is not there")
            elif length is not None and len(found) != length:
                self._blame(write, f"{version} names {key} with {length} bytes, and it has {len(found)}")

    def _see_slot(self, write: AppliedWrite, seq: int, entry: dict[str, Any]) -> None:
        if seq != len(self._slots) + 1 or entry.get("seq") != seq:
            self._blame(write, f"slot {seq} (entry {entry.get('seq')}) follows slot {len(self._slots)}")
        if self._head is not None and seq != self._head["seq"] + 1:
            self._blame(write, f"slot {seq} is created while HEAD is at {self._head['seq']}")
        self._slots.append(entry)

    def _see_head(self, write: AppliedWrite, head: dict[str, Any]) -> None:
        before, self._head = self._head, head
        if before is None:
            if head["seq"] != 0:
                self._blame(write, f"the first HEAD has seq {head['seq']}")
            return
        aside = self._heads.put_aside.get(head["seq"], head)
        if any(aside.get(part) != head.get(part) for part in ("lake", "tables", "versions", "tags")):
            self._blame(write, f"HEAD at {head['seq']} differs from what was put aside for it")
        if head["seq"] != before["seq"] + 1:
            self._blame(write, f"HEAD goes from seq {before['seq']} to {head['seq']}")
        elif head["seq"] > len(self._slots):
            self._blame(write, f"HEAD is at {head['seq']} and there is no such slot")
        elif not self._follows(before, head):
            self._blame(write, f"HEAD at {head['seq']} does not follow from its slot")
        for place, version in head.get("versions", {}).items():
            commits = self._commits(place)
            if not commits or version > commits[-1].version:
                self._blame(write, f"HEAD at {head['seq']} names version {version} of {place}, not there yet")
        for place, version in before.get("versions", {}).items():
            if head["versions"].get(place, version) < version:
                self._blame(write, f"HEAD at {head['seq']} goes back from version {version} of {place}")
        for name, ref in head["tables"].items():
            if name not in before["tables"] and not self._commits(ref["location"]):
                self._blame(write, f"HEAD at {head['seq']} names {name}, and there is no table yet")
        for name, ref in head["tables"].items():
            if any(_drops(commit, head["seq"]) for commit in self._commits(ref["location"])):
                self._blame(write, f"HEAD at {head['seq']} names {name}, whose log says that it was dropped")
        if head["lake"] != before["lake"]:
            self._blame(write, "HEAD gets another lake id")

    def _commits(self, location: str) -> list[Commit]:
        """The versions of a table that are there."""
        log = self._logs.get(location)
        return [] if log is None else log.commits

    def _follows(self, before: dict[str, Any], head: dict[str, Any]) -> bool:
        change = self._slots[head["seq"] - 1]["change"]
        return head["tables"] in _tables_after(before["tables"], change, head.get("versions", {}))

    def _blame(self, write: AppliedWrite, problem: str) -> None:
        self.violations.append(f"{write.client}: {problem}")


def _drops(commit: Commit, seq: int) -> bool:
    """Whether the commit is the notice that this entry dropped the table."""
    notice = commit.ours.get("notice") or {}
    return bool(notice.get("dropped")) and notice.get("seq") == seq


def _tables_after(
    tables: dict[str, Any], change: dict[str, Any], versions: dict[str, int]
) -> list[dict[str, Any]]:
    """What HEAD's tables may be after an entry: changed by it, or as before if it had no effect.

    `versions` are those that HEAD has of its tables after it.
    """
    changed = dict(tables)
    if change["kind"] in ("void", "tag", "untag", "expire"):
        return [tables]
    if change["kind"] == "commit":
        for drop in change["drops"]:
            changed.pop(drop["name"], None)
        # A table that was found where it lies gets its name in HEAD when it is first written, or when what
        # was read of it becomes part of the instant.
        for write in change["writes"]:
            changed.setdefault(write["name"], {"location": write["location"], "format": write["format"]})
        named, kept = dict(changed), dict(tables)
        for read in change["reads"]:
            named.setdefault(read["name"], {"location": read["location"], "format": read["format"]})
        # Also when the commit was rolled back: its tables have versions from then on.
        for write in (write for write in change["writes"] if versions.get(write["location"]) is not None):
            if write["base"] >= 0:
                kept.setdefault(write["name"], {"location": write["location"], "format": write["format"]})
        return [named, changed, kept, tables]
    if change["kind"] == "adopt":
        for found in change["tables"]:
            changed.setdefault(found["name"], {"location": found["location"], "format": found["format"]})
        return [changed]
    ref = {"location": change["location"], "format": change["format"]}
    if change["kind"] in ("create", "register"):
        changed[change["name"]] = ref
        return [changed, tables] if change["kind"] == "create" else [changed]
    changed.pop(change["name"], None)
    if change["kind"] == "rename":
        changed[change["to"]] = ref
    return [changed]
