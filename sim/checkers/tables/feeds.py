"""Change data feeds of Delta tables: what each version says that it changed, against the rows that it has.

Judged of every version with a feed: the rows before it, without those that it says went, with those that it
says came, are the rows after it; each updated row is there as it was and as it is; and no row both went and
came, unless rows only swapped their values. A version of ours that copies rows, and says nothing of what it
changed, has no feed where it must have one.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from sim.checkers.tables.commits import Objects, parse_rows, rows_of
from sim.checkers.tables.delta import DeltaLog, data_key, log_key
from sim.checkers.tables.effects import Row
from sim.checkers.tables.logs import table_roots
from sim.checkers.tables.versions import TimedWrite

Rows = Counter[str]

WENT, CAME = ("delete", "update_preimage"), ("insert", "update_postimage")
INVERSE, RESTORED = "ROLLBACK", "RESTORE"
"""Operations whose files alone say what they changed."""


def check_feeds(writes: Iterable[TimedWrite]) -> list[str]:
    """All violations, of all tables."""
    objects: dict[str, bytes] = {}
    for write in writes:
        # What was deleted later was there when its version was made.
        if write.data is not None:
            objects.setdefault(write.key, write.data)
    return [problem for root in table_roots(objects) for problem in _check(objects, root)]


def _check(objects: Objects, root: str) -> Iterator[str]:
    log, before, wants = DeltaLog(root), Rows(), False
    live: dict[str, Rows] = {}
    while (data := objects.get(log_key(root, len(log.commits)))) is not None:
        version = len(log.commits)
        actions = [json.loads(line) for line in data.decode().splitlines()]
        commit = log.read(version, data, objects)
        for name, file in log.live.items():
            if name not in live:
                live[name] = _bag(rows_of(file, objects) or [])
        after = sum((live[name] for name in log.live), Rows())
        for action in actions:
            if "metaData" in action:
                told = action["metaData"]["configuration"]
                wants = told.get("delta.enableChangeDataFeed") == "true"
        found = [action["cdc"] for action in actions if "cdc" in action]
        where = f"version {version} of {root}"
        if found:
            yield from _check_feed(objects, root, found, before, after, where)
        elif wants and commit.ours and _operation(actions) not in (INVERSE, RESTORED):
            gone = sum((live[name] for name in commit.removes if name in live), Rows())
            came = sum((live[name] for name in commit.adds), Rows())
            if gone & came:
                yield f"{where} copies rows, and has no feed"
        before = after


def _check_feed(
    objects: Objects, root: str, told: list[dict[str, Any]], before: Rows, after: Rows, where: str
) -> Iterator[str]:
    changed: dict[str, Rows] = {kind: Rows() for kind in (*WENT, *CAME)}
    for action in told:
        data = objects.get(data_key(root, action["path"]))
        if data is None or len(data) != action["size"] or action["dataChange"] is not False:
            yield f"{where} names a file of its feed that is not there: {action}"
            continue
        for row in parse_rows(data):
            kind = row.pop("_change_type")
            changed[kind].update(_bag([row]))
    went, came = changed["delete"] + changed[WENT[1]], changed["insert"] + changed[CAME[1]]
    if changed[WENT[1]].total() != changed[CAME[1]].total():
        told_of = [changed[kind].total() for kind in (WENT[1], CAME[1])]
        yield f"{where} says of {told_of[0]} rows what they were, and of {told_of[1]} what they are"
    if went - before or before - went + came != after:
        yield f"{where} has a feed that does not lead to its rows: {went} went, {came} came"
    if changed["delete"] & changed["insert"] or (went & came and changed["delete"] | changed["insert"]):
        yield f"{where} says of a row that it went and came: {went & came}"


def _operation(actions: list[dict[str, Any]]) -> str:
    return next((str(a["commitInfo"].get("operation")) for a in actions if "commitInfo" in a), "")


def _bag(rows: list[Row]) -> Rows:
    return Rows(json.dumps(row, sort_keys=True, default=str) for row in rows)
