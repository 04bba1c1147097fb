"""Known bugs of commits on Iceberg tables, to be planted one by one, as in `planted.commits`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from lakevilla.environment import Environment
from lakevilla.formats.authorship import attempt_of
from lakevilla.formats.iceberg import versions
from lakevilla.formats.iceberg.deletes.scope import DeleteIndex
from lakevilla.formats.iceberg.log import next_version
from lakevilla.formats.iceberg.log.authorship import Info, commit_info
from lakevilla.formats.iceberg.log.file_log import FileLog
from lakevilla.formats.iceberg.log.footprint import footprint_of
from lakevilla.formats.iceberg.log.next_version import make_next
from lakevilla.formats.iceberg.log.publish import upload
from lakevilla.formats.iceberg.log.versions import Log, Made, Version
from lakevilla.formats.iceberg.manifests.cache import Manifest
from lakevilla.formats.iceberg.manifests.entries import ADDED, DATA, DELETED, EXISTING, Entry
from lakevilla.formats.iceberg.snapshot import IcebergSnapshot
from lakevilla.formats.port import Published, Taken
from lakevilla.model import Author, Change
from lakevilla.store.port import Store
from sim.planted.commits import BUGS as COMMON
from sim.planted.commits import Plant, planter

BUGS: dict[str, Plant] = {}
"""Every bug by its name."""

_bug = planter(BUGS)

_ROOM = "lakevilla.formats.iceberg"
_WORK = f"{_ROOM}.log.next_version._Work"

_begin = next_version._Work.__init__
_write = next_version._Work._write
_metadata_after = versions.metadata_after
_newest = FileLog.newest


def _property_bug(target: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The same for a property."""

    def register(wrong: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def plant() -> Iterator[None]:
            with patch(target, property(wrong)):
                yield

        BUGS[wrong.__name__.replace("_", "-")] = plant
        return wrong

    return register


# What a version needs.


@_bug(f"{_ROOM}.table.publish")
def metadata_created_before_its_manifests_are_there(
    log: Log, store: Store, environment: Environment, base: IcebergSnapshot, change: Change, author: Author
) -> Published | Taken:
    made = make_next(base, change, author, environment)
    found = log.create(base.at, made.raw, author.txn)
    upload(store, environment, made.objects)
    if isinstance(found, Made):
        return Published(base.advance(found.version, made.manifests), base)
    after = base.advance(found)
    if attempt_of(found.info) == author.attempt:
        return Published(after, base)
    return Taken(footprint_of(base, after), after)


@_bug(f"{_ROOM}.log.publish.upload")
def manifest_list_put_without_a_look_at_its_answer(
    store: Store, environment: Environment, objects: Mapping[str, bytes]
) -> None:
    """What is uploaded is not waited for: the commit may come first, or the upload fail behind it."""
    for key, data in objects.items():
        environment.background(lambda key=key, data=data: store.put(key, data))  # type: ignore[misc]


@_bug(f"{_ROOM}.log.next_version.manifest_key")
def manifests_of_all_attempts_have_one_name(txn: str, unique: str, number: int) -> str:  # noqa: ARG001
    """A second attempt writes over what the first has published."""
    return f"metadata/{txn}-m{number}.avro"


# What a snapshot keeps.


@_bug(f"{_WORK}._rewritten")
def rewritten_manifest_forgets_files_that_stay(
    self: Any, manifest: Manifest, gone: set[Any], fresh: Iterable[Any]
) -> Manifest:
    statuses = [(entry, DELETED) for entry in manifest.entries or () if entry.name in gone]
    return _write(self, manifest.record["partition_spec_id"], [*fresh, *statuses], manifest.content)


@_bug(f"{_WORK}._write")
def files_that_stay_are_written_as_new(self: Any, spec_id: int, statuses: Any, content: int) -> Manifest:
    """They get the snapshot's numbers, and deletes that came before do not apply to them any more."""
    fresh = [(_unnumbered(e), ADDED) if status == EXISTING else (e, status) for e, status in statuses]
    return _write(self, spec_id, fresh, content)


def _unnumbered(entry: Entry) -> Entry:
    return entry.with_numbers(-1, -1, 0)


@_bug(f"{_WORK}._gathered")
def gathered_manifests_are_forgotten(self: Any, manifests: list[Manifest]) -> list[Manifest]:  # noqa: ARG001
    """Only as many as one reads at once are kept."""
    return manifests[:6]


@contextmanager
def _removed_file_in_no_manifest() -> Iterator[None]:
    """A removed file that is in no manifest is skipped, and there is no check for conflicts by files."""

    def find(self: Any, _files: Any) -> None:
        self._base.reader.load(self._living(DATA))

    with COMMON["conflict-check-forgets-removed-files"](), patch(f"{_WORK}._find", find):
        yield


BUGS["removed-file-that-is-in-no-manifest-is-ignored"] = _removed_file_in_no_manifest


# Numbers.


@_bug(f"{_WORK}.__init__")
def sequence_number_is_not_raised(self: Any, *args: Any) -> None:
    _begin(self, *args)
    self._sequence = max(self._sequence - 1, 1)


@_bug(f"{_ROOM}.log.next_version.metadata_after")
def snapshot_log_is_begun_anew(base: IcebergSnapshot, raw: Any, *args: Any) -> dict[str, Any]:
    return _metadata_after(base, {**raw, "snapshot-log": []}, *args)


# What others did.


@_property_bug(f"{_ROOM}.log.versions.Version.info")
def attempt_recognised_in_a_copied_property(self: Version) -> Info:
    """Clients that know nothing of us copy what we say of our own versions."""
    return commit_info(self.raw)


@_bug(f"{_ROOM}.log.footprint._identities")
def footprint_ignores_new_delete_files(
    snapshot: IcebergSnapshot,  # noqa: ARG001
    entries: Iterable[Entry],
) -> dict[str, Entry]:
    return {entry.path: entry for entry in entries}


@_property_bug(f"{_ROOM}.snapshot.IcebergSnapshot.deletes")
def deletes_of_others_do_not_apply(self: IcebergSnapshot) -> DeleteIndex:
    return DeleteIndex((), self.context.locate, self.layout, self.context.kept)


@contextmanager
def _table_begins_with_0() -> Iterator[None]:
    """Other clients begin with 1: a client that makes a table at the same moment does not collide. A check
    before does not help."""
    files, table = (
        patch(f"{_ROOM}.log.file_log.FIRST", 0),
        patch(f"{_ROOM}.table.IcebergTable.first_version", 0),
    )
    with patch(f"{_ROOM}.log.versions.FIRST", 0), files, table:
        yield


BUGS["table-begins-with-0-where-others-begin-with-1"] = _table_begins_with_0


@_bug(f"{_ROOM}.log.file_log.FileLog.newest")
def hint_taken_for_the_newest_version(self: FileLog) -> Version | None:
    """It may be old."""
    return self._by_hint() or _newest(self)
