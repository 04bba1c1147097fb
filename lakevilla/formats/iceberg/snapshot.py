"""A version of an Iceberg table, as the format port wants it: schema, properties, live files by predicate.

Immutable. Manifests are read when files are first asked for, and shared with the versions before and after. A
change that is not published yet is shown on top of its base version, as files added and hidden.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from lakevilla.environment import Environment
from lakevilla.errors import Unsupported
from lakevilla.formats import authorship
from lakevilla.formats.coordination import Coordination
from lakevilla.formats.iceberg.definition.layout import Layout, same_shape
from lakevilla.formats.iceberg.definition.properties import NO_MARKERS, refuse_write, retention_ms, shown
from lakevilla.formats.iceberg.deletes.contents import Kept
from lakevilla.formats.iceberg.deletes.scope import DeleteIndex
from lakevilla.formats.iceberg.log.authorship import newest
from lakevilla.formats.iceberg.log.versions import Keeper, Version
from lakevilla.formats.iceberg.manifests.cache import Locate, Manifest, Manifests, unwritten
from lakevilla.formats.iceberg.manifests.entries import Entry, Mask
from lakevilla.formats.iceberg.manifests.file_pruning import matching
from lakevilla.formats.iceberg.manifests.manifest_pruning import worth_reading
from lakevilla.formats.iceberg.metadata import document
from lakevilla.formats.iceberg.metadata.document import Raw
from lakevilla.formats.iceberg.metadata.paths import Places
from lakevilla.formats.lazy import lazy_property
from lakevilla.formats.properties import EXCLUSIVE, is_true, markers_in_log
from lakevilla.model import DataFile, Partitioning
from lakevilla.predicates import ANYTHING, NOTHING, Predicate
from lakevilla.pruning import Summary

_IN_CATALOGS = 2
"""The newest format that PyIceberg writes to catalogs."""


@dataclass(frozen=True, eq=False)
class TableContext:
    """What a version needs from outside: the location of the table, and how recorded paths are found."""

    root: str
    locate: Locate
    environment: Environment
    kept: Kept = field(default_factory=Kept, repr=False)


@dataclass(frozen=True, eq=False)
class IcebergSnapshot:
    """One version. `known` are manifests that were read for a version near it, `whole` all that it has, where
    we know them without reading. `added` and `hidden` are what changes that are not published add and remove,
    the latter by identity."""

    at: Version
    layout: Layout
    context: TableContext
    known: tuple[Manifest, ...] = field(default=(), repr=False)
    whole: tuple[Manifest, ...] | None = field(default=None, repr=False)
    added: tuple[Entry, ...] = ()
    hidden: frozenset[str] = frozenset()
    seen_at: float = math.inf
    """When the table was last seen to be this one, on the environment's clock."""

    @staticmethod
    def of(version: Version, context: TableContext, seen_at: float = math.inf) -> "IcebergSnapshot":
        return IcebergSnapshot(version, Layout.of(version.raw), context, seen_at=seen_at)

    @property
    def table_id(self) -> str:
        return document.table_id(self.raw)

    def advance(self, version: Version, whole: tuple[Manifest, ...] | None = None) -> "IcebergSnapshot":
        """A later version of this table; `whole` are its manifests, where we wrote it."""
        known = self.__dict__.get("manifests", self.known)
        if version.raw is self.raw:
            # A version that was freed: the same files once more.
            whole = self.__dict__.get("manifests", self.whole)
        layout = self.layout_of(version.raw)
        return IcebergSnapshot(version, layout, self.context, known, whole, seen_at=self.seen_at)

    def layout_of(self, raw: Raw) -> Layout:
        """The layout of a version near this one."""
        return self.layout if same_shape(raw, self.raw) else Layout.of(raw)

    def overlaid(self, raw: Raw, added: Sequence[Entry], removed: Iterable[str]) -> "IcebergSnapshot":
        """The version after this one if a change were published: nothing is written."""
        version = replace(self.at, number=self.at.next_number, raw=raw, published=False)
        gone = frozenset(removed)
        kept = tuple(entry for entry in self.added if self.unpublished(entry).identity not in gone)
        hidden = self.hidden | gone
        whole = self.manifests
        return IcebergSnapshot(
            version, self.layout_of(raw), self.context, whole, whole, (*kept, *added), hidden
        )

    @property
    def version(self) -> int:
        return self.at.number

    @property
    def raw(self) -> Raw:
        return self.at.raw

    def metadata_keys(self) -> list[str]:
        """The manifest list of this version, and the manifests that its snapshot brought."""
        current = document.current_snapshot(self.raw)
        if current is None or "manifest-list" not in current:
            return []
        made = [m.path for m in self.manifests if m.record.get("added_snapshot_id") == current["snapshot-id"]]
        return [self.places.key_of(str(path)) for path in (current["manifest-list"], *made)]

    @property
    def timestamp_ms(self) -> int:
        return int(self.raw.get("last-updated-ms", 0))

    @property
    def schema(self) -> pa.Schema:
        return self.layout.schema

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return self.layout.partition_columns

    @property
    def partitioning(self) -> Partitioning:
        return self.layout.partitioning

    @property
    def properties(self) -> Mapping[str, str]:
        return shown(document.properties(self.raw))

    @lazy_property
    def coordination(self) -> Coordination:
        kept, properties = newest(self.at.commit_info), self.properties
        return Coordination(
            notice=authorship.notice_of(kept),
            ticket=authorship.ticket_of(kept),
            contended=authorship.ticket_of(self.at.info) > 0,
            slot=authorship.slot_of(kept),
            exclusive=is_true(properties, EXCLUSIVE),
            markers_in_log=markers_in_log(properties),
        )

    @property
    def comment(self) -> str | None:
        return self.properties.get("comment")

    @property
    def checks(self) -> Mapping[str, str]:
        return {}

    @property
    def keeps_feed(self) -> bool:
        """Iceberg has no files for that."""
        return False

    @property
    def retention_ms(self) -> int:
        return retention_ms(self.properties)

    @lazy_property
    def places(self) -> Places:
        return Places(self.raw["location"], self.context.root)

    def refuse_writes(self) -> None:
        if self.at.keeper is Keeper.UNKNOWN:
            raise Unsupported(
                f"cannot write to the table at {self.context.root}: a catalog decides its versions. Register "
                "it with that catalog: lake.register(name, catalog=..., table=...)"
            )
        if self.at.keeper is Keeper.CATALOG and self.coordination.markers_in_log:
            raise Unsupported(NO_MARKERS)
        if self.places.moved:
            raise Unsupported(
                f"cannot write to the table at {self.context.root}: its metadata names another location, "
                f"{self.raw['location']}, where other clients would look for new files. Write to it there"
            )
        if self.at.keeper is Keeper.CATALOG and document.format_version(self.raw) > _IN_CATALOGS:
            raise Unsupported(
                f"cannot write to the table at {self.context.root}: it is of Iceberg's format "
                f"{document.format_version(self.raw)} and in a catalog, and PyIceberg, which reaches the "
                "catalog, writes formats 1 and 2 only"
            )
        refuse_write(self.raw)

    @lazy_property
    def manifests(self) -> tuple[Manifest, ...]:
        """The manifests of the version, without what is not published."""
        if self.whole is not None:
            return self.whole
        return self.reader.of(document.current_snapshot(self.raw), self.known)

    @lazy_property
    def reader(self) -> Manifests:
        return Manifests(self.context.locate, self.context.environment, self.layout.specs)

    @property
    def has_deletes(self) -> bool:
        unpublished = any(entry.masks for entry in self.added)
        return unpublished or any(not m.is_data and not m.is_empty for m in self.manifests)

    def formats(self) -> frozenset[str]:
        found: frozenset[str] = frozenset()
        for manifest in self._loaded():
            if "formats" not in manifest.notes:
                manifest.notes["formats"] = frozenset(entry.format for entry in manifest.entries or ())
            found |= manifest.notes["formats"]
        return found

    def unstored(self) -> frozenset[frozenset[str]]:
        """After a change of the partition spec files of several specs live side by side.

        Spec, "Column Projection": a column that a data file does not hold has the value of an identity
        partition, if the file has one. Whether a file holds a column only the file itself knows: manifests
        may name sizes and bounds of columns that were left out of it, as of files taken over from Hive.
        """
        living = [manifest for manifest in self.manifests if manifest.is_data and not manifest.is_empty]
        specs = {manifest.record["partition_spec_id"] for manifest in living}
        specs |= {entry.spec_id for entry in self.added}
        columns = (self.layout.specs[spec].identity_columns for spec in specs or {self.layout.default.id})
        return frozenset(frozenset(names).difference(self.partition_columns) for names in columns)

    def about_bytes(self) -> int:
        snapshot = document.current_snapshot(self.raw) or {}
        size = str((snapshot.get("summary") or {}).get("total-files-size", ""))
        if size.isdecimal():
            return int(size)
        return sum(entry.size for manifest in self._loaded() for entry in manifest.entries or ())

    def files(self, predicate: Predicate = ANYTHING) -> list[DataFile]:
        found: list[DataFile] = []
        for manifest in self._loaded(predicate):
            files = map(self.data_file, self._matching(manifest, predicate))
            found += [file for file in files if file.identity not in self.hidden]
        for manifest in unwritten(self.added):
            found += map(self.unpublished, self._matching(manifest, predicate))
        return found

    def summary(self, predicate: Predicate, unless: Predicate, columns: Sequence[str]) -> Summary | None:
        """Rows are counted. Bounds may be wide or cut, by the writer's choice, and say no range."""
        found = self.files(predicate)
        counts = [file.living_rows for file in found]
        known = [count for count in counts if count is not None]
        if columns or len(known) < len(counts):
            return None
        files = frozenset(file.identity for file in found)
        if unless != NOTHING and any(file.identity in files for file in self.files(unless)):
            return None
        return Summary(sum(known), {}, files)

    def _loaded(self, predicate: Predicate = ANYTHING) -> list[Manifest]:
        """The manifests that may name a data file with such a row, read, and with them those of deletes: in
        one round."""
        living = [manifest for manifest in self.manifests if not manifest.is_empty]
        data = worth_reading([manifest for manifest in living if manifest.is_data], predicate, self.layout)
        self.reader.load([*data, *(manifest for manifest in living if not manifest.is_data)])
        return data

    @lazy_property
    def deletes(self) -> DeleteIndex:
        """Which rows are deleted, without what is not published."""
        manifests = [m for m in self.manifests if not m.is_data and not m.is_empty]
        self.reader.load(manifests)
        entries = [entry for manifest in manifests for entry in manifest.entries or ()]
        return DeleteIndex(entries, self.context.locate, self.layout, self.context.kept)

    def _matching(self, manifest: Manifest, predicate: Predicate) -> Iterator[Entry]:
        entries = manifest.entries or ()
        for at in np.flatnonzero(matching(manifest, predicate, self.layout)):
            yield entries[int(at)]

    def data_file(self, entry: Entry) -> DataFile:
        """A live file as engines see it."""
        if self.deletes.is_empty:
            return self._file(entry)
        found = self.deletes.masks(entry)
        masks = tuple(Mask(self.places.key_of(mask.path), mask) for mask in found)
        return self.unpublished(replace(entry, masks=masks) if masks else entry)

    def unpublished(self, entry: Entry) -> DataFile:
        """The same of a file that a change brings, whose own deletes are those that it comes with."""
        file, deletes = self._file(entry), self.deletes.of(entry, entry.masks)
        if deletes is None:
            return file
        return replace(file, identity=f"{entry.path}#{deletes.identity}", deletes=deletes)

    def _file(self, entry: Entry) -> DataFile:
        return DataFile(
            key=self.places.key_of(entry.path),
            identity=entry.path,
            size=entry.size,
            rows=entry.rows,
            partition=self.layout.specs[entry.spec_id].identities(entry.partition),
            entry=entry,
            format=entry.format,
        )
