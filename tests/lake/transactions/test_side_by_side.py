"""A statement pins the tables that it names side by side."""

import time
from itertools import count
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.transaction.statements.own_tables import OwnTables

TABLES = [f"t{number}" for number in range(8)]


def test_query_pins_many_tables_while_others_of_them_are_being_pinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lv.Lake(tmp_path, engine="local")
    for name in TABLES:
        lake.create(name, "id BIGINT")
        lake.append(name, [{"id": 1}])
    was_made, calls = OwnTables.was_made, count()

    def slowly(own: OwnTables, location: str) -> bool:
        """The second query takes longer to ask for the first table; meanwhile the first query pins its own
        table."""
        if location.endswith(TABLES[0]):
            time.sleep(0.005 * next(calls))
        return was_made(own, location)

    monkeypatch.setattr(OwnTables, "was_made", slowly)
    query = " UNION ALL ".join(f"SELECT count(*) AS n FROM {name}" for name in TABLES)
    with lake.transaction() as tx:
        tx.read(TABLES[0]).collect()
        assert [row.n for row in tx.sql(query).collect()] == [1] * len(TABLES)
