"""Short ways to write many statements."""

from itertools import chain


def values(*lists: str) -> list[str]:
    """One statement without a table for each list of expressions."""
    return [f"SELECT {expressions}" for expressions in lists]


def each(table: str, *lists: str) -> list[str]:
    """One statement over all rows of a table for each list of expressions."""
    key = {"numbers": "i", "words": "n", "orders": "no", "pairs": "a"}.get(table, "id")
    return [f"SELECT {key}, {expressions} FROM {table}" for expressions in lists]


def together(*lists: list[str]) -> list[str]:
    return list(chain.from_iterable(lists))
