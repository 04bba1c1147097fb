"""The physical effect of several operations on one table as one change. Pure.

A file that one operation added and a later one removed was never part of the table: it is in neither list,
and vacuum finds it by its name.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lakevilla.model import Change, DataFile, ReadSet, WrittenFile

SEVERAL = "TRANSACTION"
"""The operation that a table's history shows for a commit of several statements."""


def net(changes: Sequence[Change]) -> Change | None:
    """What the operations do together, in this order; None if nothing is left to publish."""
    if len(changes) <= 1:
        return changes[0] if changes and _does_something(changes[0]) else None
    added: dict[str, WrittenFile] = {}
    removed: dict[str, DataFile] = {}
    metrics: Counter[str] = Counter()
    metadata, protocol, read = None, None, ReadSet()
    for change in changes:
        for gone in change.removed:
            if added.pop(gone.key, None) is None:
                removed[gone.identity] = gone
        added |= {file.key: file for file in change.added}
        metadata, protocol = _together(metadata, change.metadata), change.protocol or protocol
        read = read.union(change.read)
        metrics.update(change.metrics)
    names = [change.operation for change in changes]
    alike = len(set(names)) == 1
    total = Change(
        operation=names[0] if alike else SEVERAL,
        parameters={"statements": json.dumps(names)},
        added=tuple(added.values()),
        removed=tuple(removed.values()),
        metadata=metadata,
        protocol=protocol,
        read=read,
        metrics=metrics,
        replaces=any(change.replaces for change in changes),
    )
    return total if _does_something(total) else None


def _together(earlier: Any, later: Any) -> Any:
    """The metadata of two changes: a mapping holds the parts that a change gives, anything else is whole."""
    if isinstance(earlier, Mapping) and isinstance(later, Mapping):
        return {**earlier, **later}
    return later or earlier


def _does_something(change: Change) -> bool:
    return bool(change.added or change.removed or change.metadata or change.protocol)
