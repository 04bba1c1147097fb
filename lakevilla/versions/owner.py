"""Which lake owns a table: one record in the table's folder, created once (docs/protocol.md, section 2).

Two global logs that decide commits on the same table would not know of each other. So the first commit that
a global log decides on a table is preceded by this record, and another lake's is refused.
"""

from dataclasses import dataclass

from lakevilla.errors import Corrupt
from lakevilla.store.records import decode, encode, text


@dataclass(frozen=True, slots=True)
class Owner:
    """The lake by its id, and its location, for people."""

    lake: str
    url: str
    put: str

    def encode(self) -> bytes:
        return encode({"lake": self.lake, "url": self.url, "put": self.put})

    @staticmethod
    def decode(data: bytes, where: str) -> "Owner":
        record = decode(data, where)
        try:
            return Owner(text(record["lake"]), text(record["url"]), text(record["put"]))
        except (KeyError, TypeError) as error:
            raise Corrupt(f"{where} is not a valid owner record: {error!r}") from error
