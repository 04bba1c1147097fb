"""The log of an Iceberg table that a catalog keeps, as a place for markers, which it is not: the catalog
decides what becomes of a version, and no client holds one there."""

from collections.abc import Mapping
from typing import Any

from lakevilla.errors import Unsupported
from lakevilla.formats.iceberg.definition.properties import NO_MARKERS
from lakevilla.formats.iceberg.metadata.paths import metadata_key


class NoMarkers:
    """Finds no markers, and makes none."""

    def key(self, version: int) -> str:
        return metadata_key(version)

    def encode(self, version: int, record: Mapping[str, Any]) -> bytes:  # noqa: ARG002
        raise Unsupported(NO_MARKERS)

    def decode(self, version: int, data: bytes) -> Mapping[str, Any] | None:  # noqa: ARG002
        return None

    def taken(self, after: int) -> Mapping[int, int]:  # noqa: ARG002
        return {}

    def freed(self, version: int) -> None:
        """There is none."""
