"""The same relation without a JVM beside us: files by their paths, values joined by path.

For Spark Connect. Spark asks the store about each path again, and filters do not prune files; rows are the
same. Plans with the options of their reads are in the server's event log and on its pages, so secrets do not
travel: for a bucket the server has credentials of its own.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

_PATH = "lakevilla_path"
_SECRETS = ("fs.s3a.access.key", "fs.s3a.secret.key", "fs.s3a.session.token")
_PROVIDER = "fs.s3a.aws.credentials.provider"
# What Java's URI leaves as it is in a path.
_SAFE = "/_-!.~'()*,;:$&+=@"


def relation(
    session: Any,
    files: Sequence[Mapping[str, Any]],
    partition: StructType,
    data: StructType,
    options: Mapping[str, str],
) -> Any:
    """A DataFrame over these files, described as for the file index, with their partition values."""
    whole = StructType([*data.fields, *partition.fields])
    if not files:
        return session.createDataFrame([], whole).withColumn(
            "_metadata", F.struct(F.lit(0).alias("row_index"))
        )
    paths = [file["path"] for file in files]
    # Brackets and stars in a path are letters here, not patterns.
    read = session.read.schema(data).options(**_open(options), recursiveFileLookup="true")
    frame = read.parquet(*(_literally(path) for path in paths)).select("*", "_metadata")
    names = [f"lakevilla_value_{i}" for i in range(len(partition.fields))]
    schema = StructType([StructField(name, StringType()) for name in (_PATH, *names)])
    rows = [(_as_told(file["path"]), *file["values"]) for file in files]
    known = session.createDataFrame(rows, schema)
    told = F.regexp_replace(F.col("_metadata.file_path"), "^file:/+", "file:/")
    joined = frame.withColumn(_PATH, told).join(F.broadcast(known), _PATH)
    values = [
        (
            F.unbase64(name) if isinstance(field.dataType, BinaryType) else F.col(name).cast(field.dataType)
        ).alias(field.name)
        for name, field in zip(names, partition.fields, strict=True)
    ]
    columns = [F.col("`" + field.name.replace("`", "``") + "`") for field in data.fields]
    return joined.select(*columns, *values, "_metadata")


def _open(options: Mapping[str, str]) -> dict[str, str]:
    """The options that anybody may see. Whoever gives keys names their provider too; it goes with them."""
    hidden = {*_SECRETS, _PROVIDER} if any(name in options for name in _SECRETS) else set()
    return {name: value for name, value in options.items() if name not in hidden}


def _literally(path: str) -> str:
    return "".join("\\" + letter if letter in "{}[]*?\\" else letter for letter in path)


def _as_told(path: str) -> str:
    """The path as `_metadata.file_path` spells it: escaped as Java's URI does."""
    return "".join(_escaped(letter) for letter in path)


def _escaped(letter: str) -> str:
    other = ord(letter) > 127 and unicodedata.category(letter)[0] not in ("C", "Z")
    return letter if other else quote(letter, safe=_SAFE)
