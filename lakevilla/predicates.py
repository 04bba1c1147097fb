"""Predicates that can be asked of a file without reading it; `pruning` asks them.

A predicate here is a promise in one direction: if `may_match` says no for a file, no row of the file
makes the predicate true. So whatever a statement filters by may be weakened to a predicate of this
module (an expression that we cannot read becomes `ANYTHING`), never strengthened.

Comparisons follow Spark SQL: a comparison with NULL is never true, NaN is greater than every other
number and equal to itself. Columns are paths of logical names, `("address", "city")`.
"""

from dataclasses import dataclass
from typing import Any, Literal

Operator = Literal["=", "<", "<=", ">", ">="]
Column = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Anything:
    """True for every row, as far as we can tell."""


@dataclass(frozen=True, slots=True)
class Compare:
    """`column operator value`; the value is a plain Python value and not None."""

    column: Column
    operator: Operator
    value: Any


@dataclass(frozen=True, slots=True)
class IsNull:
    column: Column


@dataclass(frozen=True, slots=True)
class IsNotNull:
    column: Column


@dataclass(frozen=True, slots=True)
class And:
    parts: "tuple[Predicate, ...]"


@dataclass(frozen=True, slots=True)
class Or:
    """True if one part is; without parts it is never true."""

    parts: "tuple[Predicate, ...]"


Predicate = Anything | Compare | IsNull | IsNotNull | And | Or

ANYTHING = Anything()
NOTHING = Or(())


def conjunction(parts: "list[Predicate]") -> Predicate:
    """All parts together, flattened; ANYTHING when nothing restricts."""
    flat: list[Predicate] = []
    for part in parts:
        if isinstance(part, And):
            flat.extend(part.parts)
        elif not isinstance(part, Anything):
            flat.append(part)
    if not flat:
        return ANYTHING
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def disjunction(parts: "list[Predicate]") -> Predicate:
    """Any of the parts; ANYTHING as soon as one part is."""
    if any(isinstance(part, Anything) for part in parts):
        return ANYTHING
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def columns_of(predicate: Predicate) -> set[Column]:
    """All columns that a predicate names."""
    match predicate:
        case And(parts) | Or(parts):
            return set().union(*(columns_of(part) for part in parts))
        case Compare(column, _, _) | IsNull(column) | IsNotNull(column):
            return {column}
    return set()
