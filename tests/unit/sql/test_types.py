"""Spark's types by name and back."""

import pyarrow as pa
import pytest

from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.sql.types import type_name, type_named

NAMES = [
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal(10,0)",
    "decimal(38,18)",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "array<int>",
    "map<string,array<double>>",
    "struct<a:int,b:struct<c:string>>",
]


@pytest.mark.parametrize("name", NAMES)
def test_name_of_a_named_type_is_its_name(name: str) -> None:
    assert type_name(type_named(name)) == name


def test_synonyms_mean_one_type() -> None:
    assert type_named("byte") == pa.int8()
    assert type_named("LONG") == pa.int64()
    assert type_named("decimal") == pa.decimal128(10, 0)
    assert type_named("timestamp_ltz") == pa.timestamp("us", "UTC")


@pytest.mark.parametrize("text", ["nope", "decimal(39,0)", "decimal(5,6)", ""])
def test_text_that_is_no_type_is_invalid(text: str) -> None:
    with pytest.raises(InvalidInput):
        type_named(text)


@pytest.mark.parametrize("text", ["interval", "variant", "array"])
def test_type_that_tables_cannot_hold_is_refused(text: str) -> None:
    with pytest.raises(Unsupported):
        type_named(text)


def test_types_that_only_iceberg_has_are_named() -> None:
    fields = [pa.field("t", pa.time64("us")), pa.field("u", pa.uuid()), pa.field("f", pa.binary(5))]
    assert type_name(pa.struct(fields)) == "struct<t:time,u:uuid,f:fixed(5)>"
