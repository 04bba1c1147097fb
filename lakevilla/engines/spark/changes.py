"""UPDATE, DELETE and overwrite: copy on write.

One job where that is possible: candidate files are read, tasks leave those alone in which nothing changes,
and report what they did. With a subquery in the statement rows may come in any order, so that a first job
finds the files with a match, and a second one rewrites them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from lakevilla.engines.port import Rewritten, Source, Target
from lakevilla.engines.spark import tasks, types
from lakevilla.engines.spark.assigning import Assigned, Value, assign
from lakevilla.engines.spark.failures import explained
from lakevilla.engines.spark.queries import Statement
from lakevilla.engines.spark.reading import FILE
from lakevilla.engines.spark.types import quoted
from lakevilla.engines.spark.writing import Done, Writer, new_rows, rows_of
from lakevilla.errors import InvalidInput
from lakevilla.model import Counts, DataFile, WrittenFile
from lakevilla.predicates import ANYTHING, conjunction
from lakevilla.sql.predicates_of import Resolve, columns_in, predicate_of, predicate_unless


@dataclass(frozen=True)
class Change:
    """One changing statement on one table."""

    statement: Statement
    writer: Writer
    target: Target
    source: Source

    @property
    def called(self) -> str:
        """The name by which expressions may call the table."""
        return quoted(self.source.name.rpartition(".")[2])

    def update(self, assigned: Mapping[str, exp.Expr], where: exp.Expr | None) -> Rewritten:
        given = named(self.target, assigned)
        if not given:
            raise InvalidInput("UPDATE sets no column")
        files = self.source.files(predicate_of(where, self._columns()))
        done, touched = self._rewrite(files, where, given, tasks.UPDATED)
        return Rewritten(done.added, touched, Counts(updated=done.counts[tasks.UPDATED]))

    def delete(self, where: exp.Expr | None) -> Rewritten:
        whole, rest = self._candidates(where)
        deleted = self._rows(whole)
        removed = tuple(whole)
        added: tuple[WrittenFile, ...] = ()
        if rest:
            done, touched = self._rewrite(rest, where, {}, tasks.DELETED)
            added, removed, deleted = done.added, removed + touched, deleted + done.counts[tasks.DELETED]
        return Rewritten(added, removed, Counts(deleted=deleted))

    def _candidates(self, where: exp.Expr | None) -> tuple[list[DataFile], list[DataFile]]:
        """The files whose rows all go, and those of which some rows may."""
        predicate = predicate_of(where, self._columns())
        candidates = list(self.source.files(predicate))
        if where is None:
            return candidates, []
        unless = predicate_unless(where, self._columns())
        if unless == ANYTHING:
            return [], candidates
        partly = {file.identity for file in self.source.files(conjunction([predicate, unless]))}
        whole = [file for file in candidates if file.identity not in partly]
        return whole, [file for file in candidates if file.identity in partly]

    def _rows(self, files: Sequence[DataFile]) -> int:
        """How many rows the files have, counted by Spark only where nobody knows."""
        rows = sum(file.living_rows or 0 for file in files)
        unknown = [file for file in files if file.living_rows is None]
        if unknown:
            frame = self.statement.reader.files(self.source, unknown)
            with explained():
                rows += self.writer.session.run(frame.count)
        return rows

    def _rewrite(
        self, files: Sequence[DataFile], where: exp.Expr | None, given: Mapping[str, exp.Expr], kind: int
    ) -> tuple[Done, tuple[DataFile, ...]]:
        """Write the files' rows anew, those that match with their new values; the files that are gone
        then."""
        if not files:
            return Done((), (0, 0, 0, 0), frozenset()), ()
        condition = "TRUE" if where is None else self.statement.text(where)
        texts = {name: self.statement.text(node) for name, node in given.items()}
        in_order = not any(node.find(exp.Query) for node in [*given.values(), where] if node is not None)
        if not in_order:
            files = self._matching(files, condition)
            if not files:
                return Done((), (0, 0, 0, 0), frozenset()), ()
        view = self.statement.view(self.statement.reader.files(self.source, files))
        changes = f"coalesce(({condition}), FALSE)"
        number = f"CASE WHEN {changes} THEN {kind} ELSE {tasks.KEPT} END AS {tasks.KIND}"
        marked = f"(SELECT *, {number} FROM {view} AS {self.called}) AS {self.called}"
        hit = f"{tasks.KIND} = {kind}"
        values: dict[str, Value | Assigned] = {
            field.name: Value(f"{self.called}.{quoted(field.name)}", field.type)
            for field in self.source.schema
        }
        for name, value in self._values(texts, view).items():
            values[name] = chosen(hit, value, f"{self.called}.{quoted(name)}")
        extra = {tasks.KIND: tasks.KIND, FILE: FILE}
        rows = new_rows(self.statement, self.target, values, marked, extra, hit)
        done = self.writer.write(self.target, rows, rows_of(files), files if in_order else None)
        if not in_order:
            return done, tuple(files)
        return done, tuple(file for number, file in enumerate(files) if number in done.changed)

    def _values(self, texts: Mapping[str, str], view: str) -> dict[str, Assigned]:
        """The new values; their types are those that Spark finds."""
        if not texts:
            return {}
        sql = ", ".join(f"{text} AS c{number}" for number, text in enumerate(texts.values()))
        found = self.statement.run(f"SELECT {sql} FROM {view} AS {self.called}").schema.fields
        return {
            name: assign(Value(f"({text})", types.arrow_type(field.dataType)), self.target.schema.field(name))
            for (name, text), field in zip(texts.items(), found, strict=True)
        }

    def _matching(self, files: Sequence[DataFile], condition: str) -> list[DataFile]:
        view = self.statement.view(self.statement.reader.files(self.source, files))
        sql = f"SELECT DISTINCT {FILE} FROM {view} AS {self.called} WHERE {condition}"
        frame = self.statement.run(sql)
        with explained():
            found = {row[0] for row in self.writer.session.run(frame.collect)}
        return [file for number, file in enumerate(files) if number in found]

    def _columns(self) -> Resolve:
        return columns_in(self.source.schema, (self.source.name, self.source.name.rpartition(".")[2]))


def chosen(condition: str, value: Assigned, kept: str) -> Assigned:
    """The value where the condition is true, else what is kept.

    CASE, for the new value must not be computed where it does not apply.
    """
    bad = None if value.bad is None else f"CASE WHEN {condition} THEN {value.bad} ELSE FALSE END"
    return Assigned(f"CASE WHEN {condition} THEN {value.sql} ELSE {kept} END", bad)


def named(target: Target, given: Mapping[str, exp.Expr]) -> dict[str, exp.Expr]:
    """Assignments by the table's spelling of its columns."""
    found = {column_of(target, name): value for name, value in given.items()}
    if len(found) != len(given):
        raise InvalidInput("a column is set twice")
    return found


def column_of(target: Target, name: str) -> str:
    """The column of this name, ignoring case; InvalidInput if there is none."""
    found = [field.name for field in target.schema if field.name.lower() == name.lower()]
    if len(found) != 1:
        raise InvalidInput(f"there is no column {name}; there is {', '.join(target.schema.names)}")
    return str(found[0])
