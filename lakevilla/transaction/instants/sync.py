"""Bring HEAD up to date with what was written without the global log."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt, Unsupported
from lakevilla.formats.catalogs import NotConfigured
from lakevilla.settle.entries import settle_up_to
from lakevilla.store.metered import Meter
from lakevilla.tables.catalog import Catalog, CatalogPlaces
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.instants.instant import adopt, is_beyond
from lakevilla.versions import registry
from lakevilla.versions.commits import Adopt, Adopted
from lakevilla.versions.records import Head

logger = logging.getLogger("lakevilla.transaction")


def sync(catalog: Catalog, environment: Environment, name: str | None, accept_torn: bool) -> dict[str, int]:
    """Adopt the newest versions of one table or of all, by one entry; what was adopted, by name.

    An entry that its client left unsettled is settled first. A torn table is left alone, unless `accept_torn`
    says that it is right as it is. Of all tables, those that cannot be read are left alone, and hints that
    are behind the newest version are renewed.
    """
    meter = Meter()
    log = catalog.log(meter)
    while True:
        read = log.read_head() or catalog.first_head(meter)
        read = settle_up_to(log, environment, read.head.seq + 1, CatalogPlaces(catalog, meter)) or read
        names = catalog.names(meter, read.head) if name is None else [name]
        look = _newest if name is not None else _newest_if_readable
        found = environment.fan_out([partial(look, catalog, meter, read.head, each) for each in names])
        newest = [pinned for pinned in found if pinned is not None]
        change = _adopted(read.head, newest, accept_torn)
        if name is not None and not newest:
            raise catalog.missing(name, meter, registry.find(read.head, name))
        if change.tables or change.repaired:
            moved = adopt(catalog, environment, meter, read, change)
            if moved is None:
                continue
            catalog.learn(moved.head)
        if name is None:
            environment.fan_out([partial(one.table.renew_hint, one.snapshot) for one in newest])
        return {adopted.table.name: adopted.version for adopted in change.tables}


def _newest(catalog: Catalog, meter: Meter, head: Head, name: str) -> Pinned | None:
    ref = catalog.resolve(name, meter, head)
    return None if ref is None else catalog.newest(ref, meter)


def _newest_if_readable(catalog: Catalog, meter: Meter, head: Head, name: str) -> Pinned | None:
    try:
        return _newest(catalog, meter, head, name)
    except (Corrupt, Unsupported, NotConfigured) as error:
        logger.warning("sync leaves table %r alone: %s", name, error)
        return None


def _adopted(head: Head, newest: Sequence[Pinned], accept_torn: bool) -> Adopt:
    repaired = frozenset(p.ref.location for p in newest if accept_torn and p.ref.location in head.torn)
    after = replace(head, torn=head.torn - repaired)
    tables = [Adopted(p.ref, p.snapshot.version, p.snapshot.table_id) for p in newest if is_beyond(after, p)]
    return Adopt(tuple(tables), repaired)
