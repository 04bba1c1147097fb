"""Delta's protocol, metadata and commit actions as values (PROTOCOL.md of Delta Lake, "Actions").

Files are not here: a snapshot keeps them in columns (see `replay`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Protocol:
    """Which readers and writers a table admits. Feature sets are None below versions 3 and 7."""

    min_reader: int
    min_writer: int
    reader_features: frozenset[str] | None = None
    writer_features: frozenset[str] | None = None


@dataclass(frozen=True)
class Metadata:
    """A table's metadata, with its schema still in Delta's JSON form."""

    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    created_ms: int | None = None
    format_provider: str = "parquet"
    format_options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Commit:
    """One parsed log entry. Files stay raw (Delta's own JSON objects): a commit has few of them."""

    version: int
    adds: tuple[Mapping[str, Any], ...] = ()
    removes: tuple[Mapping[str, Any], ...] = ()
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    info: Mapping[str, Any] | None = None
    txns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    domains: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    changes: tuple[Mapping[str, Any], ...] = ()
    """The `cdc` actions: files with the rows that changed."""
