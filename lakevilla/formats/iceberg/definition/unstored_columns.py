"""Columns that data files may leave out because their partition value is the column's value.

Spec, "Column Projection": a column that a data file does not hold has the value of an identity partition, if
the file has one. Files that Hive wrote are like that.
"""

from lakevilla.formats.iceberg.definition.layout import Layout
from lakevilla.formats.iceberg.manifests.cache import Manifest
from lakevilla.formats.iceberg.manifests.entries import Entry

# What a writer records about a column that it has written.
_TOLD = ("column_sizes", "value_counts")


def unstored_columns(manifest: Manifest, layout: Layout) -> frozenset[str]:
    """The identity partition columns that some file of this manifest may not hold, as far as it says."""
    if "unstored" not in manifest.notes:
        columns = layout.specs[manifest.record["partition_spec_id"]].identity_columns
        numbers = {name: layout.leaves[name,].field_id for name in columns}
        entries = manifest.entries or ()
        manifest.notes["unstored"] = frozenset(
            name for name, number in numbers.items() if not all(_holds(entry, number) for entry in entries)
        )
    found: frozenset[str] = manifest.notes["unstored"]
    return found


def _holds(entry: Entry, number: int) -> bool:
    return any(entry.of_column(name, number) is not None for name in _TOLD)
