"""What the versions of a table did to its rows, without those that were rolled back."""

from dataclasses import replace

from lakevilla.errors import InvalidInput
from lakevilla.formats.identity import Expired
from lakevilla.formats.port_parts.row_changes import VersionChange
from lakevilla.predicates import ANYTHING
from lakevilla.settle.lost_parts import INVERSE
from lakevilla.tables.pinned import Pinned


def changed_versions(base: Pinned, until: int) -> list[VersionChange]:
    """What each version after the base did, up to this one. InvalidInput if the log does not say it."""
    try:
        found = list(base.table.changes(base.snapshot, until))
    except Expired as error:
        raise InvalidInput(
            f"the log of table {base.ref.name!r} does not say any more what changed after version "
            f"{base.snapshot.version}: {error}. Ask for changes since a later instant, and read the table as "
            "it was there",
            table=base.ref.name,
            version=base.snapshot.version,
        ) from error
    attempts = {change.attempt for change in found if change.attempt is not None}
    undone = {attempt for attempt in attempts if attempt + INVERSE in attempts}
    undone |= {attempt + INVERSE for attempt in undone}
    return [change for change in found if change.attempt not in undone]


def all_rows(pinned: Pinned) -> VersionChange:
    """The version as if all of its rows were new."""
    whole = VersionChange(pinned.snapshot.version, None, None)
    return replace(whole, added=tuple(pinned.snapshot.files(ANYTHING)))
