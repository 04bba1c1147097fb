"""The same relation without a local JVM: files by their paths, values joined by path.

For Spark Connect. Spark asks the store about each path again, and filters do not prune files; rows are the
same. Plans with the options of their reads are in the server's event log and on its pages, so secrets do not
travel: for a bucket the server has credentials of its own.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StringType, StructField, StructType

from lakevilla.engines.spark.failures import LOST_FILE
from lakevilla.engines.spark.names import beside
from lakevilla.engines.spark.types import quoted

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
    metadata: str,
) -> Any:
    """A DataFrame over these files, described as for the file index, with their partition values and the
    metadata column of this name. A file whose path comes back otherwise than it was given fails the read."""
    whole = StructType([*data.fields, *partition.fields])
    if not files:
        return session.createDataFrame([], whole).withColumn(metadata, F.struct(F.lit(0).alias("row_index")))
    names = beside(field.name for field in whole.fields)
    paths = [file["path"] for file in files]
    # Brackets and stars in a path are letters here, not patterns.
    read = session.read.schema(data).options(**_open(options), recursiveFileLookup="true")
    frame = read.parquet(*(_literally(path) for path in paths)).select("*", metadata)
    values = [names.value(i) for i in range(len(partition.fields))]
    schema = StructType([StructField(name, StringType()) for name in (names.path, names.found, *values)])
    rows = [(_as_told(file["path"]), "", *file["values"]) for file in files]
    known = session.createDataFrame(rows, schema)
    told = F.regexp_replace(F.col(f"{metadata}.file_path"), "^file:/+", "file:/")
    joined = frame.withColumn(names.path, told).join(F.broadcast(known), names.path, "left")
    lost = F.raise_error(F.concat(F.lit(LOST_FILE), F.col(names.path)))
    certain = joined.where(F.when(F.col(names.found).isNotNull(), F.lit(True)).otherwise(lost))
    typed = [
        _value(F.col(name), field.dataType).alias(field.name)
        for name, field in zip(values, partition.fields, strict=True)
    ]
    columns = [F.col(quoted(field.name)) for field in data.fields]
    return certain.select(*columns, *typed, metadata)


def _value(text: Any, data_type: DataType) -> Any:
    """A partition value from the text that casts to it; bytes from base 64."""
    return F.unbase64(text) if isinstance(data_type, BinaryType) else text.cast(data_type)


def _open(options: Mapping[str, str]) -> dict[str, str]:
    """The options without secrets. If keys are given, so is their provider; it goes with them."""
    hidden = {*_SECRETS, _PROVIDER} if any(name in options for name in _SECRETS) else set()
    return {name: value for name, value in options.items() if name not in hidden}


def _literally(path: str) -> str:
    return "".join("\\" + letter if letter in "{}[]*?\\" else letter for letter in path)


def _as_told(path: str) -> str:
    """The path as `_metadata.file_path` spells it: escaped as Java's URI does."""
    return "".join(_escaped(letter) for letter in path)


def _escaped(letter: str) -> str:
    """As Java's URI: beyond ASCII only spaces and the controls of ISO 8859 are escaped, nothing invisible."""
    other = ord(letter) >= 0xA0 and unicodedata.category(letter)[0] != "Z"
    return letter if other else quote(letter, safe=_SAFE)
