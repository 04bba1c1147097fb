"""Tables and views that a transaction has made or dropped, as its next statement sees them.

It holds what the operations so far have done to names; an undo or redo of operations starts it anew and
lets them do it again, in order.
"""

from collections.abc import Mapping

from lakevilla.tables.pinned import Pinned
from lakevilla.versions.views import ViewChange


class OwnTables:
    """Names in any case. A table that was made and dropped again is neither made nor dropped."""

    def __init__(self) -> None:
        self._names: dict[str, Pinned | None] = {}
        self._dropped: dict[str, Pinned] = {}
        self._used: set[str] = set()
        self._ever_made: set[str] = set()
        self._views: dict[str, ViewChange] = {}

    def make(self, pinned: Pinned) -> None:
        """The name means this new table."""
        self._names[pinned.ref.name.casefold()] = pinned
        self._used.add(pinned.ref.location)
        self._ever_made.add(pinned.ref.location)

    def drop(self, pinned: Pinned) -> None:
        """The name means nothing any more."""
        name = pinned.ref.name.casefold()
        if self._names.get(name) is None:
            self._dropped[pinned.ref.location] = pinned
        self._names[name] = None

    def change_view(self, change: ViewChange) -> None:
        """The name means this view, or no view any more."""
        self._views[change.name.casefold()] = change

    @property
    def views(self) -> Mapping[str, ViewChange]:
        """The last change of each view, by its name in lower case."""
        return self._views

    def restart(self) -> None:
        """As if the transaction had done nothing yet."""
        self._names.clear()
        self._views.clear()
        self._dropped.clear()
        self._used.clear()

    def concerns(self, name: str) -> bool:
        """Whether the transaction has made or dropped a table of this name."""
        return name.casefold() in self._names

    def find(self, name: str) -> Pinned | None:
        """The table of this name that the transaction made."""
        return self._names.get(name.casefold())

    @property
    def made(self) -> dict[str, Pinned]:
        """The tables that the transaction makes, by location."""
        return {pinned.ref.location: pinned for pinned in self._names.values() if pinned is not None}

    @property
    def dropped(self) -> Mapping[str, Pinned]:
        """The lake's tables that the transaction drops, by location, as they were seen."""
        return self._dropped

    def was_made(self, location: str) -> bool:
        """Whether the transaction made a table there at any time, also if that was undone."""
        return location in self._ever_made

    def unmake(self, location: str) -> None:
        """What we made there was undone, and now another client's table is there."""
        self._ever_made.discard(location)

    def uses(self, location: str) -> bool:
        """Whether an operation that was not undone has made a table there."""
        return location in self._used

    def names(self, lake: list[str]) -> list[str]:
        """The names of all tables, from those that the lake has."""
        own = [pinned.ref.name for pinned in self._names.values() if pinned is not None]
        return sorted([name for name in lake if not self.concerns(name)] + own)
