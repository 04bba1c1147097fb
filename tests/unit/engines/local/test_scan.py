"""Which files and columns a query reads."""

import pyarrow as pa
import pytest

from lakevilla.predicates import ANYTHING, Compare, IsNotNull, IsNull, Or, Predicate
from tests.unit.engines.local.tables import Database, Table, schema

ID = ("id",)


def tables() -> tuple[Table, Table]:
    left = Table("l", schema(id=pa.int32(), v=pa.string()))
    right = Table("r", schema(id=pa.int32(), v=pa.string()))
    for number in range(3):
        left.add([{"id": number, "v": "x"}])
        right.add([{"id": number, "v": "y"}])
    return left, right


CASES: list[tuple[str, list[Predicate], list[Predicate]]] = [
    ("SELECT * FROM l WHERE id = 1", [Compare(ID, "=", 1)], []),
    ("SELECT * FROM l WHERE id = 1 AND length(v) = 1", [Compare(ID, "=", 1)], []),
    ("SELECT * FROM l WHERE id = 1 OR length(v) = 1", [ANYTHING], []),
    ("SELECT * FROM l JOIN r ON l.id = r.id WHERE l.id = 1", [Compare(ID, "=", 1)], [ANYTHING]),
    ("SELECT * FROM l JOIN r ON l.id = r.id AND r.id = 2", [ANYTHING], [Compare(ID, "=", 2)]),
    ("SELECT * FROM l LEFT JOIN r ON l.id = r.id AND r.id = 2", [ANYTHING], [Compare(ID, "=", 2)]),
    ("SELECT * FROM l LEFT JOIN r ON l.id = r.id AND l.id = 2", [ANYTHING], [ANYTHING]),
    ("SELECT * FROM l LEFT JOIN r ON l.id = r.id WHERE r.id IS NULL", [ANYTHING], [ANYTHING]),
    ("SELECT * FROM l LEFT JOIN r ON l.id = r.id WHERE l.id = 1", [Compare(ID, "=", 1)], [ANYTHING]),
    ("SELECT * FROM l RIGHT JOIN r ON l.id = r.id WHERE l.id IS NULL", [ANYTHING], [ANYTHING]),
    ("SELECT * FROM l FULL JOIN r ON l.id = 1 WHERE l.id = 1", [ANYTHING], [ANYTHING]),
    ("SELECT * FROM l LEFT ANTI JOIN r ON l.id = r.id AND r.id = 0", [ANYTHING], [Compare(ID, "=", 0)]),
    ("SELECT * FROM l LEFT ANTI JOIN r ON l.id = r.id AND l.id = 0", [ANYTHING], [ANYTHING]),
    ("SELECT * FROM l WHERE id IN (SELECT id FROM r WHERE id = 1)", [IsNotNull(ID)], [Compare(ID, "=", 1)]),
    (
        "SELECT * FROM l x JOIN l y ON x.id = 1 AND y.id = 2",
        [Or((Compare(ID, "=", 1), Compare(ID, "=", 2)))],
        [],
    ),
    ("SELECT v, count(*) FROM l WHERE id IS NULL GROUP BY v", [IsNull(ID)], []),
    ("SELECT count(*) FROM l HAVING count(*) = 1", [ANYTHING], []),
]


@pytest.mark.parametrize(("text", "left", "right"), CASES, ids=[c[0] for c in CASES])
def test_condition_prunes_the_tables_that_it_binds(
    text: str, left: list[Predicate], right: list[Predicate]
) -> None:
    one, other = tables()
    Database(one, other).run(text)
    assert (one.asked, other.asked) == (left, right)


def test_outer_joins_give_all_rows_whatever_is_pruned() -> None:
    one, other = tables()
    db = Database(one, other)
    assert db.rows("SELECT l.id, r.id FROM l LEFT JOIN r ON l.id = r.id AND r.id = 2 ORDER BY 1") == [
        (0, None),
        (1, None),
        (2, 2),
    ]
    assert len(set(other.opened)) == 1


def test_table_read_in_two_places_is_read_once() -> None:
    one, _ = tables()
    Database(one).run("SELECT * FROM l x JOIN l y ON x.id = y.id")
    assert sorted(one.opened) == sorted(one.files)


def test_count_of_a_whole_table_opens_no_file() -> None:
    one, _ = tables()
    result = Database(one).engine.read(one.source)
    assert result.count() == 3
    assert one.opened == []
    assert sorted(row.id for row in result.collect()) == [0, 1, 2]
