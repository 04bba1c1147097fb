"""The table properties of Iceberg that matter to us, and what of a table we do not write."""

import re
from collections.abc import Mapping

from lakevilla.errors import Unsupported
from lakevilla.formats.iceberg.log.authorship import COMMIT
from lakevilla.formats.iceberg.metadata.document import Raw, current_schema, format_version, properties
from lakevilla.formats.properties import check_together

DELETE_AFTER_COMMIT = "write.metadata.delete-after-commit.enabled"
PREVIOUS_VERSIONS = "write.metadata.previous-versions-max"
_SNAPSHOT_AGE = "history.expire.max-snapshot-age-ms"
_WEEK_MS = 7 * 24 * 3_600_000
_WRITTEN_FORMATS = (1, 2, 3)


def shown(all_properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that users set."""
    return {name: value for name, value in all_properties.items() if name != COMMIT}


def retention_ms(given: Mapping[str, str]) -> int:
    """How long files stay after they were removed."""
    return whole_number(given, _SNAPSHOT_AGE, _WEEK_MS)


def whole_number(given: Mapping[str, str], name: str, otherwise: int) -> int:
    """A property that is a number; another client may have set it to anything."""
    text = given.get(name, "").strip()
    return int(text) if re.fullmatch(r"\d{1,15}", text) else otherwise


NO_MARKERS = (
    "an Iceberg table in a catalog cannot have its markers in the log: only the catalog creates its "
    "versions, and no client can reserve one. Use lakevilla.markers = 'side'"
)


def columns_with_defaults(raw: Raw) -> list[str]:
    """The columns, and members of structs, that have a value for rows which leave them out."""
    fields = current_schema(raw)._lazy_id_to_field.values() if format_version(raw) > 2 else ()
    return [field.name for field in fields if field.write_default is not None]


def refuse_write(raw: Raw) -> None:
    """Raise Unsupported, naming the feature, if the table asks of writers what we do not do."""
    version = format_version(raw)
    if version not in _WRITTEN_FORMATS:
        raise Unsupported(
            f"cannot write a table of Iceberg's format {version}: only formats 1 to 3 can be written"
        )
    for column in columns_with_defaults(raw):
        raise Unsupported(
            f"cannot write the table: its column {column!r} has a default for new rows (write-default), "
            "which LakeVilla does not apply. Let another client drop that default, or write with it"
        )
    given = properties(raw)
    check_together(given)
    if given.get(DELETE_AFTER_COMMIT, "").lower() == "true":
        raise Unsupported(
            f"cannot write a table with {DELETE_AFTER_COMMIT} = 'true': clients would delete versions that "
            "LakeVilla needs to recognise its commits. Set it to 'false'"
        )
    if given.get("write.format.default", "parquet").lower() != "parquet":
        raise Unsupported(
            "cannot write a table whose write.format.default is not Parquet: LakeVilla writes Parquet only"
        )
