"""The page for users says what the list of known refusals says."""

from pathlib import Path

from tests.conformance.engines.known_refusals import page

_SQL = Path(__file__).parents[3] / "docs" / "sql.md"


def test_page_lists_the_known_refusals() -> None:
    assert page() in _SQL.read_text()
