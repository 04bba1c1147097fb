"""Which statements run: every second one, or all of them with `make conformance`."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

SEEDS = "LAKEVILLA_CONFORMANCE_SEEDS"
_STEP = 1 if SEEDS in os.environ else 2


def chosen(statements: Mapping[str, Sequence[str]]) -> list[Any]:
    """Of statements by topic, parameters for tests, named after topic and number."""
    return [
        pytest.param(text, id=f"{topic}-{number}")
        for topic, texts in statements.items()
        for number, text in enumerate(texts)
        if number % _STEP == 0
    ]
