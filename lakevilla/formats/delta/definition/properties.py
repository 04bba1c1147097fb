"""The table properties that Delta defines: which values they take, and which features they need.

A property under `delta.` that is not here is refused, because a misspelt one would silently do nothing.
Other properties belong to the user.
"""

import re
from collections.abc import Callable, Mapping

from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.formats.delta.definition.schema import schema_fields, type_names
from lakevilla.formats.delta.log.actions import Metadata
from lakevilla.formats.properties import (
    CONSTRAINT,
    MARKERS,
    check_own,
    check_together,
    is_true,
    markers_in_log,
)

MAPPING_MODE = "delta.columnMapping.mode"
MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"
IN_COMMIT = "delta.enableInCommitTimestamps"
IN_COMMIT_VERSION = "delta.inCommitTimestampEnablementVersion"
IN_COMMIT_TIME = "delta.inCommitTimestampEnablementTimestamp"
APPEND_ONLY = "delta.appendOnly"
LOG_RETENTION = "delta.logRetentionDuration"
CHECKPOINT_INTERVAL = "delta.checkpointInterval"
DELETION_VECTORS = "delta.enableDeletionVectors"
CHANGE_FEED = "delta.enableChangeDataFeed"
LOG_CLEANUP = "delta.enableExpiredLogCleanup"

FEED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
"""The columns that Delta's change data feed adds, in lower case."""

_UNITS_MS: Mapping[str, int] = {
    "microsecond": 0,
    "millisecond": 1,
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 7 * 86_400_000,
}


def whole_number(configuration: Mapping[str, str], name: str, otherwise: int) -> int:
    """A property that is a number; another client may have set it to anything."""
    text = configuration.get(name, "").strip()
    return int(text) if re.fullmatch(r"-?\d{1,9}", text) else otherwise


def duration_ms(text: str) -> int:
    """An interval such as `interval 30 days`, in milliseconds."""
    words = text.strip().lower().removeprefix("interval ").split()
    total = 0
    for count, unit in zip(words[::2], words[1::2], strict=False):
        singular = unit.removesuffix("s")
        if not re.fullmatch(r"\d+", count) or singular not in _UNITS_MS:
            raise InvalidInput(f"{text!r} is not an interval; expected one such as 'interval 7 days'")
        total += int(count) * _UNITS_MS[singular]
    if not words or len(words) % 2:
        raise InvalidInput(f"{text!r} is not an interval; expected one such as 'interval 7 days'")
    return total


def column_list(text: str) -> list[tuple[str, ...]]:
    """Columns separated by commas, their parts by dots; backticks quote a part."""
    columns: list[list[str]] = [[""]]
    quoted = False
    for letter in text:
        if letter == "`":
            quoted = not quoted
        elif quoted or letter not in ".,":
            columns[-1][-1] += letter
        elif letter == ".":
            columns[-1].append("")
        else:
            columns.append([""])
    if quoted:
        raise InvalidInput(f"a backtick is not closed in {text!r}")
    return [
        tuple(part.strip() for part in column) for column in columns if any(part.strip() for part in column)
    ]


def check_properties(properties: Mapping[str, str]) -> None:
    """InvalidInput for what a user may not set so, Unsupported for what we do not implement."""
    check_own(properties)
    for name, value in properties.items():
        if not name.lower().startswith("delta."):
            continue
        if name.startswith(CONSTRAINT):
            raise InvalidInput(
                f"cannot set {name!r}: use ALTER TABLE ... ADD CONSTRAINT, which checks existing rows"
            )
        if name in _UNSUPPORTED and value.lower() != "false":
            raise Unsupported(f"cannot set {name!r} to {value!r}: LakeVilla does not write such tables")
        check = _CHECKS.get(name)
        if check is None:
            raise InvalidInput(f"unknown property {name!r} of Delta tables; check its spelling")
        try:
            valid = check(value)
        except ValueError:
            valid = False
        if not valid:
            raise InvalidInput(f"invalid value {value!r} of property {name!r}")


def check_markers(configuration: Mapping[str, str]) -> None:
    """Markers in the log do not go with times that grow from entry to entry: they are filled later."""
    if markers_in_log(configuration) and is_true(configuration, IN_COMMIT):
        raise Unsupported(
            f"{MARKERS} = 'log' cannot be combined with {IN_COMMIT}: an entry that is filled after the next "
            "one was reserved would have the later time; use 'side'"
        )
    check_together(configuration)


def check_feed(metadata: Metadata) -> None:
    """InvalidInput if a table with a change data feed has a column that the feed itself has."""
    if not is_true(metadata.configuration, CHANGE_FEED):
        return
    names = (field.get("name", "") for field in schema_fields(metadata.schema_string))
    taken = sorted(name for name in names if name.lower() in FEED_COLUMNS)
    if taken:
        raise InvalidInput(
            f"the column {taken[0]!r} cannot be in a table with {CHANGE_FEED} = 'true': the change data feed "
            "has a column of this name; rename the column, or turn the feed off",
            column=taken[0],
        )


def needed_features(metadata: Metadata) -> frozenset[str]:
    """The features that a table with this metadata must list."""
    configuration = metadata.configuration
    needed = {feature for name, feature in _FEATURE_OF.items() if is_true(configuration, name)}
    if configuration.get(MAPPING_MODE, "none").lower() != "none":
        needed.add("columnMapping")
    if configuration.get("delta.checkpointPolicy", "classic").lower() == "v2":
        needed.add("v2Checkpoint")
    if any(name.startswith(CONSTRAINT) for name in configuration):
        needed.add("checkConstraints")
    if "timestamp_ntz" in type_names(metadata.schema_string):
        needed.add("timestampNtz")
    return frozenset(needed)


_FEATURE_OF: Mapping[str, str] = {
    APPEND_ONLY: "appendOnly",
    CHANGE_FEED: "changeDataFeed",
    DELETION_VECTORS: "deletionVectors",
    IN_COMMIT: "inCommitTimestamp",
    "delta.enableTypeWidening": "typeWidening",
}

_UNSUPPORTED = frozenset(
    {
        "delta.enableRowTracking",
        "delta.enableIcebergCompatV1",
        "delta.enableIcebergCompatV2",
        "delta.enableIcebergCompatV3",
    }
)


def _boolean(value: str) -> bool:
    return value.lower() in ("true", "false")


def _number_from(least: int) -> Callable[[str], bool]:
    return lambda value: int(value) >= least


def _one_of(*values: str) -> Callable[[str], bool]:
    return lambda value: value.lower() in values


def _interval(value: str) -> bool:
    return duration_ms(value) >= 0


_CHECKS: Mapping[str, Callable[[str], bool]] = {
    APPEND_ONLY: _boolean,
    "delta.autoOptimize.autoCompact": _one_of("true", "false", "auto"),
    "delta.autoOptimize.optimizeWrite": _boolean,
    "delta.checkpoint.writeStatsAsJson": _boolean,
    "delta.checkpoint.writeStatsAsStruct": _boolean,
    CHECKPOINT_INTERVAL: _number_from(1),
    "delta.checkpointPolicy": _one_of("classic", "v2"),
    MAPPING_MODE: _one_of("none", "name", "id"),
    "delta.dataSkippingNumIndexedCols": _number_from(-1),
    "delta.dataSkippingStatsColumns": lambda value: bool(column_list(value)),
    "delta.deletedFileRetentionDuration": _interval,
    CHANGE_FEED: _boolean,
    DELETION_VECTORS: _boolean,
    LOG_CLEANUP: _boolean,
    IN_COMMIT: _boolean,
    "delta.enableTypeWidening": _boolean,
    "delta.isolationLevel": _one_of("serializable", "writeserializable"),
    LOG_RETENTION: _interval,
    "delta.randomPrefixLength": _number_from(1),
    "delta.randomizeFilePrefixes": _boolean,
    "delta.setTransactionRetentionDuration": _interval,
    "delta.targetFileSize": bool,
    "delta.tuneFileSizesForRewrites": _boolean,
    **dict.fromkeys(_UNSUPPORTED, _boolean),
}
