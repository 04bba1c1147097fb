"""The format port: an open table format, as the transaction layer sees it.

A format knows its log, its snapshots and how to publish a change as the next version. It does not run
transactions, and knows no engines and no registry of the lake. Of LakeVilla's protocol it stores and finds
what a version has to say to other clients (`Coordination`, `Author`), and may hold markers (`LogMarkers`).
Lost races are values.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import pyarrow as pa

from lakevilla.answers import HistoryEntry
from lakevilla.errors import LakeVillaError, Unsupported
from lakevilla.formats.coordination import Coordination
from lakevilla.formats.needed_files import References
from lakevilla.formats.port_parts.marker_entries import MarkerEntries
from lakevilla.formats.port_parts.row_changes import VersionChange
from lakevilla.formats.row_masks import RowMasks
from lakevilla.model import (
    Author,
    Change,
    DataFile,
    Footprint,
    Notice,
    PartitionField,
    Partitioning,
    Shrunk,
    WrittenFile,
)
from lakevilla.predicates import Predicate
from lakevilla.pruning import Summary
from lakevilla.sql.statements import Action
from lakevilla.store.port import Meta, Store


class Snapshot(Protocol):
    """One version of a table, immutable. Cheap to hold and to advance."""

    @property
    def version(self) -> int: ...

    @property
    def table_id(self) -> str:
        """The id that the format gives the table; empty if it has none."""
        ...

    @property
    def timestamp_ms(self) -> int:
        """When this version was committed, as the format records it."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """The logical schema: names and types as users see them; metadata of `files.column_mapping`."""
        ...

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """For readers: columns whose values are taken from the log, not from the files."""
        ...

    @property
    def partitioning(self) -> Partitioning:
        """For writers: how new files are divided."""
        ...

    @property
    def properties(self) -> Mapping[str, str]: ...

    @property
    def comment(self) -> str | None:
        """What people say of the table."""
        ...

    @property
    def coordination(self) -> Coordination:
        """What the log entries that were read say about LakeVilla's own protocol."""
        ...

    @property
    def checks(self) -> Mapping[str, str]:
        """CHECK constraints by name, and column invariants, as Spark SQL text."""
        ...

    @property
    def keeps_feed(self) -> bool:
        """Whether changes of rows also write the rows that they change, see `engines.row_feed`."""
        ...

    @property
    def retention_ms(self) -> int:
        """How long files stay after they were removed, as the table wants it."""
        ...

    def files(self, predicate: Predicate) -> Sequence[DataFile]:
        """The live files that may hold a row for which the predicate is true."""
        ...

    def summary(self, predicate: Predicate, unless: Predicate, columns: Sequence[str]) -> Summary | None:
        """Of the rows that satisfy the predicate, with the range of these columns; None where statistics do
        not say it exactly, or a file may have such rows and others, which satisfy `unless`."""
        ...

    @property
    def has_deletes(self) -> bool:
        """Whether files may have deleted rows."""
        ...

    def formats(self) -> frozenset[str]:
        """The formats of the live data files, see `DataFile.format`."""
        ...

    def unstored(self) -> frozenset[frozenset[str]]:
        """The columns other than `partition_columns` that a file may not hold because the log has their
        value, see `DataFile.partition`: one set for each kind of live file, at least one."""
        ...

    def about_bytes(self) -> int:
        """About how many bytes the live files have, without making an object of each."""
        ...

    def refuse_writes(self) -> None:
        """Raise Unsupported, naming the feature, if the table asks of writers what we do not do."""
        ...


S = TypeVar("S", bound=Snapshot)


@dataclass(frozen=True, slots=True)
class Published:
    """The change is this version, on `before` (None: on the base). `doubtful`: see `Created`."""

    snapshot: Snapshot
    before: Snapshot | None = None
    doubtful: bool = False


class CatalogRefusal(Unsupported):
    """A catalog refuses a change permanently, whichever client sends it. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Another client holds that version; nothing was written. `footprint` says what it did. `known` is the
    table at that version, or the error of a client that does not understand it: conflicts are decided by the
    footprint alone, so all clients decide alike."""

    footprint: Footprint
    known: Snapshot | LakeVillaError

    @property
    def snapshot(self) -> Snapshot:
        """The table at that version; raises Unsupported or Corrupt if this client cannot read it."""
        if isinstance(self.known, LakeVillaError):
            raise self.known
        return self.known


@dataclass(frozen=True, slots=True)
class Displaced:
    """Our marker in the log cannot be filled any more, because of `reason`; nothing was published."""

    reason: str


@dataclass(frozen=True, slots=True)
class LogMarkers:
    """Markers in a table's log, after one version of it. A table may be without this capability: a catalog
    that keeps a table lets no client hold a version.

    `fill(change, author, etag)` replaces our marker, which is the next log entry and has this etag, by the
    change. It looks right before that whether a checkpoint or a commit covers the marker: then nothing is
    written. CommitUnknown as in `FormatTable.publish`."""

    entries: MarkerEntries
    fill: Callable[[Change, Author, str], Published | Displaced]


class FormatTable(Protocol[S]):
    """One table of one format, opened at its root. Safe to use from many threads. It takes and gives
    snapshots of its own format, `S`."""

    @property
    def data_folder(self) -> str:
        """What the keys of new data files begin with: empty, or a folder and a slash."""
        ...

    @property
    def first_version(self) -> int:
        """The number of the first version of a table that we create: the one that other clients give it too,
        so that only one of the clients that create a table in the same place succeeds."""
        ...

    def open(self, file: DataFile) -> tuple[Store, str]:
        """The store and the key of a data file."""
        ...

    def latest(self, base: S | None = None) -> S | None:
        """The newest version, or None if there is no table here.

        With `base`, only the entries after it are asked for: one GET that misses if it is current."""
        ...

    def at_version(self, version: int) -> S: ...

    def at_time(self, timestamp_ms: int) -> S:
        """The newest version that was committed at or before this time."""
        ...

    def first(
        self,
        schema: pa.Schema,
        partition_by: Sequence[PartitionField],
        properties: Mapping[str, str],
        comment: str | None,
    ) -> Change:
        """The change that makes a new table. InvalidInput for what the format cannot hold."""
        ...

    def describe(self, first: Change) -> S:
        """What a table will be after its first change, without rows: version -1, on which `first` can be
        previewed, encoded and published like a change on any version."""
        ...

    def encode_first(self, first: Change, author: Author) -> bytes:
        """The log entry of the first version, wherever and whenever it is published."""
        ...

    def publish_first(self, data: bytes, attempt: str) -> bool:
        """Create the first version; True if it is this attempt's, False if another client's."""
        ...

    def publish_notice(self, base: int, notice: Notice, txn: str, attempt: str) -> tuple[int, str] | None:
        """Publish a notice of a rename or a drop, an empty entry, at the first free version above base.

        Every version on the way is read; one that names this attempt ends the walk. The version and put-id
        that this call created, or None if another client's call had."""
        ...

    def alter(self, snapshot: S, action: Action) -> Change:
        """The change that alters columns, properties or constraints."""
        ...

    def replace(
        self,
        snapshot: S,
        schema: pa.Schema,
        partition_by: Sequence[PartitionField],
        properties: Mapping[str, str] | None,
        comment: str | None,
    ) -> Change:
        """The change that gives the table another definition, without the files that it removes. Without
        `properties` its own stay, and its comment."""
        ...

    def changes(self, base: S, until: int) -> Sequence[VersionChange]:
        """What each version after `base` up to this one did to the rows. InvalidInput if the log does not say
        it any more."""
        ...

    def feed_files(self, snapshot: S, feed: Sequence[WrittenFile]) -> Sequence[DataFile]:
        """The files of a change's feed, as engines read them."""
        ...

    def masks(self, snapshot: S, operation: str) -> RowMasks | None:
        """How a change of rows (UPDATE, DELETE, MERGE, or WRITE for an overwrite) spares the files that they
        are in; None if the table wants files rewritten."""
        ...

    def publish(self, base: S, change: Change, author: Author) -> Published | Taken:
        """Create the version after `base`, which is `base.version + 1`, or `first_version` if `base` only
        describes a table. One create on the happy path.

        An ambiguous answer is resolved by reading back; if that fails too, CommitUnknown. Taken reads the
        conflicting entry, and `Taken.snapshot` is base advanced by it. Also an entry that is damaged, or
        needs a newer client, is Taken."""
        ...

    def log_markers(self, snapshot: S) -> LogMarkers | None:
        """The markers in the table's log after this version; None if that log cannot hold any."""
        ...

    def preview(self, base: S, change: Change) -> S:
        """The table as it would be after the change; nothing is written."""
        ...

    def footprint(self, base: S, change: Change) -> Footprint:
        """What the change would do to the table at `base`, as the conflict rules see it."""
        ...

    def shrunk(self, base: S, change: Change) -> Mapping[str, Callable[[], Shrunk]]:
        """The files that stay while the change deletes rows of them, by the names that `Footprint.file_of`
        gives. On a version where other rows of them are deleted, `publish` and `preview` delete both."""
        ...

    def inverse(self, base: S, change: Change, author: Author) -> Change:
        """The change that undoes this one, which this author published on `base`: its files go, those that it
        removed come back."""
        ...

    def restore(self, now: S, then: S) -> Change:
        """The change that brings the rows and columns of an earlier version back. Files that come back have
        an `entry`. Unsupported if the table was changed since in a way that cannot be undone so."""
        ...

    def encode_change(self, base: S, change: Change) -> Mapping[str, Any]:
        """A change as a JSON object in the format's own terms, without what it has read."""
        ...

    def decode_change(self, record: Mapping[str, Any]) -> Change:
        """The change of such an object; Corrupt if it is malformed."""
        ...

    def since(self, base: S) -> Sequence[Taken]:
        """The versions after `base`, in order, with what each of them did; Expired if that is lost."""
        ...

    def look(self, snapshot: S) -> S:
        """Before a change of this version is decided: Recreated if it is not a version of the table here any
        more. Asks nothing if that was seen a moment ago (`formats.identity`)."""
        ...

    def has(self, snapshot: S) -> bool:
        """Whether this version, which was read before, is still one of the table here: not if the table was
        deleted, or recreated in the same place. One GET if it is."""
        ...

    def missing(self, files: Sequence[WrittenFile], published: S | None = None) -> Sequence[str]:
        """The keys of uploaded files that are not in the store any more; of a version that we have published
        with them, also of what else it needs."""
        ...

    def retract(self, version: int, put: str | None, orphaned: bool = False, displaced: bool = False) -> bool:
        """Delete the log entry of this version if it is ours, by its put-id where one is given, and the
        number had been used before and was cleaned away: then the table does not have it. False if it is
        still there. For a client that created it long after it had seen that the number was free. `orphaned`:
        the lake has no table here any more, then an entry that is alone goes too. `displaced`: the log is
        another table's, then an entry goes unless others follow it."""
        ...

    def is_stale(self, version: int) -> bool:
        """Whether the log entry of this version took a number that had been used before: then the table does
        not have it. A client wrote it that was suspended before it sent it, and could not delete it."""
        ...

    def written(self) -> Mapping[int, int]:
        """When each version was written whose log entry is there, by the store's clock, if that tells."""
        ...

    def is_dropped_without(self, attempt: str, base: int) -> bool:
        """Whether a catalog has dropped the table, and nothing shows that it had this attempt's part."""
        ...

    def references(self, snapshot: S, since_ms: int, also: Collection[int] = ()) -> References:
        """The files that any version needs which was current at this moment, by the store's clock, or later.

        `snapshot` is the newest version, `also` are older ones that are still needed; those that the log does
        not have any more cannot be read."""
        ...

    def expiry(self, snapshot: S, since_ms: int, also: Collection[int] = ()) -> Change | None:
        """The change by which the newest version forgets what no client needs that reads versions that were
        current at this moment or later, or one of `also`; None if it holds nothing like that."""
        ...

    def expired_log(
        self, snapshot: S, now_ms: int, least_ms: int, also: Collection[int] = ()
    ) -> Sequence[Sequence[Meta]]:
        """The files of the log that no client needs, by the table's retention for them and at least the given
        one: groups, each to be deleted after the one before. `snapshot` is the newest version, `also` are
        others that must stay readable."""
        ...

    def maintain(self, snapshot: S) -> None:
        """After a publish: write the checkpoint or the hint if it is due. Failure harms no client."""
        ...

    def renew_hint(self, snapshot: S) -> None:
        """Let clients that go by a hint alone find the newest version: a client that died left no hint, and
        one that slept may have set it back. Failure harms no client."""
        ...

    def history(
        self, limit: int | None = None, before: int | None = None, *, brief: bool = False
    ) -> Sequence[HistoryEntry]:
        """The versions whose log entries still exist, newest first: so many, and none from `before` on.
        Where that costs requests, a brief one does not list which files came and went."""
        ...


Table: TypeAlias = FormatTable[Snapshot]
"""A table of whatever format, for rooms that pass its snapshots back to it and nowhere else."""
