"""Names of the columns that a statement adds to a table's own, none of which is a name of the table's.

A format allows any name for a column. So our own are chosen for each statement, different from all that it
uses.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from lakevilla.files.column_mapping import physical_name

METADATA = "_metadata"
"""The column in which Spark's file sources tell about the file of a row."""


@dataclass(frozen=True)
class Names:
    """Our names: all of them have a prefix that no column of the statement has."""

    prefix: str = "lakevilla_"

    @property
    def file(self) -> str:
        """The number of the file that a row comes from."""
        return f"{self.prefix}file"

    @property
    def row(self) -> str:
        """The position of a row in its file."""
        return f"{self.prefix}row"

    @property
    def deleted(self) -> str:
        """The deleted rows of a file, as bits."""
        return f"{self.prefix}deleted"

    @property
    def path(self) -> str:
        """The path of a row's file."""
        return f"{self.prefix}path"

    @property
    def kind(self) -> str:
        """What is done with a row: see the numbers in `tasks`. Rows without the column are new."""
        return f"{self.prefix}kind"

    @property
    def refused(self) -> str:
        """The position of the sentence that says why a row is refused; null for good rows."""
        return f"{self.prefix}refused"

    @property
    def found(self) -> str:
        """True for rows of a MERGE's source."""
        return f"{self.prefix}found"

    @property
    def clause(self) -> str:
        """The number of the clause of a MERGE that applies to a row."""
        return f"{self.prefix}clause"

    @property
    def rank(self) -> str:
        """The position of a row among those that come of one row of the target."""
        return f"{self.prefix}rank"

    def value(self, number: int) -> str:
        """A value on its way into a column."""
        return f"{self.prefix}value_{number}"

    def old(self, number: int) -> str:
        """A value that is in the table."""
        return f"{self.prefix}old_{number}"

    def before(self, number: int) -> str:
        """A value that a changed row had."""
        return f"{self.prefix}before_{number}"

    def bad(self, number: int) -> str:
        """Whether a value does not fit into its column."""
        return f"{self.prefix}bad_{number}"

    def key(self, number: int) -> str:
        """A value by which rows are brought together."""
        return f"{self.prefix}key_{number}"


def beside(*columns: Iterable[str]) -> Names:
    """Names unlike all of these columns, in any case of letters."""
    taken = {name.lower() for names in columns for name in names}
    prefix, number = "lakevilla_", 0
    while any(name.startswith(prefix) for name in taken):
        number += 1
        prefix = f"lakevilla{number}_"
    return Names(prefix)


def names_in(schema: pa.Schema) -> list[str]:
    """The columns' names, as users and as data files have them."""
    return [*schema.names, *(physical_name(field) for field in schema)]


def metadata_beside(columns: Iterable[str]) -> str:
    """How Spark calls its metadata column over a relation with these columns."""
    taken, name = {column.lower() for column in columns}, METADATA
    while name in taken:
        name = f"_{name}"
    return name
