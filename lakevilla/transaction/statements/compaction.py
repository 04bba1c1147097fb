"""The statement that rewrites groups of files with the rows that they have.

It reads nothing that another commit could make untrue: whatever the rows are, they stay. So it conflicts only
with commits that remove one of its files. When it is redone, a file that was removed drops out of its group,
and groups that lost no file keep what was written for them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakevilla.errors import Unsupported
from lakevilla.formats.authorship import OPTIMIZE
from lakevilla.model import Change, Counts, DataFile, WrittenFile
from lakevilla.predicates import ANYTHING
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.statements.effect import Effect, TableChange
from lakevilla.transaction.workspace import Workspace

Group = tuple[str, ...]
"""The identities of files that are rewritten together."""


@dataclass(frozen=True)
class Rewrite:
    """A group as it was rewritten."""

    removed: tuple[DataFile, ...]
    added: tuple[WrittenFile, ...]


class Compaction:
    """One run of the statement and its redos. `done` are the groups that its last run rewrote.

    `order` are the columns by which rows are clustered, `file_bytes` the size of new files.
    """

    def __init__(
        self,
        name: str,
        groups: Sequence[Group],
        file_bytes: int,
        order: Sequence[str] = (),
        parameters: Mapping[str, str] | None = None,
    ) -> None:
        self.done: tuple[Rewrite, ...] = ()
        self._name = name
        self._groups = groups
        self._file_bytes = file_bytes
        self._order = order
        self._parameters = dict(parameters or {})
        self._written: dict[Group, Rewrite] = {}
        self._shape: Any = None

    def run(self, workspace: Workspace) -> Effect:
        """Rewrite what is left of the groups."""
        pinned = workspace.pin_target(self._name)
        live = {file.identity: file for file in pinned.snapshot.files(ANYTHING)}
        groups = [files for group in self._groups if (files := _left_of(group, live))]
        _refuse_row_ids(self._name, groups)
        self._forget_other_shapes(pinned)
        reuses = any(_group_of(files) in self._written for files in groups)
        self._write(workspace, pinned, groups)
        self.done = tuple(self._written[_group_of(files)] for files in groups)
        if not self.done:
            return Effect(Counts())
        change = Change(
            OPTIMIZE,
            self._parameters,
            added=tuple(file for rewrite in self.done for file in rewrite.added),
            removed=tuple(file for rewrite in self.done for file in rewrite.removed),
            metrics=_metrics(self.done),
        )
        # What was written for an earlier run is older than this one, and is looked at before the commit.
        return Effect(Counts(), TableChange(pinned, change, restores=reuses))

    def _write(self, workspace: Workspace, pinned: Pinned, groups: Sequence[tuple[DataFile, ...]]) -> None:
        target = replace(workspace.target(pinned), file_bytes=self._file_bytes)
        missing = [files for files in groups if _group_of(files) not in self._written]
        source = workspace.source(pinned, keeps_files=False)
        written = workspace.engine.rewrite(target, source, missing, self._order) if missing else ()
        for files, added in zip(missing, written, strict=True):
            self._written[_group_of(files)] = Rewrite(files, added)

    def _forget_other_shapes(self, pinned: Pinned) -> None:
        """What was written fits the table only as it was then."""
        snapshot = pinned.snapshot
        shape = (snapshot.table_id, snapshot.schema, snapshot.schema.metadata, snapshot.partitioning)
        if shape != self._shape:
            self._written.clear()
        self._shape = shape


def _left_of(group: Group, live: Mapping[str, DataFile]) -> tuple[DataFile, ...]:
    """The files of a group that are still there. One that is left of several is as good as it was."""
    left = tuple(live[identity] for identity in group if identity in live)
    return left if len(left) > 1 or len(left) == len(group) else ()


def _refuse_row_ids(name: str, groups: Sequence[Sequence[DataFile]]) -> None:
    """A row keeps its id when its file is rewritten (Iceberg's spec, "Row Lineage"), and we write no ids."""
    entries = (file.entry for files in groups for file in files)
    if any(getattr(entry, "file", {}).get("first_row_id") is not None for entry in entries):
        raise Unsupported(
            f"cannot optimize table {name!r}: it is of Iceberg's format 3, in which rows keep their ids when "
            "their files are rewritten, and LakeVilla writes no ids. Use Spark's rewrite_data_files",
            table=name,
        )


def _group_of(files: Sequence[DataFile]) -> Group:
    return tuple(file.identity for file in files)


def _metrics(done: Sequence[Rewrite]) -> dict[str, int]:
    added = [file for rewrite in done for file in rewrite.added]
    removed = [file for rewrite in done for file in rewrite.removed]
    return {
        "numAddedFiles": len(added),
        "numRemovedFiles": len(removed),
        "numAddedBytes": sum(file.size for file in added),
        "numRemovedBytes": sum(file.size for file in removed),
    }
