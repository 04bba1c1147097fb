"""A relation over files that we name, read by Spark's own Parquet reader.

`spark.read.parquet(*paths)` asks the store about every path again, and knows nothing of our statistics. A
file index of our own does neither: see `SnapshotIndex.java`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from lakevilla.engines.spark.session.jvm import driver_side

Answer = Callable[[str], str]
"""From filters as JSON to files as JSON, see `SnapshotIndex.java`."""


def relation(
    session: Any,
    answer: Answer,
    partition: StructType,
    data: StructType,
    options: Mapping[str, str],
    size_bytes: int,
    living: tuple[str | None, str],
    columns: Sequence[str],
    mark: str | None = None,
) -> Any:
    """A lazy DataFrame over the files that `answer` gives for the filters of whatever is done with it: their
    living rows, and of these the columns, which are expressions. `living` names the column of deleted rows
    (see `deleted_bits.words`), if there is one, and that of a row's position. The mark finds the relation in
    the plan of whatever is done with it."""
    deleted, row = living
    asked = {
        "partition": partition.json(),
        "data": data.json(),
        "options": dict(options),
        "bytes": size_bytes,
        "deleted": deleted,
        "row": row,
        "columns": list(columns),
        "mark": mark,
    }
    made = driver_side(session).frame(session._jsparkSession, _Lister(answer), json.dumps(asked))
    return DataFrame(made, session)


class _Lister:
    """What the JVM calls back; it may do so from any thread of its own."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def apply(self, filters: str) -> str:
        return self._answer(filters)

    class Java:
        implements = ("java.util.function.Function",)
