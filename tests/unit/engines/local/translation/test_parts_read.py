"""The translation reads every part of a parsed tree, or refuses it by name."""

import pytest
from sqlglot import exp

from lakevilla.engines.local.translation.queries.queries import Queries
from lakevilla.errors import LakeVillaError
from lakevilla.sql.query_clauses import refuse_unknown_clauses
from tests.conformance.engines.statements.topics import QUERIES
from tests.conformance.engines.tables import TABLES
from tests.support.parts_of_trees import accepted_parts, few_trees, overlooked_parts

SCHEMAS = {name: table.schema for name, table in TABLES.items()}

WITHOUT_MEANING = {
    ("DPipe", "safe"),
    ("DataType", "nested"),
    ("Div", "safe"),
    ("Div", "typed"),
    ("Hint", "expressions"),
    ("Identifier", "quoted"),
    ("Lateral", "view"),
    ("Select", "hint"),
    ("TryCast", "safe"),
    ("Window", "over"),
}
"""Hints, spelling, and what the grammar sets itself."""


def written(tree: exp.Expr) -> str:
    """The text that DuckDB gets."""
    refuse_unknown_clauses(tree)
    return Queries(SCHEMAS, 0).translate(tree).sql


@pytest.fixture(scope="module")
def trees() -> list[exp.Expr]:
    every = [text for texts in QUERIES.values() for text in texts]
    # What is refused shows nothing here.
    return [tree for tree in few_trees(every) if _is_translated(tree)]


def _is_translated(tree: exp.Expr) -> bool:
    try:
        written(tree)
    except LakeVillaError:
        return False
    return True


def test_no_part_of_a_tree_is_overlooked(trees: list[exp.Expr]) -> None:
    assert len(trees) > 20
    assert overlooked_parts(trees, written) - WITHOUT_MEANING == set()


def test_every_other_part_that_the_grammar_knows_is_refused(trees: list[exp.Expr]) -> None:
    assert accepted_parts(trees, written) - WITHOUT_MEANING == set()
