"""The rows of the measured tables, the same for every system and every run."""

from typing import Any

import numpy as np
import pyarrow as pa

_SEED = 7
_DAY_ZERO = np.datetime64("2020-01-01")
_WORDS = np.array(["amber", "basalt", "cedar", "dune", "ember", "fjord", "grove", "heath"])


def account(key: int) -> dict[str, Any]:
    """One row of a small table."""
    return {"id": key, "owner": f"owner {key:06d}", "city": str(_WORDS[key % 8]), "balance": key * 1.25}


def accounts(keys: range) -> pa.Table:
    """A small table for one-row statements: a key and three columns."""
    return pa.Table.from_pylist([account(key) for key in keys], schema=ACCOUNT_SCHEMA)


ACCOUNT_SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("owner", pa.string()),
        pa.field("city", pa.string()),
        pa.field("balance", pa.float64()),
    ]
)


def orders(count: int) -> pa.Table:
    """A bulk of ten columns of mixed types: keys, few and many distinct strings, money, time, nulls."""
    chance = np.random.default_rng(_SEED)
    keys = np.arange(count, dtype=np.int64)
    days = chance.integers(0, 2000, count)
    seconds = chance.integers(0, 86_400 * 2000, count)
    cents = chance.integers(100, 10_000_000, count)
    absent = chance.random(count) < 0.1
    return pa.table(
        {
            "id": keys,
            "customer": chance.integers(0, max(count // 10, 1), count),
            "quantity": chance.integers(1, 100, count, dtype=np.int32),
            "price": cents / 100,
            "total": pa.array(cents.astype(np.int32)).cast(pa.decimal128(18, 2)),
            "city": pa.array(_WORDS[chance.integers(0, 8, count)]),
            "note": pa.array([f"order {key} of {word}" for key, word in enumerate(keys % 9973)], mask=absent),
            "paid": chance.random(count) < 0.5,
            "day": pa.array(_DAY_ZERO + days.astype("timedelta64[D]")),
            "placed": pa.array(
                np.datetime64("2020-01-01", "us") + seconds.astype("timedelta64[s]"),
                pa.timestamp("us", "UTC"),
            ),
        }
    )
