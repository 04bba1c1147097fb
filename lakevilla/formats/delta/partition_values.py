"""Partition values: strings in the log, typed values for everybody else.

PROTOCOL.md, "Partition Value Serialization". A timestamp without zone is taken as UTC: the zone of the
machine that wrote it is not recorded. Values are parsed in bulk; spellings that Arrow does not know are
parsed one by one, once for each distinct value.
"""

import datetime
import re
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.errors import Corrupt

_FRACTION = re.compile(r"(\.\d{6})\d+")


def parse_values(texts: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Typed values from their strings. An empty string is null, whatever the type."""
    texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    try:
        if pa.types.is_timestamp(data_type):
            naive = pc.cast(pc.replace_substring_regex(texts, r"Z$", ""), pa.timestamp("us"))
            return naive if data_type.tz is None else pc.assume_timezone(naive, "UTC")
        return pc.cast(texts, data_type)
    except pa.ArrowException:
        return _parse_distinct(texts, data_type)


def _parse_distinct(texts: pa.Array, data_type: pa.DataType) -> pa.Array:
    encoded = texts.dictionary_encode()
    try:
        values = [_parse_one(text, data_type) for text in encoded.dictionary.to_pylist()]
        return pa.array(values, data_type).take(encoded.indices)
    except (ValueError, KeyError, InvalidOperation, pa.ArrowException) as error:
        raise Corrupt(f"a partition value is not of the type {data_type}: {error}") from error


def _parse_one(text: str, data_type: pa.DataType) -> Any:
    if pa.types.is_timestamp(data_type):
        moment = datetime.datetime.fromisoformat(_FRACTION.sub(r"\1", text.strip()))
        if moment.tzinfo is not None:
            moment = moment.astimezone(datetime.UTC)
        return moment.replace(tzinfo=None if data_type.tz is None else datetime.UTC)
    if pa.types.is_date(data_type):
        return datetime.date.fromisoformat(text.strip()[:10])
    if pa.types.is_boolean(data_type):
        return {"true": True, "false": False}[text.strip().lower()]
    if pa.types.is_decimal(data_type):
        return Decimal(text.strip()).quantize(Decimal(1).scaleb(-data_type.scale))
    if pa.types.is_floating(data_type):
        return float(text)
    if pa.types.is_integer(data_type):
        return int(text)
    raise ValueError(f"{text!r} cannot be a partition value of the type {data_type}")
