"""MERGE: a first job finds what matches, a second writes.

The first joins the target's candidate files with the source and finds, for each file, whether a clause
applies, and whether a row of the target has two partners. The second rewrites the files in which a clause
applies and adds the source rows without a partner. The source is kept between the two, so that both see the
same rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from lakevilla.engines.port import MergeClauses, Rewritten, Target
from lakevilla.engines.spark import types
from lakevilla.engines.spark.change.assignment import Assigned, Value, assign
from lakevilla.engines.spark.change.copy_on_write import Change, column_of, named
from lakevilla.engines.spark.change.merge_keys import Sides
from lakevilla.engines.spark.change.merge_on_read import MaskingChange
from lakevilla.engines.spark.change.stable_rows import settled
from lakevilla.engines.spark.failures import explained
from lakevilla.engines.spark.names import Names
from lakevilla.engines.spark.scan.pruning import (
    Pruning,
    by_chance,
    is_deterministic,
    refuse_chance,
    refuse_chance_of,
)
from lakevilla.engines.spark.scan.queries import Statement
from lakevilla.engines.spark.session.jvm import driver_side
from lakevilla.engines.spark.types import quoted
from lakevilla.engines.spark.write import tasks
from lakevilla.engines.spark.write.writer import NewRows, new_rows, rows_in, rows_of
from lakevilla.errors import InvalidInput
from lakevilla.model import Counts, DataFile
from lakevilla.predicates import ANYTHING, Predicate, conjunction
from lakevilla.sql.words.suggestions import missing_in_source

_NONE = -1


@dataclass(frozen=True)
class _Clause:
    """A clause as SQL; `values` None deletes."""

    condition: str
    values: Mapping[str, exp.Expr] | None


@dataclass(frozen=True)
class _Matches:
    """What the first job found: the files with a match, those in which a clause applies, and whether a row
    of the target has several partners."""

    matched: Sequence[DataFile]
    touched: Sequence[DataFile]
    several: bool


@dataclass(frozen=True)
class Merge:
    """One MERGE of a DataFrame into a table."""

    change: Change
    clauses: MergeClauses
    data: Any

    def run(self) -> Rewritten:
        changes = (*self.clauses.matched, *self.clauses.not_matched_by_source)
        refuse_chance(self.clauses.on, *(clause.condition for clause in changes))
        refuse_chance(*(clause.condition for clause in self.clauses.not_matched))
        with settled(self.data) as data:
            return self._run(data)

    def _run(self, data: Any) -> Rewritten:
        statement, source = self.change.statement, self.change.source
        view = statement.view(data.selectExpr("*", f"TRUE AS {self.change.names.found}"))
        predicate: Predicate = ANYTHING
        if not self.clauses.not_matched_by_source:
            predicate = self._predicate(data, view)
        found = self._matches(source.files(predicate), view)
        parts = []
        if self.clauses.matched or self.clauses.not_matched_by_source:
            # Analysed also where no file is rewritten: a mistake is one in every state of the table.
            rewriting = self._rewriting(found, view)
            parts = [rewriting] if found.touched else []
        if self.clauses.not_matched:
            parts.append(self._inserting(found.matched, view))
        if not parts:
            return Rewritten((), (), Counts())
        old, new = rows_of(found.touched), rows_in(self.data)
        at_most = None if old is None or new is None else old + new
        done = self.change.writer.write(self.change.target, _union(parts), at_most)
        counts = Counts(*(done.counts[kind] for kind in (tasks.INSERTED, tasks.UPDATED, tasks.DELETED)))
        if isinstance(self.change, MaskingChange):
            changed = self.change.settled(done, found.touched)
            return Rewritten(changed.added, changed.removed, counts, changed.masked, done.feed)
        return Rewritten(done.added, tuple(found.touched), counts, feed=done.feed)

    @property
    def _masks(self) -> bool:
        """Whether only rows to which a clause applies are written, and the others stay where they are."""
        return isinstance(self.change, MaskingChange)

    def _predicate(self, data: Any, view: str) -> Predicate:
        """What a row of the target satisfies that matches a row of the source."""
        clauses, source = self.clauses, self.change.source
        sides = Sides(clauses, source.schema, data.schema)
        target, alias = quoted(clauses.target_alias), quoted(clauses.source_alias)
        on = Pruning(self.change.statement, source, sides.target).matching(
            clauses.on, lambda planned: f"SELECT 1 FROM {planned} AS {target} JOIN {view} AS {alias} ON"
        )
        with explained():
            keys = self.change.writer.session.run(lambda: sides.keys(data))
        return conjunction([on, keys])

    def _matches(self, files: Sequence[DataFile], view: str) -> _Matches:
        if not files:
            return _Matches((), (), False)
        names, number = self.change.names, self._clauses()[1]
        join = self._joined(files, view, "LEFT" if self.clauses.not_matched_by_source else "INNER")
        refuse_chance_of(self.change.statement, number, join)
        joined = f"SELECT {names.file}, {names.row}, {names.found}, {number} AS {names.clause} FROM {join}"
        applies = f"{names.clause} <> {_NONE}"
        by_row = (
            f"SELECT {names.file}, count_if({names.found}) AS partners, count_if({applies}) AS applied, "
            f"count_if({names.found} AND {applies}) AS matched FROM ({joined}) "
            f"GROUP BY {names.file}, {names.row}"
        )
        by_file = (
            f"SELECT {names.file}, max(partners), max(applied), max(matched) FROM ({by_row}) "
            f"GROUP BY {names.file}"
        )
        frame = self.change.statement.run(by_file)
        if not is_deterministic(frame):
            raise by_chance()
        with explained():
            found = self.change.writer.session.run(frame.collect)
        if any(row[3] > 1 for row in found) and not self._only_deletes():
            raise InvalidInput(
                "MERGE is ambiguous: two rows of the source match one row of the target; remove duplicates "
                "from the source"
            )
        matched = [files[row[0]] for row in found if row[1]]
        return _Matches(matched, [files[row[0]] for row in found if row[2]], any(row[1] > 1 for row in found))

    def _only_deletes(self) -> bool:
        """To delete a row twice is not ambiguous."""
        clauses = self.clauses.matched
        return len(clauses) == 1 and clauses[0].condition is None and clauses[0].set is None

    def _joined(self, files: Sequence[DataFile], view: str, kind: str) -> str:
        """Target rows with their partners."""
        statement, clauses = self.change.statement, self.clauses
        target = statement.view(statement.reader.files(self.change.source, files, self.change.names))
        return (
            f"{target} AS {quoted(clauses.target_alias)} {kind} JOIN "
            f"{view} AS {quoted(clauses.source_alias)} ON {statement.text(clauses.on)}"
        )

    def _rewriting(self, found: _Matches, view: str) -> NewRows:
        """The rows of files in which a clause applies, as they are afterwards."""
        statement, target, names = self.change.statement, self.change.target, self.change.names
        clauses, number = self._clauses()
        kept = quoted(self.clauses.target_alias)
        listed = [f"{kept}.{quoted(c)} AS {names.old(n)}" for n, c in enumerate(target.schema.names)]
        listed += [names.file, names.row, f"{number} AS {names.clause}"]
        new = _New(statement, target, names, clauses)
        alone = not self._masks or self.clauses.not_matched_by_source
        frame = new.computed(listed, self._joined(found.touched, view, "LEFT" if alone else "INNER"), number)
        deletes = [str(n) for n, clause in enumerate(clauses) if clause.values is None]
        gone = f"WHEN {names.clause} IN ({', '.join(deletes)}) THEN {tasks.DELETED} " if deletes else ""
        kind = f"CASE WHEN {names.clause} = {_NONE} THEN {tasks.KEPT} {gone}ELSE {tasks.UPDATED} END"
        rows, extra = statement.view(frame), {names.kind: kind}
        if self._masks:
            rows = f"(SELECT * FROM {rows} WHERE {names.clause} <> {_NONE}) AS lakevilla_changed"
            extra |= {names.file: names.file, names.row: names.row}
        if target.feed is not None:
            extra |= {names.before(n): names.old(n) for n in range(len(target.schema))}
        if found.several:
            # One result row for each row of the target: that with a clause if there is one.
            order = f"PARTITION BY {names.file}, {names.row} ORDER BY {names.clause} DESC"
            ranked = f"SELECT *, row_number() OVER ({order}) AS {names.rank} FROM {rows}"
            rows = f"({ranked}) AS lakevilla_ranked WHERE {names.rank} = 1"
        values = new.assigned(frame, [names.old(n) for n in range(len(target.schema))])
        changed = f"{names.kind} = {tasks.UPDATED}"
        return new_rows(statement, target, values, rows, extra, changed, names=names)

    def _clauses(self) -> tuple[list[_Clause], str]:
        """The clauses for rows of the target, and the number of the one that applies to a joined row."""
        matched, alone = self.clauses.matched, self.clauses.not_matched_by_source
        clauses = [_Clause(self._condition(c.condition), self._unfolded(c.set)) for c in (*matched, *alone)]
        some = len(matched)
        with_partner, without = _number(clauses[:some], 0), _number(clauses[some:], some)
        return clauses, f"CASE WHEN {self.change.names.found} THEN {with_partner} ELSE {without} END"

    def _inserting(self, matched: Sequence[DataFile], view: str) -> NewRows:
        """Source rows without a partner, as new rows of the target."""
        clauses, statement = self.clauses, self.change.statement
        s = quoted(clauses.source_alias)
        alone = f"{view} AS {s}"
        if matched or not driver_side(statement.reader.session):
            # Without a plan of the condition, here Spark reads it for the first time.
            old = statement.view(statement.reader.files(self.change.source, matched, self.change.names))
            on = statement.text(clauses.on)
            t = f"{old} AS {quoted(clauses.target_alias)}"
            alone = f"(SELECT * FROM {alone} LEFT ANTI JOIN {t} ON {on}) AS {s}"
        inserts = [
            _Clause(self._condition(clause.condition), self._unfolded(clause.values))
            for clause in clauses.not_matched
        ]
        target, names = self.change.target, self.change.names
        numbered = f"(SELECT *, {_number(inserts, 0)} AS {names.clause} FROM {alone}) AS {s}"
        new = _New(statement, target, names, inserts)
        frame = new.computed([names.clause], numbered, names.clause)
        values = new.assigned(frame, None)
        rows = f"{statement.view(frame)} WHERE {names.clause} <> {_NONE}"
        extra = {names.kind: f"{tasks.INSERTED}"}
        if self._masks:
            extra |= {names.file: "CAST(NULL AS INT)", names.row: "CAST(NULL AS BIGINT)"}
        if target.feed is not None:
            kinds = enumerate(types.sql_type(field.type) for field in target.schema)
            extra |= {names.before(n): f"CAST(NULL AS {kind})" for n, kind in kinds}
        return new_rows(statement, target, values, rows, extra, names=names)

    def _condition(self, condition: exp.Expr | None) -> str:
        return "TRUE" if condition is None else f"({self.change.statement.text(condition)})"

    def _unfolded(self, given: Mapping[str, exp.Expr] | str | None) -> Mapping[str, exp.Expr] | None:
        """Assignments by the target's columns; a star takes every column from the source."""
        target = self.change.target
        if given is None:
            return None
        if not isinstance(given, str):
            return named(target, given)
        columns = {name.lower(): name for name in self.data.columns}
        missing = [name for name in target.schema.names if name.lower() not in columns]
        if missing:
            raise missing_in_source(missing[0], self.data.columns)
        return {
            column_of(target, name): exp.column(
                columns[name.lower()], table=self.clauses.source_alias, quoted=True
            )
            for name in target.schema.names
        }


@dataclass(frozen=True)
class _New:
    """The values that clauses give to columns. Each is computed in a column of its own, once, and only where
    its clause applies; then it is brought to the type of the target's column."""

    statement: Statement
    target: Target
    names: Names
    clauses: Sequence[_Clause]

    def _wanted(self) -> list[tuple[int, str, exp.Expr]]:
        """Of each value the number of its clause, its column, and the expression."""
        return [(n, c, node) for n, one in enumerate(self.clauses) for c, node in (one.values or {}).items()]

    def computed(self, listed: Sequence[str], source_sql: str, number: str) -> Any:
        """The listed columns and the values over these rows; `number` is that of the clause that applies."""
        columns = [*listed]
        for position, (n, _, node) in enumerate(self._wanted()):
            text = self.statement.text(node)
            columns.append(f"CASE WHEN {number} = {n} THEN ({text}) END AS {self.names.value(position)}")
        return self.statement.run(f"SELECT {', '.join(columns)} FROM {source_sql}")

    def assigned(self, frame: Any, kept: Sequence[str] | None) -> dict[str, Assigned]:
        """For each column of the target what the clause that applies gives it, else what it has."""
        kinds = {field.name: field.dataType for field in frame.schema.fields}
        values = {}
        for column, field in enumerate(self.target.schema):
            branches, bad = "", ""
            for position, (n, name, _) in enumerate(self._wanted()):
                if name == field.name:
                    sql = self.names.value(position)
                    value = Value(sql, types.arrow_type(kinds[sql]))
                    given = assign(value, field, self.statement.is_ansi)
                    branches += f"WHEN {n} THEN {given.sql} "
                    bad += f"WHEN {n} THEN {given.bad} " if given.bad else ""
            old = "NULL" if kept is None else kept[column]
            if branches:
                clause = self.names.clause
                flag = f"CASE {clause} {bad}ELSE FALSE END" if bad else None
                values[field.name] = Assigned(f"CASE {clause} {branches}ELSE {old} END", flag)
            else:
                values[field.name] = assign(Value(old, pa.null() if kept is None else field.type), field)
        return values


def _number(clauses: Sequence[_Clause], first: int) -> str:
    """The number of the first clause whose condition is true."""
    if not clauses:
        return f"{_NONE}"
    branches = " ".join(f"WHEN {clause.condition} THEN {first + n}" for n, clause in enumerate(clauses))
    return f"CASE {branches} ELSE {_NONE} END"


def _union(parts: Sequence[NewRows]) -> NewRows:
    """All rows; each part numbers its refusals from where the one before ended."""
    frame, refusals, names = None, list[InvalidInput](), parts[0].names
    for part in parts:
        columns = [c for c in part.frame.columns if c != names.refused]
        refused = "CAST(NULL AS INT)"
        if names.refused in part.frame.columns:
            refused = f"{names.refused} + {len(refusals)}"
        shifted = part.frame.selectExpr(*(quoted(c) for c in columns), f"{refused} AS {names.refused}")
        # By position: Spark's union by name takes a name apart at its dots.
        frame = shifted if frame is None else frame.union(shifted)
        refusals += part.refusals
    return NewRows(frame, tuple(refusals), names)
