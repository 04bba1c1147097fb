"""What snapshots and manifest lists say in short: counts of files and rows, bounds of partition values."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyiceberg.types import PrimitiveType

from lakevilla.formats.authorship import ENGINE, OPTIMIZE
from lakevilla.formats.iceberg.definition.specs import Spec
from lakevilla.formats.iceberg.manifests.entries import Entry
from lakevilla.formats.iceberg.metadata.document import Raw, current_snapshot
from lakevilla.formats.iceberg.values import counted, to_bytes
from lakevilla.model import Batch

REPLACE = "replace"
"""The operation of a snapshot that rewrites files and keeps all rows."""
_APP, _BATCH = "lakevilla.app", "lakevilla.batch"


def batch_summary(once: Batch | None) -> dict[str, str]:
    """What the summary of a snapshot says of the batch that it commits."""
    return {} if once is None else {_APP: once.app, _BATCH: str(once.number)}


def newest_batch(raw: Raw, app: str) -> Batch:
    """The newest batch of an app that the snapshots of a table name; -1 if they name none."""
    for snapshot in reversed(raw.get("snapshots") or ()):
        fields = snapshot.get("summary") or {}
        number = str(fields.get(_BATCH, ""))
        if fields.get(_APP) == app and number.removeprefix("-").isdecimal():
            return Batch(app, int(number))
    return Batch(app, -1)


def summary_of(
    before: Raw, operation: str, added: Sequence[Entry], removed: Sequence[Entry]
) -> dict[str, str]:
    """The summary of a snapshot that adds and removes these data files."""
    rows_in, rows_out = sum(e.rows for e in added), sum(e.rows for e in removed)
    bytes_in, bytes_out = sum(e.size for e in added), sum(e.size for e in removed)
    fields = {
        "operation": _operation(operation, bool(added), bool(removed)),
        "engine-name": "lakevilla",
        "engine-version": ENGINE.partition("/")[2],
        "changed-partition-count": str(len({(e.spec_id, e.partition) for e in (*added, *removed)})),
    }
    if added:
        fields |= _counts(
            {"added-data-files": len(added), "added-records": rows_in, "added-files-size": bytes_in}
        )
    if removed:
        fields |= _counts(
            {"deleted-data-files": len(removed), "deleted-records": rows_out, "removed-files-size": bytes_out}
        )
    return fields | _totals(
        before,
        {
            "total-records": rows_in - rows_out,
            "total-files-size": bytes_in - bytes_out,
            "total-data-files": len(added) - len(removed),
            "total-delete-files": 0,
            "total-position-deletes": 0,
            "total-equality-deletes": 0,
        },
    )


def partition_summaries(spec: Spec, entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Bounds of each partition field over the files of a manifest."""
    kinds = [field.field_type for field in spec.partition_type.fields]
    return [_summary(kind, [entry.partition[at] for entry in entries]) for at, kind in enumerate(kinds)]


def _summary(kind: Any, values: Sequence[Any]) -> dict[str, Any]:
    known = [counted(value) for value in values if value is not None and value == value]
    fields: dict[str, Any] = {
        "contains_null": any(value is None for value in values),
        "contains_nan": any(value is not None and value != value for value in values),
        "lower_bound": None,
        "upper_bound": None,
    }
    if known and isinstance(kind, PrimitiveType):
        fields["lower_bound"], fields["upper_bound"] = to_bytes(kind, min(known)), to_bytes(kind, max(known))
    return fields


def _operation(operation: str, adds: bool, removes: bool) -> str:
    if operation == OPTIMIZE:
        return REPLACE
    if not removes:
        return "append"
    return "overwrite" if adds else "delete"


def _totals(before: Raw, changes: Mapping[str, int]) -> dict[str, str]:
    """Totals continue where the snapshot before has them, and begin where there is none."""
    snapshot = current_snapshot(before)
    known = {} if snapshot is None else snapshot.get("summary") or {}
    totals = {}
    for name, change in changes.items():
        text = "0" if snapshot is None else str(known.get(name, ""))
        if text.isdecimal():
            totals[name] = str(max(0, int(text) + change))
    return totals


def _counts(counts: Mapping[str, int]) -> dict[str, str]:
    return {name: str(count) for name, count in counts.items()}
