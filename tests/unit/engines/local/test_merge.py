"""MERGE: every kind of clause, the order of clauses, and what is refused."""

from typing import Any

import pyarrow as pa
import pytest

from lakevilla.errors import InvalidInput
from lakevilla.model import Counts
from lakevilla.sql.parser import parse_expression
from lakevilla.sql.statements import MatchedClause, MergeClauses, NotMatchedClause
from tests.unit.engines.local.tables import NOW_MS, Database, Table, schema


def stock() -> Table:
    table = Table("stock", schema(id=pa.int64(), n=pa.int32(), note=pa.string()))
    table.add([{"id": 1, "n": 10, "note": "a"}, {"id": 2, "n": 20, "note": "b"}])
    return table.add([{"id": 3, "n": 30, "note": "c"}, {"id": 100, "n": 1, "note": "z"}])


def orders(*rows: tuple[Any, ...]) -> Table:
    table = Table("orders", schema(id=pa.int64(), n=pa.int32(), note=pa.string()))
    return table.add([dict(zip(("id", "n", "note"), row, strict=True)) for row in rows])


def merged(*rows: tuple[Any, ...], clauses: str) -> tuple[list[tuple[Any, ...]], Any]:
    db = Database(stock(), orders(*rows))
    done = db.run(f"MERGE INTO stock t USING orders s ON t.id = s.id {clauses}")
    return db.rows("SELECT id, n, note FROM stock ORDER BY id"), done


REST = [(3, 30, "c"), (100, 1, "z")]


def test_upsert_updates_matches_and_inserts_the_others() -> None:
    rows, done = merged(
        (2, 5, "x"), (9, 1, "y"), clauses="WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert rows == [(1, 10, "a"), (2, 5, "x"), (3, 30, "c"), (9, 1, "y"), (100, 1, "z")]
    assert done.counts == Counts(inserted=1, updated=1)
    assert len(done.removed) == 1


def test_keys_of_the_source_decide_which_files_are_read() -> None:
    table = stock()
    db = Database(table, orders((1, 0, "x")))
    db.run("MERGE INTO stock USING orders ON stock.id = orders.id WHEN MATCHED THEN DELETE")
    assert len(set(table.opened)) == 1


def test_first_clause_whose_condition_holds_applies() -> None:
    rows, done = merged(
        (1, 0, "x"),
        (2, 7, "y"),
        (8, 1, "keep"),
        (9, 1, "skip"),
        clauses="""WHEN MATCHED AND s.n = 0 THEN DELETE
        WHEN MATCHED AND t.n > 15 THEN UPDATE SET n = t.n - s.n, t.note = concat(t.note, s.note)
        WHEN NOT MATCHED AND s.note = 'keep' THEN INSERT (id, n) VALUES (s.id, s.n + 1)""",
    )
    assert rows == [(2, 13, "by"), (3, 30, "c"), (8, 2, None), (100, 1, "z")]
    assert done.counts == Counts(inserted=1, updated=1, deleted=1)


def test_matched_row_without_a_clause_that_applies_stays_and_is_not_inserted() -> None:
    rows, done = merged(
        (1, 0, "x"), clauses="WHEN MATCHED AND false THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    )
    assert rows == [(1, 10, "a"), (2, 20, "b"), *REST]
    assert (done.added, done.removed) == ((), ())


def test_not_matched_by_source_sees_every_target_row() -> None:
    rows, done = merged(
        (1, 5, "x"),
        clauses="""WHEN MATCHED THEN UPDATE SET n = s.n
        WHEN NOT MATCHED BY SOURCE AND t.n = 1 THEN DELETE
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET note = 'gone'""",
    )
    assert rows == [(1, 5, "a"), (2, 20, "gone"), (3, 30, "gone")]
    assert done.counts == Counts(updated=3, deleted=1)


def test_insert_only_merge_rewrites_nothing() -> None:
    rows, done = merged((1, 5, "x"), (7, 7, "n"), clauses="WHEN NOT MATCHED THEN INSERT *")
    assert [row[0] for row in rows] == [1, 2, 3, 7, 100]
    assert (done.removed, done.counts) == ((), Counts(inserted=1))


def test_two_source_rows_for_one_target_row_are_refused() -> None:
    with pytest.raises(InvalidInput, match="two rows of the source"):
        merged((1, 5, "x"), (1, 6, "y"), clauses="WHEN MATCHED THEN UPDATE SET n = s.n")


def test_two_source_rows_of_which_one_applies_are_fine() -> None:
    rows, done = merged((1, 5, "x"), (1, 6, "y"), clauses="WHEN MATCHED AND s.n = 6 THEN UPDATE SET n = s.n")
    assert rows[0] == (1, 6, "a")
    assert done.counts == Counts(updated=1)


def test_two_source_rows_that_delete_without_condition_are_fine() -> None:
    rows, done = merged((1, 5, "x"), (1, 6, "y"), clauses="WHEN MATCHED THEN DELETE")
    assert [row[0] for row in rows] == [2, 3, 100]
    assert done.counts == Counts(deleted=1)


def test_null_keys_match_nothing_and_are_inserted() -> None:
    rows, _ = merged((None, 5, "x"), clauses="WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *")
    assert rows[0] == (None, 5, "x")
    assert len(rows) == 5


def test_source_may_be_a_query_over_the_target() -> None:
    db = Database(stock())
    db.run(
        "MERGE INTO stock t USING (SELECT id, max(n) AS n FROM stock GROUP BY id) s ON t.id = s.id "
        "WHEN MATCHED AND t.id < 3 THEN UPDATE SET n = s.n + 1"
    )
    assert db.rows("SELECT n FROM stock ORDER BY id") == [(11,), (21,), (30,), (1,)]


def test_source_may_be_data() -> None:
    table = stock()
    db = Database(table)
    clauses = MergeClauses(
        "target",
        "source",
        parse_expression("target.id = source.id"),
        (MatchedClause(None, {"n": parse_expression("source.n")}),),
        (NotMatchedClause(None, "*"),),
    )
    rows = [{"id": 1, "n": 0, "note": None}, {"id": 50, "n": 5, "note": "new"}]
    table.apply(db.engine.merge(table.target, table.source, rows, clauses, {}, NOW_MS))
    assert db.rows("SELECT id, n, note FROM stock WHERE id IN (1, 50) ORDER BY id") == [
        (1, 0, "a"),
        (50, 5, "new"),
    ]


@pytest.mark.parametrize(
    "clauses",
    [
        "WHEN MATCHED THEN UPDATE SET nope = 1",
        "WHEN MATCHED THEN UPDATE SET n = 'x'",
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (t.id)",
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = s.n",
        "WHEN MATCHED THEN DELETE WHEN MATCHED AND s.n = 1 THEN DELETE",
    ],
)
def test_merge_that_spark_refuses_is_invalid(clauses: str) -> None:
    with pytest.raises(InvalidInput):
        merged((1, 5, "x"), clauses=clauses)


def test_star_wants_every_column_from_the_source() -> None:
    db = Database(stock())
    with pytest.raises(InvalidInput, match="note"):
        db.run(
            "MERGE INTO stock t USING (SELECT 1L AS id, 2 AS n) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET *"
        )


def test_check_constraint_is_asked_of_changed_rows_alone() -> None:
    table, source = stock(), orders((1, 0, "x"))
    table.checks = {"some": "n > 5"}
    db = Database(table, source)
    with pytest.raises(InvalidInput, match="some"):
        db.run("MERGE INTO stock t USING orders s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n")
    db.run("MERGE INTO stock t USING orders s ON t.id = 3 WHEN MATCHED THEN UPDATE SET n = 6")
