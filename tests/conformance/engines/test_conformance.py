"""Every statement gives the same on both engines, row by row and type by type, or is a known refusal."""

import pytest

from tests.conformance.engines.both import Outcome, Twins, compared
from tests.conformance.engines.choice import chosen, some
from tests.conformance.engines.known_refusals import STATEMENTS as REFUSED
from tests.conformance.engines.statements.topics import NAMES, QUERIES


@some(10)
@pytest.mark.parametrize(("twins", "text"), chosen(QUERIES), indirect=["twins"])
def test_query_gives_the_same_on_both_engines(twins: Twins, text: str) -> None:
    differs = compared(text, Outcome.of(twins.local, text), Outcome.of(twins.spark, text))
    assert differs is None, f"{text}\n{differs}"


def test_known_refusals_are_refused_still(twins: Twins) -> None:
    outcomes = {text: Outcome.of(twins.local, text) for text in REFUSED}
    assert {text: outcome for text, outcome in outcomes.items() if outcome.kind != "refused"} == {}


def test_columns_without_alias_get_the_names_that_spark_gives(twins: Twins) -> None:
    for table, expressions in NAMES.items():
        text = f"SELECT {', '.join(expressions)} FROM {table} AS t"
        assert twins.local.sql(text).columns == twins.spark.sql(text).columns


def test_suite_has_its_statements() -> None:
    texts = [text for all_ in QUERIES.values() for text in all_]
    assert len(set(texts)) == len(texts)
    assert len(chosen(QUERIES)) >= 300
