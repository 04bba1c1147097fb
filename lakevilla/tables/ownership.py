"""Before a global log decides a commit on a table, its lake must own the table (docs/protocol.md, 2)."""

from collections.abc import Sequence
from functools import partial

from lakevilla.environment import Environment
from lakevilla.errors import Unsupported
from lakevilla.model import TableRef
from lakevilla.settle.places import Places, claim, owner_of
from lakevilla.store.probe import probe
from lakevilla.versions.commits import Commit
from lakevilla.versions.owner import Owner
from lakevilla.versions.records import Head


class TableOwnership:
    """Ensures for one transaction that its lake owns the tables which it changes.

    HEAD lists the owned tables, so that this is asked once in the life of a table.
    """

    def __init__(self, places: Places, environment: Environment) -> None:
        self._places = places
        self._environment = environment
        self._known: set[str] = set()

    def ensure(self, head: Head, commit: Commit) -> None:
        """Make this lake the owner of those tables that no lake owns yet.

        Raises Unsupported if one belongs to another lake; then nothing was written.
        """
        changed = [write.table for write in commit.writes if not write.creates]
        asked = [ref for ref in changed if ref.location not in head.owned | self._known]
        if not asked:
            return
        owners = self._environment.fan_out([partial(owner_of, self._places.store(ref)) for ref in asked])
        self._refuse_others(head, asked, owners)
        free = [ref for ref, owner in zip(asked, owners, strict=True) if owner is None]
        claimed = self._environment.fan_out([partial(self._claim, head, ref) for ref in free])
        self._refuse_others(head, free, claimed)
        self._known |= {ref.location for ref in asked}

    def _claim(self, head: Head, ref: TableRef) -> Owner:
        store = self._places.store(ref)
        if not ref.is_inside:
            # A store that the lake has not written to before: its conditional writes have to hold too.
            probe(store, self._environment)
        return claim(store, self._environment, head.lake, self._places.url)

    def _refuse_others(self, head: Head, refs: Sequence[TableRef], owners: Sequence[Owner | None]) -> None:
        for ref, owner in zip(refs, owners, strict=True):
            if owner is not None and owner.lake != head.lake:
                raise Unsupported(
                    f"cannot change table {ref.name!r} ({ref.location}) with lakevilla.CT or lakevilla.I: it "
                    f"belongs to the lake at {owner.url} (id {owner.lake}). Run the transaction on that "
                    "lake, or change the table in a separate transaction with lakevilla.R. If that lake was "
                    "deleted for good, delete "
                    "_lakevilla/owner.json in the table's folder",
                    table=ref.name,
                )
