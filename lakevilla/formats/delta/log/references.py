"""Which files a Delta table's log names, in columns: what vacuum must leave alone, and what it may take.

A version that was current at some moment or later needs files that are live now, or that an entry removed
after that moment. So these are needed: the live files of the newest version, whatever the entries written
since the moment add or remove (by the store's clock, which no writer can get wrong), and the tombstones of
the checkpoint that are younger by their writer's clock (their entries may have been cleaned away). A
deletion vector is needed as long as an action that names it is, and a file of a change data feed as long as
the version that names it is young.
"""

import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt, InvalidInput
from lakevilla.formats.delta.checkpoints.writer import checkpoint_removes
from lakevilla.formats.delta.files.deletion_vectors import vector_key
from lakevilla.formats.delta.log.actions import Commit
from lakevilla.formats.delta.log.encode import is_pending
from lakevilla.formats.delta.log.listing import Listing, list_log
from lakevilla.formats.delta.log.load import follow, read_entry
from lakevilla.formats.delta.log.paths import data_key
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.formats.urls import is_absolute
from lakevilla.store.port import Store

logger = logging.getLogger("lakevilla.formats")

_ENTRIES_AT_ONCE = 256

# Paths that are not simply the key: percent-encoded, absolute, or with segments that mean nothing.
_DOTTED = r"(^|/)\.{0,2}(/|$)"
_ODD = rf"%|^/|^[A-Za-z][A-Za-z0-9+.-]*:|{_DOTTED}"


class Names:
    """Files that the log names, collected in columns.

    `odd` holds the last segment of files outside of the root, or whose path is spelled in a way that we
    cannot compare (another scheme, an alias of the same place, `./`).
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._keys: list[pa.Array] = []
        self._odd: set[str] = set()

    def add(self, actions: pa.RecordBatch | pa.StructArray) -> None:
        """The files of `add` or `remove` actions, and those of their deletion vectors."""
        columns = _members(actions)
        self.add_paths(columns["path"])
        vectors = columns.get("deletionVector")
        if vectors is not None and vectors.null_count < len(vectors):
            self._add_vectors(vectors.drop_null())

    def add_live(self, snapshot: DeltaSnapshot) -> None:
        """The live files of a version."""
        for block in snapshot.state.folded().blocks:
            for _, batch, living in block.batches():
                self.add(batch.filter(pa.array(living)))

    def add_version(self, version: int, at_version: Callable[[int], DeltaSnapshot]) -> None:
        """The live files of an older version, if the log still has it: else no client can read it."""
        try:
            self.add_live(at_version(version))
        except InvalidInput as error:
            logger.info(
                "version %d of %s is not kept, because it cannot be read: %s", version, self._root, error
            )

    def add_entries(self, bodies: Iterable[Mapping[str, Any]]) -> None:
        """The same for actions of log entries."""
        bodies = list(bodies)
        self.add_paths(pa.array([body["path"] for body in bodies], pa.string()))
        vectors = [body.get("deletionVector") for body in bodies]
        found = [vector_key(vector, self._root) for vector in vectors if vector is not None]
        self._add_keys([key for key in found if key is not None])

    def add_paths(self, paths: pa.Array) -> None:
        odd = pc.match_substring_regex(paths, _ODD)
        self._keys.append(paths.filter(pc.invert(odd)))
        self._add_keys([data_key(path, self._root) for path in paths.filter(odd).to_pylist()])

    def hold(self, keys: pa.Array) -> pa.BooleanArray:
        """Which of these keys are among the files."""
        known = pa.chunked_array(self._keys, pa.string()).combine_chunks()
        found = pc.is_in(keys, value_set=known)
        if self._odd:
            last = pc.replace_substring_regex(keys, "^.*/", "")
            found = pc.or_(found, pc.is_in(last, value_set=pa.array(sorted(self._odd), pa.string())))
        return found

    def _add_keys(self, keys: Sequence[str]) -> None:
        strange = {key for key in keys if is_absolute(key) or re.search(_DOTTED, key)}
        self._odd |= {unquote(key.rstrip("/").rpartition("/")[2]) for key in strange}
        self._keys.append(pa.array([key for key in keys if key not in strange], pa.string()))

    def _add_vectors(self, vectors: pa.StructArray) -> None:
        kinds, places = pc.struct_field(vectors, "storageType"), pc.struct_field(vectors, "pathOrInlineDv")
        # Many files share one file of vectors: a name for each file, not for each vector.
        together = pc.unique(pc.binary_join_element_wise(kinds, places, ""))
        found = [
            vector_key({"storageType": text[:1], "pathOrInlineDv": text[1:]}, self._root)
            for text in together.to_pylist()
            if text and text[0] != "i"
        ]
        self._add_keys([key for key in found if key is not None])


class DeltaReferences:
    """What `formats.port.References` promises, for one table at one moment."""

    def __init__(
        self,
        store: Store,
        environment: Environment,
        version: int,
        needed: Names,
        removed: Names,
        old: list[int],
    ) -> None:
        self._store = store
        self._environment = environment
        self._version = version
        self._needed = needed
        self._removed = removed
        self._newer = Names(store.url)
        self._old = old

    @staticmethod
    def read(
        store: Store,
        environment: Environment,
        newest: DeltaSnapshot,
        since_ms: int,
        also: Collection[int],
        at_version: Callable[[int], DeltaSnapshot],
    ) -> "DeltaReferences":
        """One LIST of the log, its newest checkpoint's tombstones, and every entry since the moment."""
        listing = list_log(store)
        needed, removed = Names(store.url), Names(store.url)
        needed.add_live(newest)
        for tombstones in _tombstones(store, environment, listing):
            young = pc.greater_equal(pc.fill_null(tombstones.field("deletionTimestamp"), 0), since_ms)
            needed.add(tombstones.filter(young))
            removed.add(tombstones.filter(pc.invert(young)))
        versions = sorted(listing.commits)
        young = [version for version in versions if listing.commits[version].modified_ms >= since_ms]
        # Whatever came after the version that was read counts too.
        first = min([newest.version + 1, *young])
        recent = [version for version in versions if version >= first]
        # What a version lost since is in the entries after it: only those before the recent ones are read.
        for older in sorted(version for version in also if version < first - 1):
            needed.add_version(older, at_version)
        read = max([newest.version, *versions])
        for some in _portions(recent):
            for version, commit in zip(some, _entries(store, environment, some), strict=True):
                if commit is None:
                    raise Corrupt(
                        f"entry {version} of {store.url} vanished while the log was read; try again",
                        version=version,
                    )
                needed.add_entries([*commit.adds, *commit.removes, *commit.changes])
                # A marker may be filled meanwhile: `named_since` reads it again.
                read = min(read, version - 1) if is_pending(commit.info) else read
        old = [version for version in versions if version < first]
        return DeltaReferences(store, environment, read, needed, removed, old)

    def needed(self, keys: pa.Array) -> pa.BooleanArray:
        return self._needed.hold(keys)

    def removed(self, keys: pa.Array) -> pa.BooleanArray:
        """Reads older entries, newest first, until every key is found or the log ends."""
        found = self._removed.hold(keys)
        while self._old and not pc.all(found).as_py():
            some, self._old = self._old[-_ENTRIES_AT_ONCE:], self._old[:-_ENTRIES_AT_ONCE]
            for commit in _entries(self._store, self._environment, some):
                if commit is not None:
                    # A version's feed goes when the version has become old.
                    self._removed.add_entries([*commit.removes, *commit.changes])
            found = self._removed.hold(keys)
        return found

    def named_since(self, keys: pa.Array) -> pa.BooleanArray:
        for commit in follow(self._store, self._environment, self._version + 1):
            self._newer.add_entries([*commit.adds, *commit.removes, *commit.changes])
            self._version = commit.version
        return self._newer.hold(keys)


def _tombstones(store: Store, environment: Environment, listing: Listing) -> list[pa.Array]:
    newest = max(listing.checkpoints, default=None)
    return checkpoint_removes(store, environment, None if newest is None else listing.checkpoints[newest])


def _entries(store: Store, environment: Environment, versions: Sequence[int]) -> list[Commit | None]:
    return environment.fan_out([partial(read_entry, store, version) for version in versions])


def _portions(versions: list[int]) -> Iterable[list[int]]:
    for start in range(0, len(versions), _ENTRIES_AT_ONCE):
        yield versions[start : start + _ENTRIES_AT_ONCE]


def _members(actions: pa.RecordBatch | pa.StructArray) -> dict[str, pa.Array]:
    if isinstance(actions, pa.RecordBatch):
        return dict(zip(actions.schema.names, actions.columns, strict=True))
    return {field.name: pc.struct_field(actions, field.name) for field in actions.type}
