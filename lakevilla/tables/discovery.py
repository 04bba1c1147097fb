"""Tables below a folder: of a warehouse, or of a lake that another system made.

A folder in which a table lies is not looked into. Others are, a few levels deep, as warehouses have them:
`warehouse/orders`, `warehouse/sales/orders`, `warehouse/sales.db/orders`.
"""

from collections.abc import Iterable
from functools import partial
from urllib.parse import quote

from lakevilla.environment import Environment
from lakevilla.errors import InvalidInput
from lakevilla.store.metered import Meter
from lakevilla.tables.catalog import Catalog

LEVELS = 3
"""How deep tables may be below the folder."""

_DATABASE = ".db"
"""What Hive puts at the end of the folder of a database."""


def tables_below(catalog: Catalog, environment: Environment, url: str, meter: Meter) -> dict[str, str]:
    """The locations of the tables below a URL, by names made of their folders: `sales.orders`.

    InvalidInput if there is none. One LIST for each folder, and two for each that may hold a table.
    """
    store = catalog.store_of(url, meter)
    if next(iter(store.list("")), None) is None:
        raise InvalidInput(f"there is nothing at {url!r}: give a folder that holds Delta or Iceberg tables")
    found: dict[str, str] = {}
    folders = _children(store.list_folders(""), "")
    for _ in range(LEVELS):
        places = [f"{url.rstrip('/')}/{_path(url, folder)}" for folder in folders]
        formats = environment.fan_out([partial(catalog.format_at, place, meter) for place in places])
        asked = list(zip(folders, places, formats, strict=True))
        found |= {_name(folder): place for folder, place, format_name in asked if format_name is not None}
        deeper = [folder for folder, _, format_name in asked if format_name is None]
        listed = environment.fan_out([partial(store.list_folders, f"{folder}/") for folder in deeper])
        folders = [
            child for folder, names in zip(deeper, listed, strict=True) for child in _children(names, folder)
        ]
    if not found and catalog.format_at(url, meter) is not None:
        raise InvalidInput(f"{url!r} is a table: give it a name with lake.register(name, location)")
    if not found:
        raise InvalidInput(
            f"no Delta or Iceberg table found in {LEVELS} levels of folders below {url!r}: give a folder "
            "that holds some"
        )
    return found


def _path(url: str, folder: str) -> str:
    """A folder as part of a URL: the path of a `file:` URL is encoded, others are keys as they are."""
    return quote(folder) if url.startswith("file:") else folder


def _children(names: Iterable[str], parent: str) -> list[str]:
    """The folders that may hold tables. What begins with '_' or '.' is hidden, and `x=1` is a partition."""
    visible = [name for name in names if name[0] not in "._" and "=" not in name]
    return [f"{parent}/{name}" if parent else name for name in visible]


def _name(folder: str) -> str:
    *databases, table = folder.split("/")
    return ".".join([*(name.removesuffix(_DATABASE) for name in databases), table])
