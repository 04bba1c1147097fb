"""Which statements run on tables of which formats.

Every tenth statement (`some`) in `make test`, the others in `make test-long`, on the formats in turns; with
`make conformance` all statements on all formats.
"""

import os
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import pytest

SEEDS = "LAKEVILLA_CONFORMANCE_SEEDS"
FORMATS = ("delta", "iceberg", "mixed")
"""Of all tables, or of every second one."""
VECTORS = "vectors"
"""Delta tables whose changes write deletion vectors: for statements that change rows."""
DELETES = "deletes"
"""Iceberg tables whose changes write delete files, for the same."""
_ALL = SEEDS in os.environ
_TURNS = ("delta", "iceberg", "delta", "mixed")
_CHANGING_TURNS = ("delta", VECTORS, "iceberg", DELETES, "mixed")


def some(step: int) -> pytest.MarkDecorator:
    """Every `step`-th case in `make test`, and all of them with `make conformance`."""
    return pytest.mark.sampled(1 if _ALL else step)


def chosen(statements: Mapping[str, Sequence[str]], changing: bool = False) -> list[Any]:
    """Of statements by topic: the formats of the tables and the text, for tests with `twins` and `text`."""
    formats = (*FORMATS, VECTORS, DELETES) if changing else FORMATS
    turns = _CHANGING_TURNS if changing else _TURNS
    every = [(f"{topic}-{n}", text) for topic, texts in statements.items() for n, text in enumerate(texts)]
    if _ALL:
        return [pytest.param(f, text, id=f"{name}-{f}") for name, text in every for f in formats]
    return [
        pytest.param(f, text, id=f"{name}-{f}") for (name, text), f in zip(every, cycle(turns), strict=False)
    ]


def seeds() -> list[tuple[str, int]]:
    """The formats of the tables and the seed of generated statements."""
    first, _, end = os.environ.get(SEEDS, "0:100").partition(":")
    return [(_TURNS[seed % len(_TURNS)], seed) for seed in range(int(first), int(end))]
