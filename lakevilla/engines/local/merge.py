"""MERGE: one join of source rows with a chunk of target rows at a time.

The source is in memory, each row with a number. For every chunk of target files a left join gives each
target row its source row and the clause that applies; files in which a clause applies are rewritten. Which
source rows matched is kept over all chunks; the others feed the NOT MATCHED clauses at the end.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from sqlglot import exp

from lakevilla.engines.arrow_writer import write
from lakevilla.engines.local.arrow import inward
from lakevilla.engines.local.change import FILE, ROW, Change, rows_of
from lakevilla.engines.local.pruning import merge_predicate
from lakevilla.engines.local.rows import NewRows, checked, new_rows, nothing_but
from lakevilla.engines.local.translation.expressions import Expressions
from lakevilla.engines.local.translation.queries.scope import Relation, Scope
from lakevilla.engines.local.translation.types.casts import assign
from lakevilla.engines.local.translation.types.typed import Typed
from lakevilla.engines.port import MergeClauses, Rewritten
from lakevilla.errors import InvalidInput
from lakevilla.model import Counts, DataFile
from lakevilla.predicates import ANYTHING, Predicate
from lakevilla.sql.words.suggestions import missing_in_source

SOURCE, CLAUSE = "lv_source", "lv_clause"
NO_CLAUSE = -1

Assigned = Mapping[str, exp.Expr]
Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True)
class _Clause:
    """A clause with its star unfolded; `values` None deletes. `scope` is what its expressions see."""

    condition: exp.Expr | None
    values: Assigned | None
    scope: Scope


@dataclass
class Merge:
    """One MERGE. `data` is the whole source; `matched` marks its rows that met a target row."""

    change: Change
    clauses: MergeClauses
    data: pa.Table
    updated: int = 0
    deleted: int = 0
    inserted: int = 0
    matched: Flags = field(init=False)

    def __post_init__(self) -> None:
        change = self.change
        self.matched = np.zeros(self.data.num_rows, dtype=np.bool_)
        change.relation.names = ((self.clauses.target_alias,),)
        outputs = change.queries.outputs([(column.name, column.type) for column in self.data.schema])
        self.source = Relation(change.queries.fresh("t"), ((self.clauses.source_alias,),), outputs)
        numbers = pa.array(np.arange(self.data.num_rows, dtype=np.int64))
        self.rows = inward(self.data, [output.sql for output in outputs]).append_column(SOURCE, numbers)

    def run(self) -> Rewritten:
        added = write(self.change.target, self._pieces())
        counts = Counts(self.inserted, self.updated, self.deleted)
        feed = self.change.feed.finish()
        return Rewritten(added, tuple(self.change.removed), counts, tuple(self.change.masked), feed)

    def _pieces(self) -> Iterator[pa.Table]:
        # Both texts are made before anything is read, so that a mistake in them costs nothing.
        rewriting, deletes = self._rewriting()
        inserting = self._inserting()
        predicate: Predicate = ANYTHING
        if not self.clauses.not_matched_by_source:
            scope = Scope([self.change.relation, self.source])
            predicate = merge_predicate(self.clauses.on, scope, self.change.source.schema, self.data)
        yield from self.changed(self.change.source.files(predicate), predicate, rewriting, deletes)
        if inserting is not None and not self.matched.all():
            yield from self._inserted(inserting)

    def changed(
        self,
        files: Sequence[DataFile],
        predicate: Predicate,  # noqa: ARG002 - for those that do not read all rows
        rewriting: NewRows,
        deletes: set[int],
    ) -> Iterator[pa.Table]:
        """The new rows of those of the files in which a clause applies; only rows that satisfy the predicate
        can meet one."""
        for chunk, old in self.change.chunks(files):
            tables = {self.change.relation.sql: old, self.source.sql: self.rows}
            result = self.change.run(rewriting.sql, tables)
            yield from self._applied(result, rewriting, deletes, chunk, old)

    def _rewriting(self) -> tuple[NewRows, set[int]]:
        """The query for target rows and the clause that each meets; and which clauses delete."""
        relation, name = self.change.relation, self.change.queries.fresh("j")
        number, on = self.clause_of(relation)
        both = f"{rows_of(relation)} LEFT JOIN {rows_of(self.source)} ON {on}"
        joined = f"SELECT *, {number} AS {CLAUSE} FROM {both}"
        extra = {key: f"{name}.{key}" for key in (FILE, ROW, SOURCE, CLAUSE)}
        rows = new_rows(
            self.change.queries, self.change.target, self.values(name), f"({joined}) AS {name}", extra
        )
        sets = [c.set for c in (*self.clauses.matched, *self.clauses.not_matched_by_source)]
        return rows, {number for number, assigned in enumerate(sets) if assigned is None}

    def clause_of(self, target: Relation) -> tuple[str, str]:
        """The number of the clause that applies to a row of the target joined with the source, and the
        condition of the join."""
        both, alone = Scope([target, self.source]), Scope([target])
        matched = [_Clause(c.condition, None, both) for c in self.clauses.matched]
        by_source = [_Clause(c.condition, None, alone) for c in self.clauses.not_matched_by_source]
        on = self._expressions(both).condition(self.clauses.on).sql
        found = f"{self.source.sql}.{SOURCE} IS NOT NULL"
        without = self._number(by_source, len(matched))
        return f"CASE WHEN {found} THEN {self._number(matched, 0)} ELSE {without} END", on

    def values(self, name: str) -> dict[str, Typed]:
        """What the target's columns get in the rows of a join of this name, each with its clause."""
        target = self.change.relation
        inner = Scope([replace(target, sql=name), replace(self.source, sql=name)])
        alone = Scope([inner.relations[0]])
        clauses = [_Clause(None, self._set(c.set), inner) for c in self.clauses.matched]
        clauses += [_Clause(None, self._set(c.set), alone) for c in self.clauses.not_matched_by_source]
        kept = {output.name: Typed(f"{name}.{output.sql}", output.type) for output in target.outputs}
        return self._values(clauses, f"{name}.{CLAUSE}", kept)

    def _inserting(self) -> NewRows | None:
        """The query for rows to insert, over the source rows without a match."""
        if not self.clauses.not_matched:
            return None
        name = self.change.queries.fresh("j")
        scope, inner = Scope([self.source]), Scope([replace(self.source, sql=name)])
        clauses = [_Clause(c.condition, self._set(c.values), scope) for c in self.clauses.not_matched]
        number = self._number(clauses, 0)
        chosen = f"SELECT *, {number} AS {CLAUSE} FROM {rows_of(self.source)}"
        seen = [replace(clause, scope=inner) for clause in clauses]
        values = self._values(seen, f"{name}.{CLAUSE}", {})
        source = f"({chosen}) AS {name} WHERE {name}.{CLAUSE} <> {NO_CLAUSE}"
        return new_rows(self.change.queries, self.change.target, values, source)

    def _expressions(self, scope: Scope) -> Expressions:
        return Expressions(self.change.queries, scope)

    def _set(self, assigned: Assigned | str | None) -> Assigned | None:
        """Assignments by the target's columns; a star takes every column from the source."""
        schema = self.change.target.schema
        if assigned is None:
            return None
        if not isinstance(assigned, str):
            return nothing_but(schema, assigned)
        alias = self.clauses.source_alias
        given = {name.lower(): name for name in self.data.schema.names}
        missing = [name for name in schema.names if name.lower() not in given]
        if missing:
            raise missing_in_source(missing[0], self.data.schema.names)
        return {name: exp.column(given[name.lower()], table=alias, quoted=True) for name in schema.names}

    def _number(self, clauses: Sequence[_Clause], first: int) -> str:
        """The number of the first clause whose condition is true."""
        branches = []
        for position, clause in enumerate(clauses, first):
            expressions = self._expressions(clause.scope)
            condition = "TRUE" if clause.condition is None else expressions.condition(clause.condition).sql
            branches.append(f"WHEN {condition} THEN {position}")
        return f"CASE {' '.join(branches)} ELSE {NO_CLAUSE} END" if branches else f"{NO_CLAUSE}"

    def _values(self, clauses: Sequence[_Clause], number: str, kept: Mapping[str, Typed]) -> dict[str, Typed]:
        """For each column of the target what the clause that applies gives it, else what it has."""
        values = dict(kept)
        for column in self.change.target.schema:
            branches = []
            for position, clause in enumerate(clauses):
                node = (clause.values or {}).get(column.name)
                if node is not None:
                    value = assign(self._expressions(clause.scope)(node), column.type, column.name)
                    branches.append(f"WHEN {position} THEN {value.sql}")
            if branches:
                old = kept[column.name].sql if column.name in kept else "NULL"
                sql = f"CASE {number} {' '.join(branches)} ELSE {old} END"
                values[column.name] = Typed(sql, column.type)
        return values

    def _applied(
        self,
        result: pa.Table,
        rows: NewRows,
        deletes: set[int],
        chunk: Sequence[DataFile],
        old: pa.Table,
    ) -> Iterator[pa.Table]:
        """Count, check and keep the rows of the files in which a clause applied."""
        width = len(rows.outputs)
        numbers, row, clause = (result.column(width + i).to_numpy() for i in (0, 1, 3))
        source = result.column(width + 2)
        self.matched[source.drop_null().to_numpy()] = True
        self.refuse_two(row[(clause != NO_CLAUSE) & source.is_valid().to_numpy()])
        once = _first_of_each(row, clause)
        if once is not None:
            result, numbers, clause = result.take(pa.array(once)), numbers[once], clause[once]
            row = row[once]
        gone = np.isin(clause, list(deletes))
        changed = (clause != NO_CLAUSE) & ~gone
        self.updated += int(changed.sum())
        self.deleted += int(gone.sum())
        per_file = np.bincount(numbers[clause != NO_CLAUSE], minlength=len(chunk))
        self.change.removed += [file for file, count in zip(chunk, per_file, strict=True) if count]
        new = checked(result, rows, self.change.target, pa.array(changed))
        if self.change.feed.is_wanted:
            was = self.change.as_they_were
            self.change.feed.updated(was(old, pa.array(row[changed])), new.filter(pa.array(changed)))
            self.change.feed.deleted(was(old, pa.array(row[gone])))
        kept = (per_file[numbers] > 0) & ~gone
        if kept.any():
            yield new.filter(pa.array(kept))

    def refuse_two(self, rows: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> None:
        """InvalidInput if one of these rows of the target, which two rows of the source match, is there
        twice."""
        clauses = self.clauses.matched
        if len(clauses) == 1 and clauses[0].condition is None and clauses[0].set is None:
            # To delete a row twice is not ambiguous.
            return
        if len(np.unique(rows)) != len(rows):
            raise InvalidInput(
                "MERGE is ambiguous: two rows of the source match one row of the target; remove duplicates "
                "from the source"
            )

    def _inserted(self, inserting: NewRows) -> Iterator[pa.Table]:
        rows = self.rows.filter(pa.array(~self.matched))
        result = self.change.run(inserting.sql, {self.source.sql: rows})
        new = checked(result, inserting, self.change.target)
        self.inserted += new.num_rows
        self.change.feed.inserted(new)
        if new.num_rows:
            yield new


def _first_of_each(
    row: "np.ndarray[tuple[int], np.dtype[np.int64]]", clause: "np.ndarray[tuple[int], np.dtype[np.int32]]"
) -> "np.ndarray[tuple[int], np.dtype[np.int64]] | None":
    """One result row per target row, that with a clause if there is one; None if there are no doubles."""
    order = np.lexsort((-clause, row))
    sorted_rows = row[order]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = sorted_rows[1:] != sorted_rows[:-1]
    return None if first.all() else np.sort(order[first])
