"""A version that we would write, as the requirements and updates that a catalog takes.

The requirements are what the version was made for: the table itself, the snapshot of `main`, the columns and
the partitioning. What else another client changes meanwhile, properties above all, does not stop the commit.
Where requirements are judged in this process we can ask for more: that the version before is the very one.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, TypeAdapter
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableRequirement, TableUpdate, ValidatableTableRequirement

from lakevilla.formats.iceberg.metadata.document import (
    Raw,
    current_schema,
    current_snapshot,
    default_spec,
    properties,
    schemas,
    specs,
)

_COMPARED = ("table-uuid", "current-schema-id", "last-column-id", "default-spec-id")
"""What of a table's metadata the requirements name, apart from the snapshot."""

_MAIN = "main"
_LAST_ADDED = -1
_REQUIREMENTS: TypeAdapter[list[TableRequirement]] = TypeAdapter(list[TableRequirement])
_UPDATES: TypeAdapter[list[TableUpdate]] = TypeAdapter(list[TableUpdate])

_Updates = list[Mapping[str, Any]]
"""Requirements or updates in the JSON of Iceberg's REST catalogs."""


class AssertVersion(ValidatableTableRequirement):
    """The version must be the one that came after this metadata file: no two come after the same one."""

    type: Literal["lakevilla-assert-version"] = Field(default="lakevilla-assert-version")
    previous: str | None

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override]
        log = [] if base_metadata is None else base_metadata.metadata_log
        if base_metadata is None or (log[-1].metadata_file if log else None) != self.previous:
            raise CommitFailedException("Requirement failed: the table has another version")


def requirements_of(base: Raw, *, exact: bool) -> tuple[TableRequirement, ...]:
    """What must still be true for a version that was made to follow `base`; `exact` where requirements are
    judged in this process."""
    updates: _Updates = [
        {"type": "assert-ref-snapshot-id", "ref": _MAIN, "snapshot-id": _current(base)},
        {"type": "assert-current-schema-id", "current-schema-id": current_schema(base).schema_id},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": base["last-column-id"]},
        {"type": "assert-default-spec-id", "default-spec-id": default_spec(base).spec_id},
    ]
    if "table-uuid" in base:
        updates.append({"type": "assert-table-uuid", "uuid": base["table-uuid"]})
    found: list[Any] = list(_REQUIREMENTS.validate_python(updates))
    if exact:
        log = base.get("metadata-log") or ()
        found.append(AssertVersion(previous=log[-1]["metadata-file"] if log else None))
    return tuple(found)


def lets_pass(before: Raw, after: Raw) -> bool:
    """Whether what must be true for a version that follows `before` is true of `after` too."""
    same = all(before.get(key) == after.get(key) for key in _COMPARED)
    return same and _current(before) == _current(after)


def _current(raw: Raw) -> int | None:
    snapshot = current_snapshot(raw)
    return None if snapshot is None else int(snapshot["snapshot-id"])


def updates_of(before: Raw, after: Raw) -> tuple[TableUpdate, ...]:
    """What makes `after` of `before`."""
    parts = (_columns, _partitioning, _snapshots, _properties)
    updates = [update for part in parts for update in part(before, after)]
    return tuple(_UPDATES.validate_python(updates))


def _columns(before: Raw, after: Raw) -> _Updates:
    """Schemas are only added: that one is not listed any more does not justify to forget it."""
    wanted = current_schema(after).schema_id
    if wanted == current_schema(before).schema_id:
        return []
    if wanted in schemas(before):
        return [{"action": "set-current-schema", "schema-id": wanted}]
    added = next(schema for schema in after["schemas"] if schema["schema-id"] == wanted)
    return [
        {"action": "add-schema", "schema": added},
        {"action": "set-current-schema", "schema-id": _LAST_ADDED},
    ]


def _partitioning(before: Raw, after: Raw) -> _Updates:
    """Another spec of new files, and no sort order any more where there was one."""
    updates: _Updates = []
    wanted = default_spec(after).spec_id
    if wanted != default_spec(before).spec_id:
        if wanted in specs(before):
            updates.append({"action": "set-default-spec", "spec-id": wanted})
        else:
            added = next(spec for spec in after["partition-specs"] if spec["spec-id"] == wanted)
            updates.append({"action": "add-spec", "spec": added})
            updates.append({"action": "set-default-spec", "spec-id": _LAST_ADDED})
    order = after.get("default-sort-order-id") or 0
    if order != (before.get("default-sort-order-id") or 0):
        known = {one["order-id"] for one in before.get("sort-orders") or ()}
        if order not in known:
            added = next(one for one in after["sort-orders"] if one["order-id"] == order)
            updates.append({"action": "add-sort-order", "sort-order": added})
        number = order if order in known else _LAST_ADDED
        updates.append({"action": "set-default-sort-order", "sort-order-id": number})
    return updates


def _snapshots(before: Raw, after: Raw) -> _Updates:
    old = {one["snapshot-id"]: one for one in before.get("snapshots") or ()}
    new = {one["snapshot-id"]: one for one in after.get("snapshots") or ()}
    main = (before.get("refs") or {}).get(_MAIN) or {"type": "branch"}
    updates: _Updates = []
    for number in new.keys() - old.keys():
        updates.append({"action": "add-snapshot", "snapshot": new[number]})
        updates.append({**main, "action": "set-snapshot-ref", "ref-name": _MAIN, "snapshot-id": number})
    gone = sorted(old.keys() - new.keys())
    if gone:
        updates.append({"action": "remove-snapshots", "snapshot-ids": gone})
    statistics = {one["snapshot-id"] for one in before.get("partition-statistics") or ()}
    updates += [
        {"action": "remove-partition-statistics", "snapshot-id": number}
        for number in gone
        if number in statistics
    ]
    return updates


def _properties(before: Raw, after: Raw) -> _Updates:
    old, new = properties(before), properties(after)
    updates: _Updates = []
    if removed := sorted(old.keys() - new.keys()):
        updates.append({"action": "remove-properties", "removals": removed})
    if changed := {name: value for name, value in new.items() if old.get(name) != value}:
        updates.append({"action": "set-properties", "updates": changed})
    return updates
