"""What a CREATE TABLE says of the table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lakevilla.model import PartitionField
from lakevilla.sql.letters import refuse_surrogates_in


@dataclass(frozen=True)
class Definition:
    """A table as a statement defines it. Without `format` it is of the format that the lake gives new tables;
    without `location` it lies in the lake's folder."""

    name: str
    schema: pa.Schema
    format: str | None = None
    partition_by: Sequence[PartitionField] = ()
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None

    def refuse_surrogates(self) -> None:
        """Texts that cannot be stored are refused."""
        refuse_surrogates_in([*self.properties, *self.properties.values(), self.comment], "a property")
