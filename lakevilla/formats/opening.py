"""Which formats there are, by name, and the folder that gives each away."""

from collections.abc import Callable

from lakevilla.environment import Environment
from lakevilla.errors import Unsupported
from lakevilla.formats.delta.paths import LOG
from lakevilla.formats.delta.table import DeltaTable
from lakevilla.formats.port import Table
from lakevilla.store.port import Store

FORMATS = {"delta": LOG}


def open_table(
    format_name: str, store: Store, environment: Environment, opener: Callable[[str], Store]
) -> Table:
    """A table of this format at the root of a store; `opener` gives stores of other locations."""
    if format_name != "delta":
        raise Unsupported(f"tables of format {format_name!r} are not supported; use format='delta'")
    return DeltaTable(store, environment, opener)
