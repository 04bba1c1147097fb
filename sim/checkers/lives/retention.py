"""What vacuum deletes: nothing that a reader may still need.

A data file may be deleted if it does not belong to the newest version, to a version that was the newest
within the last day, or to one that an instant of the table's own lake names that is tagged, or not before the
lake's horizon. Files of a table that was dropped within a day stay. Of a Delta table's log an entry or a
checkpoint may be deleted if it is older than a day, and these versions can be read without it. For
the global log: HEAD goes from one entry to the next and stays the same lake's; an entry that is not settled
is never deleted, but by its own client if the lake that it was made for was deleted before it was written.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sim.checkers.lake.heads import Heads
from sim.checkers.lives.life import Life
from sim.checkers.lives.lives import STRANGERS, WRECKER, Lives, SentWrite
from sim.checkers.tables.delta import CHECKPOINT, LOG_ENTRY

DAY = 24 * 3600.0
MARGIN = 300.0
"""Clocks differ."""
_RECORD = re.compile(r"^(?P<lake>[^/]+)/(?P<key>_lakevilla/global/.*)$")
_SLOT = re.compile(r"^_lakevilla/global/log/(?P<seq>\d+)\.json$")
_OWNER = re.compile(r"^(?P<root>.+)/_lakevilla/owner\.json$")
_STATE = ("seq", "lake", "tables", "versions", "tags", "torn")
_HEAD = "_lakevilla/global/HEAD.json"


@dataclass
class _Lake:
    heads: Heads = field(default_factory=Heads)
    head: dict[str, Any] | None = None
    states: dict[int, tuple[float, dict[str, int]]] = field(default_factory=dict)
    """When HEAD came to each number, and the versions of its tables then."""
    bases: dict[int, tuple[float, dict[str, "_Base"]]] = field(default_factory=dict)
    """When each entry was decided, and the versions on which its changes of tables were validated."""
    txns: dict[int, str] = field(default_factory=dict)
    """The transaction of each entry."""
    made_for: dict[int, str] = field(default_factory=dict)
    """The id of the lake that each entry names."""

    def unsettled(self) -> set[str]:
        """The transactions of the entries that HEAD has not come to."""
        seq = -1 if self.head is None else self.head["seq"]
        return {txn for number, txn in self.txns.items() if number > seq}


class _Base(NamedTuple):
    """A version of a table, which is told by its id."""

    version: int
    table_id: str


class Keeping:
    """Watches deletes and the global logs of all lakes, while `lives` is told of the same writes. `homes`
    says in which lake's folder each transaction began."""

    def __init__(self, lives: Lives, url: str, homes: Mapping[str, str]) -> None:
        self._found: list[str] = []
        self._deleted: list[tuple[Life, int, str]] = []
        self.torn: set[str] = set()
        """Tables that some HEAD called torn."""
        self.cut_short: set[str] = set()
        """Transactions that were decided, and whose lake was deleted before they were settled."""
        self._lives = lives
        self._homes = homes
        self._url = f"{url}/"
        self._lakes: dict[str, _Lake] = {}
        self._owners: dict[str, str] = {}
        """The id of the lake that a table belongs to, by the table's folder."""
        self._ended: set[str] = set()
        """The ids of lakes whose folder was deleted."""

    @property
    def violations(self) -> list[str]:
        """Files of a version that its client rolled back at once may be deleted: vacuum held them before."""
        deleted = [problem for life, version, problem in self._deleted if version not in life.taken_back]
        return self._found + deleted

    def see(self, write: SentWrite) -> None:
        """Before `lives` is told of the write."""
        record, owned = _RECORD.match(write.key), _OWNER.match(write.key)
        if owned is not None:
            self._owners[owned["root"]] = "" if write.data is None else json.loads(write.data)["lake"]
        elif record is not None:
            self._see_record(write, record["lake"], record["key"])
        elif write.data is None and not write.client.startswith((WRECKER, STRANGERS)):
            entry, checkpoint = LOG_ENTRY.match(write.key), CHECKPOINT.match(write.key)
            if entry is not None:
                self._see_log_delete(write, entry["root"], entry=int(entry["version"]))
            elif checkpoint is not None:
                self._see_log_delete(write, checkpoint["root"], checkpoint=int(checkpoint["version"]))
            elif write.key.endswith((".parquet", ".bin")):
                self._see_delete(write)

    def _see_record(self, write: SentWrite, name: str, key: str) -> None:
        lake = self._lakes.setdefault(name, _Lake())
        if write.data is None:
            slot = _SLOT.match(key)
            if write.client == WRECKER:
                self._end(self._lakes.pop(name))
            elif slot and self._is_unsettled(lake, int(slot["seq"])):
                self._blame(write.client, f"deletes entry {slot['seq']} of {name}, which is not settled")
            return
        if slot := _SLOT.match(key):
            entry = json.loads(write.data)
            lake.bases[int(slot["seq"])] = write.at, _bases(entry.get("change", {}))
            lake.txns[int(slot["seq"])] = entry.get("txn", "")
            lake.made_for[int(slot["seq"])] = entry.get("lake", "")
        if lake.heads.see(key, write.data) or key != _HEAD:
            return
        before, lake.head = lake.head, lake.heads.unpack(write.data)
        head = lake.head
        lake.states[head["seq"]] = write.at, dict(head.get("versions", {}))
        torn = set(head.get("torn", ())) - set((before or {}).get("torn", ()))
        self._see_torn(write, name, lake.bases.get(head["seq"], (0.0, {})), torn)
        kept = before is not None and all(before.get(part) == head.get(part) for part in _STATE)
        # A table may be given up at the number where HEAD is.
        if not kept and head["seq"] != (0 if before is None else before["seq"] + 1):
            self._blame(write.client, f"HEAD of {name} is at {head['seq']} after {before and before['seq']}")
        if before is not None and head["lake"] != before["lake"]:
            self._blame(write.client, f"HEAD of {name} is another lake's")

    def _end(self, lake: _Lake) -> None:
        self.cut_short |= lake.unsettled()
        if lake.head is not None:
            self._ended.add(lake.head["lake"])

    def _is_unsettled(self, lake: _Lake, seq: int) -> bool:
        """Whether HEAD has still to come to this entry. It never comes to one of a lake that was deleted."""
        made_for = lake.made_for.get(seq)
        if made_for in self._ended and (lake.head is None or lake.head["lake"] != made_for):
            return False
        return lake.head is None or seq > lake.head["seq"]

    def _see_torn(
        self, write: SentWrite, name: str, entry: tuple[float, dict[str, _Base]], torn: set[str]
    ) -> None:
        """A table is torn only where a legacy client, or a client of another lake, has built on what had to
        be rolled back, where the version on which the entry was validated cannot be read any more, or where
        the table was deleted."""
        decided_at, bases = entry
        for location in torn:
            root = self._root(name, location)
            if location not in bases:
                self._blame(write.client, f"calls {location} torn, which the entry does not change")
            elif root not in self._lives.spoiled and not self._is_lost(
                name, root, bases[location], decided_at
            ):
                self._blame(write.client, f"calls {location} torn, and no stranger has built there")
        self.torn |= torn

    def _is_lost(self, name: str, root: str, base: _Base, decided_at: float) -> bool:
        life = self._lives.current(root)
        if life is None or life.versions[0].at > decided_at or not life.is_readable(base.version):
            return True
        if base.table_id and base.table_id != life.id:
            return True
        later = [commit for commit in life.log.commits if commit.version > base.version]
        theirs = [c for c in later if not c.ours or self._homes.get(str(c.ours.get("txn")), name) != name]
        return any(commit.removes or commit.redefines for commit in theirs)

    def _see_delete(self, write: SentWrite) -> None:
        life = self._life(write.key)
        if life is None or life.root in self._lives.spoiled:
            return
        for version, why in [*self._needed(life, write.at), *self._instants(life)]:
            if write.key in life.versions[version].files:
                number = life.first + version
                problem = f"{write.client}: deletes {write.key}, which version {number} has, {why}"
                self._deleted.append((life, number, problem))
                return

    def _see_log_delete(self, write: SentWrite, root: str, entry: int = -1, checkpoint: int = -1) -> None:
        """A client may take its newest entry back, and a number that had been used: `lives` judges that."""
        life = self._lives.current(root)
        if life is None or root in self._lives.spoiled or life.versions[-1].ends:
            return
        version = life.at(max(entry, checkpoint))
        if version is None or entry in life.cleaned or entry == life.newest:
            return
        if version.at > write.at - DAY + MARGIN:
            self._blame(write.client, f"deletes {write.key}, which is not a day old")
        for number, why in [*self._needed(life, write.at), *self._instants(life)]:
            needed = life.first + number
            if life.is_readable(needed) and not life.is_readable(needed, entry=entry, checkpoint=checkpoint):
                self._blame(write.client, f"deletes {write.key}, which version {needed} needs, {why}")
                return

    def _instants(self, life: Life) -> list[tuple[int, str]]:
        """The versions of a table that the instants name which its own lake keeps."""
        found = []
        for name, lake in self._lakes.items():
            if lake.head is None or self._owners.get(life.root) != lake.head["lake"]:
                continue
            for seq, (since, versions) in lake.states.items():
                for location, number in versions.items() if seq >= lake.head.get("horizon", 0) else ():
                    named = life.at(number) if self._root(name, location) == life.root else None
                    if named is not None and named.at <= since and life.is_readable(number):
                        found.append((number - life.first, f"which entry {seq} of {name} names"))
        return found

    def _life(self, key: str) -> Life | None:
        parts = key.split("/")
        roots = ["/".join(parts[:number]) for number in range(len(parts) - 1, 0, -1)]
        return next((life for root in roots if (life := self._lives.current(root)) is not None), None)

    def _needed(self, life: Life, now: float) -> list[tuple[int, str]]:
        found = []
        for number, version in enumerate(life.versions):
            if life.until(number) > now - DAY + MARGIN and not (
                version.ends and version.at < now - DAY + MARGIN
            ):
                found.append((number, "the newest within a day"))
        for name, lake in self._lakes.items():
            owns = lake.head is not None and self._owners.get(life.root) == lake.head["lake"]
            tags: dict[str, int] = lake.head.get("tags", {}) if lake.head is not None and owns else {}
            for tag, seq in tags.items():
                since, versions = lake.states.get(seq, (0.0, {}))
                for location, number in versions.items():
                    named = life.at(number) if self._root(name, location) == life.root else None
                    # Else it is of a table that lived there before.
                    if named is not None and named.at <= since and life.is_readable(number):
                        found.append((number - life.first, f"which the tag {tag} of {name} names"))
        return found

    def _root(self, lake: str, location: str) -> str:
        return location.removeprefix(self._url) if "://" in location else f"{lake}/{location}"

    def _blame(self, client: str, problem: str) -> None:
        self._found.append(f"{client}: {problem}")


def _bases(change: dict[str, Any]) -> dict[str, _Base]:
    """The tables that an entry changes, each with the version on which that was validated."""
    return {
        write["location"]: _Base(write["base"], write.get("id", "")) for write in change.get("writes", ())
    }
