"""Which lake a table belongs to: one record beside its log, created once (docs/protocol.md, section 2).

Two global logs that decide commits on the same table would not know of each other. So the first commit that
a global log decides on a table is preceded by this record, and another lake's is refused.
"""

from dataclasses import dataclass

from lakevilla.errors import Corrupt
from lakevilla.store.records import decode, encode, text


@dataclass(frozen=True, slots=True)
class Owner:
    """The lake by its id, and where it lies, for people."""

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
            raise Corrupt(f"{where} does not tell to which lake the table belongs: {error!r}") from error
