"""Which table properties a user may set on an Iceberg table, and to what."""

from collections.abc import Mapping

from lakevilla.errors import Corrupt, InvalidInput
from lakevilla.formats.iceberg.definition.name_mapping import name_mapping
from lakevilla.formats.iceberg.log.authorship import COMMIT
from lakevilla.formats.properties import CONSTRAINT, check_own

FORMAT_VERSION = "format-version"
"""Not a property of the table: a statement that sets it asks for that version of the format."""

# Iceberg shows these as properties, and keeps them elsewhere.
_RESERVED = frozenset(
    {
        "uuid",
        "snapshot-count",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
_MODES = frozenset({"write.update.mode", "write.delete.mode", "write.merge.mode"})
_WAYS = ("copy-on-write", "merge-on-read")
_METADATA_PATH = "write.metadata.path"
_METADATA_CODEC = "write.metadata.compression-codec"


def check_properties(properties: Mapping[str, str]) -> None:
    """InvalidInput for what a user may not set so. What Iceberg does not know belongs to the user."""
    for name, value in properties.items():
        if name.startswith(CONSTRAINT):
            raise no_constraints(name.removeprefix(CONSTRAINT))
        if name.lower().startswith("delta."):
            raise InvalidInput(
                f"cannot set {name!r}: it is a property of Delta tables and has no effect on Iceberg tables"
            )
        if name in _RESERVED or name.lower() in (COMMIT, FORMAT_VERSION):
            raise InvalidInput(f"cannot set {name!r}: it is part of the table's metadata")
        if name == _METADATA_PATH:
            raise InvalidInput(
                f"cannot set {name!r}: the metadata of a table without a catalog must be below its root"
            )
        if name in _MODES and properties[name].lower() not in _WAYS:
            raise InvalidInput(
                f"invalid value {properties[name]!r} of {name!r}; available: 'copy-on-write', 'merge-on-read'"
            )
        if name == _METADATA_CODEC and value.lower() != "none":
            # Another client would follow it, and we would make the same version under the name as before.
            raise InvalidInput(
                f"cannot set {name!r} to {value!r}: the codec is part of the names of metadata files, and "
                "LakeVilla keeps the one that the table has. Leave it out"
            )
    check_own(properties)
    try:
        name_mapping(properties)
    except Corrupt as error:
        raise InvalidInput(str(error)) from error


def no_constraints(name: str) -> InvalidInput:
    """Iceberg has no place for CHECK constraints, and its other writers would not keep them."""
    return InvalidInput(
        f"cannot add constraint {name!r}: Iceberg tables have no CHECK constraints; leave it out, or use a "
        "Delta table",
        rule=name,
    )
