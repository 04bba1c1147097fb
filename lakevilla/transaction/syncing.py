"""Bring HEAD up to date with what was written without the global log."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from lakevilla.environment import Environment
from lakevilla.errors import InvalidInput
from lakevilla.settle.entries import settle_up_to
from lakevilla.store.metered import Meter
from lakevilla.transaction.catalog import Catalog, CatalogPlaces, Pinned
from lakevilla.transaction.cut import adopt, is_beyond
from lakevilla.versions.commits import Adopt, Adopted
from lakevilla.versions.records import Head


def sync(catalog: Catalog, environment: Environment, name: str | None, accept_torn: bool) -> dict[str, int]:
    """Adopt the newest versions of one table or of all, by one entry; what was adopted, by name.

    An entry that somebody left unsettled is settled first. A torn table is left alone, unless `accept_torn`
    says that it is right as it is.
    """
    meter = Meter()
    log = catalog.log(meter)
    while True:
        read = log.read_head() or catalog.first_head(meter)
        read = settle_up_to(log, environment, read.head.seq + 1, CatalogPlaces(catalog, meter)) or read
        names = catalog.names(meter, read.head) if name is None else [name]
        found = environment.fan_out([partial(_newest, catalog, meter, read.head, each) for each in names])
        change = _adopted(read.head, [pinned for pinned in found if pinned is not None], accept_torn)
        if name is not None and found == [None]:
            raise InvalidInput(catalog.missing(name, meter))
        if not change.tables and not change.mended:
            return {}
        moved = adopt(catalog, environment, meter, read, change)
        if moved is not None:
            catalog.learn(moved.head)
            return {adopted.table.name: adopted.version for adopted in change.tables}


def _newest(catalog: Catalog, meter: Meter, head: Head, name: str) -> Pinned | None:
    ref = catalog.resolve(name, meter, head)
    return None if ref is None else catalog.newest(ref, meter)


def _adopted(head: Head, newest: Sequence[Pinned], accept_torn: bool) -> Adopt:
    mended = frozenset(p.ref.location for p in newest if accept_torn and p.ref.location in head.torn)
    after = replace(head, torn=head.torn - mended)
    tables = [Adopted(p.ref, p.snapshot.version) for p in newest if is_beyond(after, p)]
    return Adopt(tuple(tables), mended)
