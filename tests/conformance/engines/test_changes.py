"""Every changing statement leaves the same tables on both engines, and counts the same rows."""

from collections.abc import Callable
from functools import cache

import pytest

import lakevilla as lv
from tests.conformance.engines.both import Outcome, Twins, compared
from tests.conformance.engines.choice import chosen, some
from tests.conformance.engines.comparison import difference
from tests.conformance.engines.statements.changes import CHANGES


@pytest.fixture(scope="module")
def twins_of(quick: object, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Twins]:
    """Lakes that are changed, and put back as they were."""
    return cache(lambda formats: Twins(tmp_path_factory.mktemp("changing"), quick, formats))


@some(10)
@pytest.mark.parametrize(("twins", "text"), chosen(CHANGES, changing=True), indirect=["twins"])
def test_change_leaves_the_same_tables_on_both_engines(twins: Twins, text: str) -> None:
    before = versions(twins.local)
    try:
        differs = compared(text, Outcome.of(twins.local, text), Outcome.of(twins.spark, text))
        assert differs is None, f"{text}\n{differs}"
        changed = [name for name, version in versions(twins.local).items() if before.get(name) != version]
        assert versions(twins.written) == versions(twins.local)
        for name in changed:
            differs = difference(
                twins.local.read(name).toArrow(), twins.written.read(name).toArrow(), ordered=False
            )
            assert differs is None, f"{text}\n{name}: {differs}"
    finally:
        if versions(twins.local) != before or versions(twins.written) != before:
            twins.again()


def versions(lake: lv.Lake) -> dict[str, int]:
    return {name: lake.history(name, 1)[0].version for name in lake.tables()}
