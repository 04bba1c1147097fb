"""The lives of tables, as the writes tell them: what was published where, by whom, and whether it was right.

A table lives from the first entry of its log until somebody deletes the log; another table may live in the
same folder later. Within one life versions have no gaps, even after a client has cleaned old entries; the
table's id never changes; an entry names only files that are there, and its rows are those of the version
before with exactly what its transaction does. An entry under a number that was used and cleaned away is
stale: it does nothing. A client that woke up may take its newest entry back, and publish the inverse of one
whose files were not there. Nothing here knows the code that it judges.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Protocol

from sim.checkers.history import Operation
from sim.checkers.lives.life import Done, Life, Version
from sim.checkers.tables.commits import Commit, File, Place, rows_of
from sim.checkers.tables.delta import CHECKPOINT
from sim.checkers.tables.logs import entry_key, new_log, place_of, root_beside, told
from sim.checkers.tables.rows import Change, Row, Rows, after, as_rows, without
from sim.checkers.tables.versions import TimedWrite

GRACE = 3600.0
"""How long a transaction that began before a folder was deleted may use its old state, unless its client says
that it does not know the outcome."""
MINUTE = 60.0
"""How long a stranger that had read a log before its folder was deleted may write a checkpoint of it, or
delete an entry of that name."""
LOOK = 11.0
"""How long before its checkpoint is there a client of ours may have looked at the table (docs/protocol.md,
section 1): a look counts for a second, and a write that was answered within ten is not confirmed."""
INVERSE = "-inverse"
HINT = "version-hint.text"
WRECKER = "wrecker"
"""The client that deletes whole folders."""
STRANGERS = "stranger"
"""How the names of clients begin that know nothing of LakeVilla."""


class SentWrite(TimedWrite, Protocol):
    """What these checkers want to know of a write."""

    @property
    def client(self) -> str: ...


class Lives:
    """Walks the writes in the order in which they applied. `operations` are those with transactions, by
    their ids; `values` what strangers appended; `hopeless` transactions whose clients were told that they
    woke up too late to take their entries back; `is_of` says whether a folder may be that of a table with
    this name."""

    def __init__(
        self,
        operations: Mapping[str, Operation],
        values: set[int],
        hopeless: frozenset[str] = frozenset(),
        is_of: Callable[[str, str], bool] = lambda root, name: True,  # noqa: ARG005
    ) -> None:
        self.lives: list[Life] = []
        self.done: Counter[tuple[int, str]] = Counter()
        """How often each operation's change of a table is there, by its number and the table's name."""
        self.spoiled: set[str] = set()
        """Folders that were deleted under somebody who was at work: no more is said of them."""
        self.told_rightly: set[str] = set()
        """Of the `hopeless` transactions those that have published files which were not there."""
        self._found: list[tuple[str, int, str]] = []
        self._stale: dict[str, tuple[str, str, float]] = {}
        self._hopeless = hopeless
        self._is_of = is_of
        self._operations = operations
        self._values = values
        self._objects: dict[str, bytes] = {}
        self._now: dict[str, Life] = {}
        self._ended: dict[str, float] = {}
        """When folders were deleted that had a log."""
        self._swept: dict[str, float] = {}
        """When something was deleted in folders by people, with a log or without."""
        self._before: dict[tuple[int, str], Rows] = {}
        """The rows before each operation's change of a table."""
        self._parsed: dict[File, list[Row]] = {}

    @property
    def violations(self) -> list[str]:
        return [problem for _, _, problem in self._found]

    def left_over(self) -> list[str]:
        """Entries under numbers that had been used, which their clients left there although they know the
        outcome of their transactions. A late copy that applied afterwards is known to nobody; nothing reads
        it (docs/protocol.md, section 1)."""
        found = []
        for key, (client, txn, at) in self._stale.items():
            op = self._operations.get(txn)
            if op is None or op.client != client or at > op.completed:
                continue
            if op.outcome in ("ok", "failed") and not op.doubted:
                found.append(f"{client}: leaves {key}, whose number had been used")
        return found

    def current(self, root: str) -> Life | None:
        """The table that lives in this folder now."""
        return self._now.get(root)

    def see(self, write: SentWrite) -> None:
        key, data, client = write.key, write.data, write.client
        place = place_of(key)
        if data is None:
            self._objects.pop(key, None)
            if client == WRECKER:
                self._swept |= {str(folder): write.at for folder in PurePosixPath(key).parents}
            if place is not None:
                self._see_delete(write.at, client, place, key)
            elif (checkpoint := CHECKPOINT.match(key)) and (life := self._now.get(checkpoint["root"])):
                life.checkpoints.discard(int(checkpoint["version"]))
            return
        before = self._objects.get(key)
        if place is None:
            self._objects[key] = data
            self._see_beside(write.at, client, key, data)
        elif before is None:
            self._objects[key] = data
            self._see_entry(write.at, client, place, data)
        elif before != data:
            self._blame(client, place, f"changes {key}, which was published before")

    def _see_delete(self, at: float, client: str, place: Place, key: str) -> None:
        life = self._now.get(place.root)
        if client == WRECKER:
            self._end(place.root, at)
        elif key in self._stale:
            del self._stale[key]
            self._absolve(place)
        elif life is None or place.root in self.spoiled:
            return
        elif life.versions[-1].ends:
            self._end_if_empty(life, at)
        elif client.startswith(STRANGERS) and at - self._ended.get(place.root, -MINUTE) < MINUTE:
            # It had listed the log that was deleted, and cleans up what has the same name in this one.
            self.spoiled.add(place.root)
        elif client.startswith(STRANGERS) or any(found > place.version for found in life.checkpoints):
            # Whether one of ours may do that is for `retention` to judge.
            life.cleaned.add(place.version)
        elif place.version == life.newest and life.before is not None:
            state, done = life.before
            vars(life.log).update(state)
            life.versions.pop()
            life.before = None
            if done is not None:
                self.done[done[:2]] -= done[2]
            self._absolve(place)
        else:
            self._blame(client, place, f"deletes version {place.version} of {place.root}")

    def _end_if_empty(self, life: Life, at: float) -> None:
        """A table that was dropped lives until the last entry of its log is deleted."""
        places = (place_of(key) for key in self._objects)
        if not any(place is not None and place.root == life.root for place in places):
            life.ended = at
            del self._now[life.root]

    def _end(self, root: str, at: float) -> None:
        life = self._now.pop(root, None)
        if life is not None:
            life.ended = at
        self._ended[root] = at

    def _see_beside(self, at: float, client: str, key: str, data: bytes) -> None:
        root = root_beside(key)
        if root is None or root in self.spoiled:
            return
        life = self._now.get(root)
        if root in self._ended and key.endswith(HINT):
            # Of a table that was deleted. A reader of ours looks for what it names.
            return
        problem = f"{key} without a log" if life is None else life.log.beside(key, data)
        deleted_at = self._ended.get(root)
        may_be_late = MINUTE if client.startswith(STRANGERS) else LOOK if CHECKPOINT.match(key) else 0.0
        if problem and deleted_at is not None and at - deleted_at < may_be_late:
            # It had read the log that was deleted. Its checkpoint hides what is in the folder from then on.
            self.spoiled.add(root)
            return
        if problem is not None and (deleted_at is None or at - deleted_at > GRACE):
            self._found.append((root, -1, f"{client}: {problem}"))
        if life is not None and (checkpoint := CHECKPOINT.match(key)):
            life.checkpoints.add(int(checkpoint["version"]))

    def _see_entry(self, at: float, client: str, place: Place, data: bytes) -> None:
        root, life = place.root, self._now.get(place.root)
        txn = str(told(place, data).get("txn"))
        if root in self.spoiled:
            return
        log = new_log(place) if life is None else life.log
        excused = self._is_excused(at, place, data)
        if life is not None and place.version in life.cleaned:
            self._stale[entry_key(place.format, root, place.version)] = client, txn, at
            return
        if not (log.follows(place.version) if life is None else place.version == life.newest + 1):
            if excused:
                self.spoiled.add(root)
            else:
                # A client that slept may have sent it: then it deletes it again.
                where = "where no table is" if life is None else f"after version {life.newest}"
                self._blame(client, place, f"version {place.version} of {root} is created {where}")
                self._stale[entry_key(place.format, root, place.version)] = client, txn, at
            return
        state = {name: copy(value) for name, value in vars(log).items()}
        commit = log.read(place.version, data, self._objects)
        missing = self._missing(commit)
        if missing and txn in self._hopeless:
            self.spoiled.add(root)
            self.told_rightly.add(txn)
            return
        attempt = str(commit.ours.get("attempt"))
        # The attempt that a client rolls back without an entry of the global log.
        alone = attempt.endswith(INVERSE) and not commit.ours.get("slot")
        undone = attempt.removesuffix(INVERSE) if alone and life is not None else ""
        broken = None if life is None else life.broken.get(undone)
        # What lists files that were not there says of others that they are not live.
        problems = missing if broken is not None else [*commit.problems, *missing]
        if life is None:
            life = Life(root, table_id(place, data) or "", log, place.version)
            self._now[root] = life
            self.lives.append(life)
        elif (found := table_id(place, data) or life.id) != life.id:
            problems.append(f"is of the table {found}, and the table there is {life.id}")
        rows = self._rows(log.live.values())
        if missing:
            life.broken[attempt] = place.version
        before = life.versions[-1].rows if life.versions else ()
        if broken is None:
            wrong, done = self._judge(life, commit, before, rows)
        else:
            wrong, done = self._judge_repair(life, broken, before, rows), None
        if broken is not None and not wrong:
            self._absolve(replace(place, version=broken))
        rolled_back = life.attempts.get(undone, -1)
        was = life.at(rolled_back)
        if was is not None and at - was.at < GRACE:
            life.taken_back[rolled_back] = was.at, at
        life.attempts[attempt] = place.version
        if wrong:
            problems.append(wrong)
        if done is not None:
            self.done[done[:2]] += done[2]
        if problems and excused:
            self.spoiled.add(root)
        for problem in problems if not excused else ():
            self._blame(client, place, f"version {place.version} of {root} {problem}")
        files = frozenset(key for file in log.live.values() for key in (file.key, *file.deletes))
        # A write to a table that was dropped does not bring it back.
        notice = commit.ours.get("notice")
        ends = bool(notice["dropped"]) if notice else bool(life.versions) and life.versions[-1].ends
        life.before = state, done
        life.versions.append(Version(at, files, rows, ends))

    def _missing(self, commit: Commit) -> list[str]:
        found = []
        for key, length in commit.names.items():
            data = self._objects.get(key)
            if data is None:
                found.append(f"names {key}, which is not there")
            elif length is not None and len(data) != length:
                found.append(f"names {key} with {length} bytes, and it has {len(data)}")
        return found

    def _is_excused(self, at: float, place: Place, data: bytes) -> bool:
        """Whether the folder was deleted while the transaction that writes it was at work."""
        ended = self._ended.get(place.root, self._swept.get(place.root))
        if ended is None:
            return False
        op = self._operations.get(str(told(place, data).get("txn")))
        if op is not None and (op.doubted or op.outcome == "unknown"):
            return op.invoked <= ended
        return (op is None or op.invoked <= ended) and at - ended < GRACE

    def _judge(self, life: Life, commit: Commit, before: Rows, rows: Rows) -> tuple[str, Done | None]:
        """What is wrong with the rows of a version, and what it does."""
        txn, attempt, first = commit.ours.get("txn"), str(commit.ours.get("attempt")), not life.versions
        op = self._operations.get(str(txn))
        if txn is None:
            return "" if first else self._judge_stranger(before, rows), None
        if op is None:
            return "" if first or rows == before else f"changes rows, and no client did: {txn}", None
        if attempt.endswith(INVERSE):
            if rows == before and attempt.removesuffix(INVERSE) in life.empty:
                return "", None
            for name, changes in op.value.items():
                is_of = self._is_of(life.root, name)
                if is_of and self._taken_back(op, name, changes, before) == rows:
                    return "", (op.number, name, -1)
            return f"takes operation {op.number} back, and has {_difference(before, rows)}", None
        is_empty = not (commit.adds or commit.removes or commit.redefines)
        # Several tables may be restored to equal rows.
        for name, changes in op.value.items():
            if not self._is_of(life.root, name):
                continue
            if after(changes, before) == rows and not (is_empty and _restores(changes)):
                self._before[op.number, name] = before
                return "", (op.number, name, 1)
        if rows == before and commit.ours.get("notice"):
            return "", None
        if is_empty:
            # It takes the place of the change in a commit that is refused.
            life.empty.add(attempt)
            return "", None
        return f"is operation {op.number} ({op.value}), and has {_difference(before, rows)}", None

    def _taken_back(self, op: Operation, name: str, changes: Sequence[Change], now: Rows) -> Rows:
        """The rows after what the operation did to this table was rolled back."""
        if not _restores(changes):
            return without(changes, now)
        later = Counter(now) - Counter(after(changes, ()))
        return tuple(sorted((later + Counter(self._before.get((op.number, name), ()))).elements()))

    def _judge_repair(self, life: Life, broken: int, before: Rows, rows: Rows) -> str:
        """What is wrong with the inverse of a version whose files were not there: it undoes what that did."""
        was, earlier = life.at(broken), life.at(broken - 1)
        assert was is not None
        assert earlier is not None, "the first version has no inverse"
        if Counter(rows) - Counter(before) == Counter(earlier.rows) - Counter(was.rows) and not (
            Counter(before) - Counter(rows)
        ):
            return ""
        return f"takes version {broken} back, and has {_difference(before, rows)}"

    def _judge_stranger(self, before: Rows, rows: Rows) -> str:
        more = set(rows) - set(before)
        fine = len(rows) == len(set(rows)) and set(before) <= set(rows)
        if fine and all(
            items.lstrip(",").isdigit() and int(items[1:]) in self._values for _, _, items in more
        ):
            return ""
        return f"is a stranger's, and has {_difference(before, rows)}"

    def _rows(self, files: Iterable[File]) -> Rows:
        found: list[Row] = []
        for file in files:
            if file not in self._parsed:
                self._parsed[file] = list(as_rows(rows_of(file, self._objects) or ()))
            found += self._parsed[file]
        return tuple(sorted(found))

    def _absolve(self, place: Place) -> None:
        """What was wrong with this version was put right: it is not there any more."""
        self._found = [found for found in self._found if found[:2] != (place.root, place.version)]

    def _blame(self, client: str, place: Place, problem: str) -> None:
        self._found.append((place.root, place.version, f"{client}: {problem}"))


def _restores(changes: Sequence[Change]) -> bool:
    return any(change.action == "restore" for change in changes)


def table_id(place: Place, data: bytes) -> str | None:
    """The id of the table, if the entry has it."""
    if place.format == "delta":
        actions = (json.loads(line) for line in data.decode().splitlines() if line.strip())
        found = [action["metaData"]["id"] for action in actions if action.get("metaData")]
        return found[-1] if found else None
    return str(json.loads(data)["table-uuid"])


def _difference(before: Rows, rows: Rows) -> str:
    lost, new = Counter(before) - Counter(rows), Counter(rows) - Counter(before)
    return f"{list(new.elements())} in the place of {list(lost.elements())}"
