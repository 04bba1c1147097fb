"""What snapshots and manifest lists say in short: counts of files and rows, bounds of partition values."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyiceberg.types import PrimitiveType

from lakevilla.formats.authorship import ENGINE, OPTIMIZE
from lakevilla.formats.iceberg.definition.specs import Spec
from lakevilla.formats.iceberg.manifests.entries import PUFFIN, Entry
from lakevilla.formats.iceberg.manifests.file_changes import FileChanges
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


def summary_of(before: Raw, operation: str, files: FileChanges) -> dict[str, str]:
    """The summary of a snapshot that moves these files."""
    data, deletes = files.data, files.deletes
    come, gone = (*data.come, *deletes.come), (*data.gone, *deletes.gone)
    rows_in, rows_out = sum(e.rows for e in data.come), sum(e.rows for e in data.gone)
    bytes_in, bytes_out = sum(map(_bytes_of, come)), sum(map(_bytes_of, gone))
    fields = {
        "operation": _operation(operation, files),
        "engine-name": "lakevilla",
        "engine-version": ENGINE.partition("/")[2],
        "changed-partition-count": str(len({(e.spec_id, e.partition) for e in (*come, *gone)})),
    }
    if data.come:
        fields |= _counts({"added-data-files": len(data.come), "added-records": rows_in})
    if data.gone:
        fields |= _counts({"deleted-data-files": len(data.gone), "deleted-records": rows_out})
    fields |= _of_deletes("added", deletes.come) | _of_deletes("removed", deletes.gone)
    if come:
        fields |= _counts({"added-files-size": bytes_in})
    if gone:
        fields |= _counts({"removed-files-size": bytes_out})
    return fields | _totals(
        before,
        {
            "total-records": rows_in - rows_out,
            "total-files-size": bytes_in - bytes_out,
            "total-data-files": len(data.come) - len(data.gone),
            "total-delete-files": len(deletes.come) - len(deletes.gone),
            "total-position-deletes": sum(e.rows for e in deletes.come) - sum(e.rows for e in deletes.gone),
            "total-equality-deletes": 0,
        },
    )


def _bytes_of(file: Entry) -> int:
    """Of a deletion vector its own bytes: others share its file."""
    return int(file.file["content_size_in_bytes"]) if file.format == PUFFIN else file.size


def _of_deletes(verb: str, files: Sequence[Entry]) -> dict[str, str]:
    """What is said of delete files: all of them are of positions."""
    if not files:
        return {}
    vectors = sum(file.format == PUFFIN for file in files)
    counts = {
        f"{verb}-delete-files": len(files),
        f"{verb}-dvs": vectors,
        f"{verb}-position-delete-files": len(files) - vectors,
        f"{verb}-position-deletes": sum(file.rows for file in files),
    }
    return _counts({name: count for name, count in counts.items() if count})


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


def _operation(operation: str, files: FileChanges) -> str:
    """As Iceberg's writers call it: rows may go by deletes, and by delete files that are taken away they
    come."""
    if operation == OPTIMIZE:
        return REPLACE
    removes = bool(files.data.gone or files.deletes.come)
    if not removes and not files.deletes.gone:
        return "append"
    return "overwrite" if files.data.come or not removes else "delete"


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
