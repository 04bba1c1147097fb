"""The lake's registry: each acknowledged change of it is one slot of the global log, and names follow HEAD.

Creates carry a tag in the table's first entry and renames go to names of their own, so a slot tells which
operation it belongs to. `published` judges the shape of slots and HEAD; this judges what clients were told.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sim.checkers.history import Operation
from sim.checkers.lake.heads import Heads
from sim.checkers.lake.published import HEAD, SLOT
from sim.checkers.tables.versions import TimedWrite


@dataclass
class Registry:
    """What the global log held, and when: slots, and the names of each HEAD."""

    slots: list[tuple[float, dict[str, Any]]]
    heads: list[tuple[float, frozenset[str]]]


def read_registry(writes: Iterable[TimedWrite]) -> Registry:
    registry, heads = Registry([], []), Heads()
    for write in writes:
        if write.data is None or heads.see(write.key, write.data):
            continue
        if SLOT.match(write.key):
            change = json.loads(write.data)["change"]
            # A void slot keeps a late copy of an entry out; the outcome of commits on several tables is
            # judged where they are made.
            if "name" in change:
                registry.slots.append((write.at, change))
        elif write.key == HEAD:
            registry.heads.append((write.at, frozenset(heads.unpack(write.data)["tables"])))
    return registry


def check_registry(registry: Registry, operations: Sequence[Operation]) -> list[str]:
    violations: list[str] = []
    owned = _owned(registry, [op for op in operations if op.outcome == "ok"])
    names_ever = set[str]().union(*(names for _, names in registry.heads))
    for op in operations:
        if op.action == "tables":
            violations.extend(_bad_names(op, registry))
        elif op.outcome == "ok" and op.number not in owned:
            violations.append(f"{_name(op)} was acknowledged and has no slot of its own")
        elif op.outcome == "failed" and op.action == "create" and any(_is_of(op, *s) for s in registry.slots):
            # A create may be decided and then find its place taken; then its name shows nothing of it.
            if op.failure != "Conflict":
                violations.append(f"{_name(op)} failed ({op.error}) and has a slot")
        elif op.outcome == "failed" and op.action == "rename" and op.value in names_ever:
            violations.append(f"{_name(op)} failed ({op.error}) and its name was seen")
    violations.extend(_repeated(registry))
    return violations


def _owned(registry: Registry, done: list[Operation]) -> set[int]:
    """The operations that get a slot of their own, when as many as possible do.

    Each operation fits a span of slots, so it is right to give each slot in turn to the one of its
    operations that ended first.
    """
    owned: set[int] = set()
    for at, change in registry.slots:
        fitting = [op for op in done if op.number not in owned and _is_of(op, at, change)]
        if fitting:
            owned.add(min(fitting, key=lambda op: op.completed).number)
    return owned


def _is_of(op: Operation, at: float, change: dict[str, Any]) -> bool:
    if change["kind"] != op.action or change["name"] != op.key or not op.invoked <= at <= op.completed:
        return False
    if op.action == "create":
        return re.search(rf"tag_{op.value}(?!\d)", change["first"]) is not None
    return op.action != "rename" or bool(change["to"] == op.value)


def _repeated(registry: Registry) -> Iterable[str]:
    """An operation that got two slots was applied twice."""
    tagged = [json.dumps(change, sort_keys=True) for _, change in registry.slots]
    for number, change in enumerate(tagged):
        if change in tagged[:number]:
            yield f"slot {number + 1} repeats an earlier slot: {change[:100]}"


def _bad_names(op: Operation, registry: Registry) -> Iterable[str]:
    """A listing shows all names that were there all the time, and no name that was not decided yet."""
    if op.outcome != "ok":
        return
    before = [names for at, names in registry.heads if at <= op.invoked][-1:]
    during = before + [names for at, names in registry.heads if op.invoked < at <= op.completed]
    seen = set(op.result)
    always = frozenset.intersection(*during) if during else frozenset()
    decided = {c.get("to") or c["name"] for at, c in registry.slots if at <= op.completed}
    if missing := always - seen:
        yield f"{_name(op)} misses {sorted(missing)}"
    if early := seen - frozenset().union(*during) - decided:
        yield f"{_name(op)} shows {sorted(early)}, which nobody had decided"


def _name(op: Operation) -> str:
    return f"operation {op.number} ({op.client}: {op.action} {op.key} {op.value})"
