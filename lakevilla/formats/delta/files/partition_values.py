"""Partition values: strings in the log, typed values elsewhere.

PROTOCOL.md, "Partition Value Serialization". A timestamp without zone is taken as UTC: the zone of the
machine that wrote it is not recorded. Values are parsed in bulk; spellings that Arrow does not know are
parsed one by one, once for each distinct value.
"""

import datetime
import re
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.errors import Corrupt
from lakevilla.files.transforms import MOST_YEARS

_FRACTION = re.compile(r"(\.\d{6})\d+")
_FAR = re.compile(r"([+-]\d{4,7}|0000|\d{5,7})-\d{2}-\d{2}([ T]\d{2}:\d{2}:\d{2}(\.\d{1,9})?)?")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


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


def _moment(text: str) -> int:
    """Microseconds since 1970, in UTC."""
    far = _far(text.removesuffix("Z"), "us")
    if far is not None:
        return far
    moment = datetime.datetime.fromisoformat(_FRACTION.sub(r"\1", text))
    zoned = moment.replace(tzinfo=datetime.UTC) if moment.tzinfo is None else moment
    return (zoned - _EPOCH) // datetime.timedelta(microseconds=1)


def _far(text: str, unit: str) -> int | None:
    """Days or microseconds since 1970 of a year that Python's calendar does not have; None for others."""
    found = _FAR.fullmatch(text)
    if found is None:
        return None
    if unit != "D" and abs(int(found[1])) > MOST_YEARS:
        raise ValueError(f"{text!r} has no place in 64 bits of microseconds")
    return int(np.array([found[0].replace(" ", "T")], f"datetime64[{unit}]").astype(np.int64)[0])


def _parse_one(text: str, data_type: pa.DataType) -> Any:
    if pa.types.is_timestamp(data_type):
        return _moment(text.strip())
    if pa.types.is_date(data_type):
        return _far(text.strip(), "D") or datetime.date.fromisoformat(text.strip()[:10])
    if pa.types.is_boolean(data_type):
        return {"true": True, "false": False}[text.strip().lower()]
    if pa.types.is_decimal(data_type):
        return Decimal(text.strip()).quantize(Decimal(1).scaleb(-data_type.scale))
    if pa.types.is_floating(data_type):
        return float(text)
    if pa.types.is_integer(data_type):
        return int(text)
    raise ValueError(f"{text!r} cannot be a partition value of the type {data_type}")
