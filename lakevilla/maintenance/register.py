"""Registering every table below a folder."""

from collections.abc import Callable

from lakevilla.environment import Environment
from lakevilla.errors import Conflict, Corrupt, InvalidInput, Unsupported
from lakevilla.maintenance.reports import RegisterReport
from lakevilla.store.metered import Meter
from lakevilla.tables.catalog import Catalog
from lakevilla.tables.discovery import tables_below
from lakevilla.versions.records import Head


def register_all(
    catalog: Catalog,
    environment: Environment,
    url: str,
    prefix: str,
    register: Callable[[str, str], None],
) -> RegisterReport:
    """Register the tables below a URL; `register` gives one table its name."""
    meter, registered, skipped = Meter(), {}, {}
    for name, location in tables_below(catalog, environment, url, meter).items():
        reason = _known_as(catalog, catalog.head(meter, fresh=True), location)
        try:
            if not reason:
                register(prefix + name, location)
                registered[prefix + name] = location
        except (InvalidInput, Unsupported, Corrupt, Conflict) as error:
            reason = str(error)
        if reason:
            skipped[location] = reason
    return RegisterReport(registered, skipped)


def _known_as(catalog: Catalog, head: Head | None, location: str) -> str:
    """Why a table needs no registration; empty if it does."""
    place = catalog.place_of(location)
    if "://" not in place and "/" not in place:
        return f"it is in the lake's root, and has the name {place!r} already"
    real = catalog.real_place(place)
    refs = () if head is None else head.tables.values()
    known = next((ref.name for ref in refs if catalog.real_place(ref.location) == real), None)
    return "" if known is None else f"it is registered already, as {known!r}"
