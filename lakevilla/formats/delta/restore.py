"""Bringing a Delta table back to an earlier version: its rows, columns, partitioning and constraints.

Other properties stay as they are, and so does the protocol: other clients may rely on what it lists.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lakevilla.errors import Unsupported
from lakevilla.formats.delta.definition.features import mapping_mode, refuse_write
from lakevilla.formats.delta.definition.upgrade import upgraded
from lakevilla.formats.delta.files.stored_statistics import statistics_of
from lakevilla.formats.delta.log.actions import Metadata
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.formats.properties import CONSTRAINT
from lakevilla.formats.restored_files import RESTORE, RestoredFiles
from lakevilla.model import Change, DataFile, WrittenFile


def restore(now: DeltaSnapshot, then: DeltaSnapshot) -> Change:
    """The change that makes of `now` what `then` was."""
    metadata = _metadata(now, then)
    protocol = now.protocol if metadata is None else upgraded(now.protocol, metadata)
    refuse_write(protocol, metadata or now.metadata)
    files = RestoredFiles.between(now, then)
    statistics = statistics_of(then.state, {file.identity for file in files.back})
    return Change(
        operation=RESTORE,
        parameters={"version": str(then.version)},
        added=tuple(_back(file, statistics.get(file.identity)) for file in files.back),
        removed=files.gone,
        metadata=metadata,
        protocol=None if protocol == now.protocol else protocol,
        metrics=files.metrics,
    )


def _metadata(now: DeltaSnapshot, then: DeltaSnapshot) -> Metadata | None:
    """The table's definition with what is restored of it; None if that is the same."""
    old, new = then.metadata, now.metadata
    modes = mapping_mode(then.protocol, old), mapping_mode(now.protocol, new)
    if modes[0] != modes[1]:
        raise Unsupported(
            f"its column mapping was changed since, from {modes[0]!r} to {modes[1]!r}; read that version, "
            "and write its rows to a new table",
            version=then.version,
        )
    checks = {name: text for name, text in old.configuration.items() if name.startswith(CONSTRAINT)}
    kept = {name: text for name, text in new.configuration.items() if not name.startswith(CONSTRAINT)}
    same_columns = json.loads(old.schema_string) == json.loads(new.schema_string)
    metadata = replace(
        new,
        schema_string=new.schema_string if same_columns else old.schema_string,
        partition_columns=old.partition_columns,
        configuration=kept | checks,
    )
    return None if metadata == new else metadata


def _back(file: DataFile, statistics: str | None) -> WrittenFile:
    entry = {name: _plain(value) for name, value in file.entry.items() if name != "stats"}
    entry |= {"modificationTime": entry.get("modificationTime", 0), "dataChange": True}
    if statistics is not None:
        entry["stats"] = statistics
    modified_ms = int(entry["modificationTime"])
    return WrittenFile(file.key, file.size, file.rows or 0, {}, {}, modified_ms, entry=entry)


def _plain(value: Any) -> Any:
    """A deletion vector without the members that it does not have; partition values may be null."""
    if isinstance(value, Mapping) and "storageType" in value:
        return {name: member for name, member in value.items() if member is not None}
    return value
