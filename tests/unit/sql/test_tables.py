"""Names of tables in statements."""

import pytest

from lakevilla.sql.parser import parse
from lakevilla.sql.statements import Query
from lakevilla.sql.tables import sql_name


@pytest.mark.parametrize("name", ["t", "db.t", "a b", "x`y", "1a", "a-b", "ü"])
def test_name_in_a_hint_is_read_as_that_table(name: str) -> None:
    query = parse(f"SELECT * FROM {sql_name(name)}")
    assert isinstance(query, Query)
    assert [table.name for table in query.tables] == [name]
