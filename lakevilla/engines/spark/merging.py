"""MERGE: a first job finds what matches, a second writes.

The first joins the target's candidate files with the source and tells, for each file, whether a clause
applies, and whether a row of the target has two partners. The second rewrites the files in which a clause
applies and adds the source rows without a partner. The source is kept between the two, so that both see the
same rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from lakevilla.engines.port import MergeClauses, Rewritten
from lakevilla.engines.spark import tasks, types
from lakevilla.engines.spark.assigning import Assigned, Value, assign
from lakevilla.engines.spark.changes import Change, column_of, named
from lakevilla.engines.spark.failures import explained
from lakevilla.engines.spark.keys import merge_predicate
from lakevilla.engines.spark.reading import FILE, ROW
from lakevilla.engines.spark.types import quoted
from lakevilla.engines.spark.writing import NewRows, new_rows, rows_in, rows_of
from lakevilla.errors import InvalidInput
from lakevilla.model import Counts, DataFile
from lakevilla.predicates import ANYTHING, Predicate

_FOUND, _CLAUSE, _RANK, _FLAG = "lakevilla_found", "lakevilla_clause", "lakevilla_rank", "lakevilla_flag_"
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
        kept = self.data.persist()
        try:
            return self._run(kept)
        finally:
            kept.unpersist()

    def _run(self, data: Any) -> Rewritten:
        statement, source = self.change.statement, self.change.source
        view = statement.view(data.selectExpr("*", f"TRUE AS {_FOUND}"))
        predicate: Predicate = ANYTHING
        if not self.clauses.not_matched_by_source:
            with explained():
                run = self.change.writer.session.run
                predicate = run(lambda: merge_predicate(self.clauses, source.schema, data))
        found = self._matches(source.files(predicate), view)
        parts = [self._rewriting(found, view)] if found.touched else []
        if self.clauses.not_matched:
            parts.append(self._inserting(found.matched, view))
        if not parts:
            return Rewritten((), (), Counts())
        old, new = rows_of(found.touched), rows_in(self.data)
        at_most = None if old is None or new is None else old + new
        done = self.change.writer.write(self.change.target, _union(parts), at_most)
        counts = Counts(*(done.counts[kind] for kind in (tasks.INSERTED, tasks.UPDATED, tasks.DELETED)))
        return Rewritten(done.added, tuple(found.touched), counts)

    def _matches(self, files: Sequence[DataFile], view: str) -> _Matches:
        if not files:
            return _Matches((), (), False)
        number = self._clauses()[1]
        join = self._joined(files, view, "LEFT" if self.clauses.not_matched_by_source else "INNER")
        joined = f"SELECT {FILE}, {ROW}, {_FOUND}, {number} AS {_CLAUSE} FROM {join}"
        by_row = (
            f"SELECT {FILE}, count_if({_FOUND}) AS partners, count_if({_CLAUSE} <> {_NONE}) AS applied, "
            f"count_if({_FOUND} AND {_CLAUSE} <> {_NONE}) AS matched FROM ({joined}) GROUP BY {FILE}, {ROW}"
        )
        by_file = f"SELECT {FILE}, max(partners), max(applied), max(matched) FROM ({by_row}) GROUP BY {FILE}"
        frame = self.change.statement.run(by_file)
        with explained():
            found = self.change.writer.session.run(frame.collect)
        if any(row[3] > 1 for row in found) and not self._only_deletes():
            raise InvalidInput(
                "MERGE: two rows of the source match one row of the target, so that its new value is not "
                "determined; remove duplicates from the source"
            )
        matched = [files[row[0]] for row in found if row[1]]
        return _Matches(matched, [files[row[0]] for row in found if row[2]], any(row[1] > 1 for row in found))

    def _only_deletes(self) -> bool:
        """A row can be deleted twice and is gone all the same."""
        clauses = self.clauses.matched
        return len(clauses) == 1 and clauses[0].condition is None and clauses[0].set is None

    def _joined(self, files: Sequence[DataFile], view: str, kind: str) -> str:
        """Target rows with their partners."""
        statement, clauses = self.change.statement, self.clauses
        target = statement.view(statement.reader.files(self.change.source, files))
        return (
            f"{target} AS {quoted(clauses.target_alias)} {kind} JOIN "
            f"{view} AS {quoted(clauses.source_alias)} ON {statement.text(clauses.on)}"
        )

    def _rewriting(self, found: _Matches, view: str) -> NewRows:
        """The rows of files in which a clause applies, as they are afterwards."""
        clauses, number = self._clauses()
        joined = self._joined(found.touched, view, "LEFT")
        values = self._values(clauses, number, joined, kept=quoted(self.clauses.target_alias))
        deletes = [str(n) for n, clause in enumerate(clauses) if clause.values is None]
        gone = f"WHEN {number} IN ({', '.join(deletes)}) THEN {tasks.DELETED} " if deletes else ""
        kind = f"CASE WHEN {number} = {_NONE} THEN {tasks.KEPT} {gone}ELSE {tasks.UPDATED} END"
        if found.several:
            values, joined = _one_each(values, joined, kind, number)
            kind = tasks.KIND
        changed = f"{tasks.KIND} = {tasks.UPDATED}"
        statement, target = self.change.statement, self.change.target
        return new_rows(statement, target, values, joined, {tasks.KIND: kind}, changed)

    def _clauses(self) -> tuple[list[_Clause], str]:
        """The clauses for rows of the target, and the number of the one that applies to a joined row."""
        matched, alone = self.clauses.matched, self.clauses.not_matched_by_source
        clauses = [_Clause(self._condition(c.condition), self._unfolded(c.set)) for c in (*matched, *alone)]
        some = len(matched)
        with_partner, without = _number(clauses[:some], 0), _number(clauses[some:], some)
        return clauses, f"CASE WHEN {_FOUND} THEN {with_partner} ELSE {without} END"

    def _inserting(self, matched: Sequence[DataFile], view: str) -> NewRows:
        """Source rows without a partner, as new rows of the target."""
        clauses, statement = self.clauses, self.change.statement
        s = quoted(clauses.source_alias)
        alone = f"{view} AS {s}"
        if matched:
            target = statement.view(statement.reader.files(self.change.source, matched))
            on = statement.text(clauses.on)
            t = f"{target} AS {quoted(clauses.target_alias)}"
            alone = f"(SELECT * FROM {alone} LEFT ANTI JOIN {t} ON {on}) AS {s}"
        inserts = [
            _Clause(self._condition(clause.condition), self._unfolded(clause.values))
            for clause in clauses.not_matched
        ]
        number = _number(inserts, 0)
        values = self._values(inserts, number, alone, kept=None)
        return new_rows(
            statement,
            self.change.target,
            values,
            f"{alone} WHERE {number} <> {_NONE}",
            {tasks.KIND: f"{tasks.INSERTED}"},
        )

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
            raise InvalidInput(f"there is no column {missing[0]}; there is {', '.join(self.data.columns)}")
        return {
            column_of(target, name): exp.column(
                columns[name.lower()], table=self.clauses.source_alias, quoted=True
            )
            for name in target.schema.names
        }

    def _values(
        self, clauses: Sequence[_Clause], number: str, source_sql: str, kept: str | None
    ) -> dict[str, Assigned]:
        """For each column of the target what the clause that applies gives it, else what it has."""
        wanted = [(n, c, node) for n, one in enumerate(clauses) for c, node in (one.values or {}).items()]
        texts = [self.change.statement.text(node) for _, _, node in wanted]
        kinds: list[Any] = []
        if texts:
            listed = ", ".join(f"{text} AS c{i}" for i, text in enumerate(texts))
            kinds = self.change.statement.run(f"SELECT {listed} FROM {source_sql}").schema.fields
        values = {}
        for field in self.change.target.schema:
            branches, bad = "", ""
            for (n, column, _), text, kind in zip(wanted, texts, kinds, strict=True):
                if column == field.name:
                    value = assign(Value(f"({text})", types.arrow_type(kind.dataType)), field)
                    branches += f"WHEN {n} THEN {value.sql} "
                    bad += f"WHEN {n} THEN {value.bad} " if value.bad else ""
            old = "NULL" if kept is None else f"{kept}.{quoted(field.name)}"
            if branches:
                flag = f"CASE {number} {bad}ELSE FALSE END" if bad else None
                values[field.name] = Assigned(f"CASE {number} {branches}ELSE {old} END", flag)
            else:
                values[field.name] = assign(Value(old, field.type if kept else pa.null()), field)
        return values


def _one_each(
    values: Mapping[str, Assigned], joined: str, kind: str, number: str
) -> tuple[dict[str, Assigned], str]:
    """One result row for each row of the target: that with a clause if there is one."""
    first = f"row_number() OVER (PARTITION BY {FILE}, {ROW} ORDER BY {number} DESC) AS {_RANK}"
    listed = [f"{value.sql} AS {quoted(name)}" for name, value in values.items()]
    listed += [f"{value.bad} AS {_FLAG}{n}" for n, value in enumerate(values.values()) if value.bad]
    inner = f"SELECT {', '.join(listed)}, {kind} AS {tasks.KIND}, {first} FROM {joined}"
    after = {
        name: Assigned(quoted(name), f"{_FLAG}{n}" if value.bad else None)
        for n, (name, value) in enumerate(values.items())
    }
    return after, f"({inner}) AS lakevilla_ranked WHERE {_RANK} = 1"


def _number(clauses: Sequence[_Clause], first: int) -> str:
    """The number of the first clause whose condition is true."""
    if not clauses:
        return f"{_NONE}"
    branches = " ".join(f"WHEN {clause.condition} THEN {first + n}" for n, clause in enumerate(clauses))
    return f"CASE {branches} ELSE {_NONE} END"


def _union(parts: Sequence[NewRows]) -> NewRows:
    """All rows; each part numbers its refusals from where the one before ended."""
    frame, refusals = None, list[str]()
    for part in parts:
        columns = [c for c in part.frame.columns if c != tasks.REFUSED]
        refused = "CAST(NULL AS INT)"
        if tasks.REFUSED in part.frame.columns:
            refused = f"{tasks.REFUSED} + {len(refusals)}"
        shifted = part.frame.selectExpr(*(quoted(c) for c in columns), f"{refused} AS {tasks.REFUSED}")
        frame = shifted if frame is None else frame.unionByName(shifted)
        refusals += part.refusals
    return NewRows(frame, tuple(refusals))
