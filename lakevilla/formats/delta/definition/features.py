"""Every feature of the Delta protocol, and what LakeVilla does about it.

`FEATURES` is the whole truth: `refuse_read` and `refuse_write` decide by it, and the documentation prints
it. A feature that is not in the table is refused on the side that lists it. Legacy protocol versions
stand for sets of features (PROTOCOL.md, "Reader / Writer Version Requirements").
"""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lakevilla.errors import Corrupt, Unsupported
from lakevilla.formats.delta.definition.properties import check_feed, check_markers
from lakevilla.formats.delta.definition.schema import MappingMode, schema_fields, type_names
from lakevilla.formats.delta.log.actions import Metadata, Protocol

MAX_READER = 3
MAX_WRITER = 7


class Stance(enum.Enum):
    """What we do about a feature on one side."""

    IMPLEMENTED = "implemented"
    HARMLESS = "nothing to do"
    UNLESS_ACTIVE = "refused if used"
    REFUSED = "refused"


Use = Callable[[Metadata], bool]


@dataclass(frozen=True)
class Feature:
    """One row of the table. `used` says whether the metadata makes the feature active."""

    name: str
    read: Stance
    write: Stance
    used: Use | None = None
    advice: str = "use the engine that manages the table"


def _property(key: str) -> Use:
    return lambda metadata: metadata.configuration.get(key, "").lower() == "true"


def _property_set(key: str) -> Use:
    return lambda metadata: bool(metadata.configuration.get(key))


def _column_has(prefix: str) -> Use:
    def used(metadata: Metadata) -> bool:
        return any(
            key.startswith(prefix)
            for field in schema_fields(metadata.schema_string)
            for key in field.get("metadata") or ()
        )

    return used


def _column_is(*types: str) -> Use:
    return lambda metadata: any(name.startswith(types) for name in type_names(metadata.schema_string))


_I, _H, _A, _R = Stance.IMPLEMENTED, Stance.HARMLESS, Stance.UNLESS_ACTIVE, Stance.REFUSED

FEATURES: Mapping[str, Feature] = {
    feature.name: feature
    for feature in (
        Feature("appendOnly", _H, _I),
        Feature("invariants", _H, _I),
        Feature("checkConstraints", _H, _I),
        Feature("columnMapping", _I, _I),
        Feature("deletionVectors", _I, _I),
        Feature("timestampNtz", _I, _I),
        Feature("typeWidening", _I, _I),
        Feature("typeWidening-preview", _I, _I),
        Feature("v2Checkpoint", _I, _I),
        Feature("domainMetadata", _H, _I),
        Feature("inCommitTimestamp", _I, _I),
        Feature("vacuumProtocolCheck", _H, _I),
        Feature("changeDataFeed", _H, _I),
        Feature("generatedColumns", _H, _A, _column_has("delta.generationExpression"), "write with Spark"),
        Feature("identityColumns", _H, _A, _column_has("delta.identity."), "write with Spark"),
        Feature("allowColumnDefaults", _H, _A, _column_has("CURRENT_DEFAULT"),
                "drop the columns' defaults, or write with Spark"),
        Feature("inCommitTimestamp-preview", _H, _A, _property("delta.enableInCommitTimestamps-preview")),
        Feature("icebergCompatV1", _H, _A, _property("delta.enableIcebergCompatV1")),
        Feature("icebergCompatV2", _H, _A, _property("delta.enableIcebergCompatV2")),
        Feature("icebergCompatV3", _H, _A, _property("delta.enableIcebergCompatV3")),
        Feature("icebergWriterCompatV1", _H, _A, _property("delta.enableIcebergWriterCompatV1")),
        Feature("icebergWriterCompatV3", _H, _A, _property("delta.enableIcebergWriterCompatV3")),
        Feature("collations", _H, _A, _column_has("__COLLATIONS")),
        Feature("collations-preview", _H, _A, _column_has("__COLLATIONS")),
        Feature("variantType", _A, _A, _column_is("variant"), "drop the variant columns"),
        Feature("variantType-preview", _A, _A, _column_is("variant"), "drop the variant columns"),
        Feature("variantShredding", _A, _A, _column_is("variant"), "drop the variant columns"),
        Feature("variantShredding-preview", _A, _A, _column_is("variant"), "drop the variant columns"),
        Feature("geospatial", _A, _A, _column_is("geometry", "geography"), "drop the geospatial columns"),
        Feature("geospatial-dev", _A, _A, _column_is("geometry", "geography"), "drop the geospatial columns"),
        Feature("timestampNanos", _A, _A, _column_is("timestamp_nanos", "timestampNanos")),
        # Row ids must be assigned by every writer as soon as the feature is listed.
        Feature("rowTracking", _H, _R),
        Feature("clustering", _H, _R),
        Feature("materializePartitionColumns", _H, _R),
        Feature("checkpointProtection", _H, _R),
        Feature("columnMappingUsageTracking", _H, _R),
        Feature("redirectWriterOnly-preview", _H, _R),
        Feature("redirectReaderWriter-preview", _R, _R),
        Feature("adaptiveMetadata-preview", _R, _R),
        # The log in the store may lag behind the catalog: what it shows is not the table.
        Feature("catalogManaged", _R, _R, advice="ask the table's catalog"),
        Feature("catalogOwned", _R, _R, advice="ask the table's catalog"),
        Feature("catalogOwned-preview", _R, _R, advice="ask the table's catalog"),
        Feature("coordinatedCommits-preview", _A, _R,
                _property_set("delta.coordinatedCommits.commitCoordinator-preview"),
                "ask the table's commit coordinator"),
        Feature("managedCommits-preview", _A, _R, _property_set("delta.managedCommits.commitOwner-preview"),
                "ask the table's commit coordinator"),
    )
}  # fmt: skip

_LEGACY_READER: Mapping[int, frozenset[str]] = {2: frozenset({"columnMapping"})}
_LEGACY_WRITER: Mapping[int, frozenset[str]] = {
    2: frozenset({"appendOnly", "invariants"}),
    3: frozenset({"checkConstraints"}),
    4: frozenset({"changeDataFeed", "generatedColumns"}),
    5: frozenset({"columnMapping"}),
    6: frozenset({"identityColumns"}),
}


def reader_features(protocol: Protocol) -> frozenset[str]:
    """What a reader must respect, legacy versions spelled out."""
    listed = protocol.reader_features or frozenset()
    if protocol.min_reader >= 3:
        return listed
    legacy = (names for version, names in _LEGACY_READER.items() if version <= protocol.min_reader)
    return listed.union(*legacy)


def writer_features(protocol: Protocol) -> frozenset[str]:
    """What a writer must respect, legacy versions spelled out."""
    listed = protocol.writer_features or frozenset()
    if protocol.min_writer >= 7:
        return listed
    legacy = (names for version, names in _LEGACY_WRITER.items() if version <= protocol.min_writer)
    return listed.union(*legacy)


def refuse_read(protocol: Protocol, metadata: Metadata) -> None:
    """Raise Unsupported, naming the feature, if we would not read the table exactly as it is."""
    if protocol.min_reader > MAX_READER:
        raise Unsupported(
            f"the table needs Delta reader version {protocol.min_reader}; LakeVilla supports up to "
            f"{MAX_READER}"
        )
    if metadata.format_provider != "parquet":
        raise Unsupported(f"the table's data files are {metadata.format_provider}; LakeVilla reads parquet")
    for name in sorted(reader_features(protocol) | writer_features(protocol)):
        feature = FEATURES.get(name)
        if feature is None:
            if name in reader_features(protocol):
                raise Unsupported(f"the table uses the Delta feature {name!r}, which LakeVilla does not know")
        elif _refused(feature, feature.read, metadata):
            raise Unsupported(
                f"the table uses the Delta feature {name!r}, which LakeVilla cannot read; {feature.advice}"
            )


def refuse_write(protocol: Protocol, metadata: Metadata) -> None:
    """Raise Unsupported, naming the feature, if the table asks of writers what we do not do."""
    refuse_read(protocol, metadata)
    check_markers(metadata.configuration)
    check_feed(metadata)
    if protocol.min_writer > MAX_WRITER:
        raise Unsupported(
            f"the table needs Delta writer version {protocol.min_writer}; LakeVilla supports up to "
            f"{MAX_WRITER}"
        )
    for name in sorted(writer_features(protocol) | reader_features(protocol)):
        feature = FEATURES.get(name)
        if feature is None:
            raise Unsupported(f"the table uses the Delta feature {name!r}, which LakeVilla does not know")
        if _refused(feature, feature.write, metadata):
            raise Unsupported(
                f"the table uses the Delta feature {name!r}, which LakeVilla does not write; {feature.advice}"
            )


def mapping_mode(protocol: Protocol, metadata: Metadata) -> MappingMode:
    """The column mapping mode; the property counts only where the protocol supports the feature.

    Delta 3.1 lost the feature from the readers' list when it upgraded tables to reader version 3, and left it
    in the writers' list: its data files have physical names all the same.
    """
    supported = reader_features(protocol)
    if protocol.min_reader >= 3:
        supported |= writer_features(protocol)
    if "columnMapping" not in supported:
        return "none"
    match metadata.configuration.get("delta.columnMapping.mode", "none").lower():
        case "none":
            return "none"
        case "name":
            return "name"
        case "id":
            return "id"
        case other:
            raise Corrupt(f"delta.columnMapping.mode is {other!r}; it must be none, name or id")


def in_commit_timestamps(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether every commit has its own timestamp."""
    return "inCommitTimestamp" in writer_features(protocol) and _property("delta.enableInCommitTimestamps")(
        metadata
    )


def _refused(feature: Feature, stance: Stance, metadata: Metadata) -> bool:
    if stance is Stance.UNLESS_ACTIVE and feature.used is not None:
        return feature.used(metadata)
    return stance is Stance.REFUSED
