"""UPDATE, DELETE and overwrite: copy on write.

One job where that is possible: candidate files are read, tasks leave those alone in which nothing changes,
and report what they did. With a subquery in the statement rows may come in any order, so that a first job
finds the files with a match, and a second one rewrites them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from lakevilla.engines.port import Rewritten, Source, Target
from lakevilla.engines.spark import types
from lakevilla.engines.spark.change.assignment import Assigned, Value, assign
from lakevilla.engines.spark.failures import explained
from lakevilla.engines.spark.names import Names
from lakevilla.engines.spark.scan.pruning import Pruning, refuse_chance_of
from lakevilla.engines.spark.scan.queries import Statement
from lakevilla.engines.spark.types import quoted
from lakevilla.engines.spark.write import tasks
from lakevilla.engines.spark.write.writer import Writer, new_rows, rows_of
from lakevilla.errors import InvalidInput
from lakevilla.files.deleted_rows import DeletedRows
from lakevilla.model import Counts, DataFile, WrittenFile
from lakevilla.predicates import ANYTHING, conjunction
from lakevilla.sql.expressions.predicate_extraction import columns_in
from lakevilla.sql.words.suggestions import unknown_column


@dataclass(frozen=True)
class Changed:
    """The files of changed rows, those that stay with masked rows, and the counts of rows by kind."""

    added: tuple[WrittenFile, ...] = ()
    counts: tuple[int, ...] = (0, 0, 0, 0)
    removed: tuple[DataFile, ...] = ()
    masked: tuple[DeletedRows, ...] = ()
    feed: tuple[WrittenFile, ...] = ()


@dataclass(frozen=True)
class Change:
    """One changing statement on one table."""

    statement: Statement
    writer: Writer
    target: Target
    source: Source
    names: Names

    @property
    def called(self) -> str:
        """The name by which expressions may call the table."""
        return quoted(self.source.name.rpartition(".")[2])

    def update(self, assigned: Mapping[str, exp.Expr], where: exp.Expr | None) -> Rewritten:
        given = named(self.target, assigned)
        if not given:
            raise InvalidInput(f"UPDATE of table {self.target.name!r} sets no column")
        files = self.source.files(self._pruning.matching(where, self._rows_where))
        done = self.rewrite(files, where, given, tasks.UPDATED)
        counts = Counts(updated=done.counts[tasks.UPDATED])
        return Rewritten(done.added, done.removed, counts, done.masked, done.feed)

    def delete(self, where: exp.Expr | None) -> Rewritten:
        whole, rest = self._candidates(where)
        deleted, done = self._rows(whole), Changed()
        if rest or (where is not None and not self._pruning.plans):
            done = self.rewrite(rest, where, {}, tasks.DELETED)
        counts = Counts(deleted=deleted + done.counts[tasks.DELETED])
        return Rewritten(done.added, (*whole, *done.removed), counts, done.masked, done.feed)

    def _candidates(self, where: exp.Expr | None) -> tuple[list[DataFile], list[DataFile]]:
        """The files whose rows all go, and those of which some rows may."""
        predicate = self._pruning.matching(where, self._rows_where)
        candidates = list(self.source.files(predicate))
        if where is None:
            return candidates, []
        if not candidates:
            return [], []
        unless = self._pruning.remaining(where, self._rows_where)
        if unless == ANYTHING or self.target.feed is not None:
            return [], candidates
        partly = {file.identity for file in self.source.files(conjunction([predicate, unless]))}
        whole = [file for file in candidates if file.identity not in partly]
        return whole, [file for file in candidates if file.identity in partly]

    def _rows(self, files: Sequence[DataFile]) -> int:
        """How many rows the files have, counted by Spark only where the log does not say."""
        rows = sum(file.living_rows or 0 for file in files)
        unknown = [file for file in files if file.living_rows is None]
        if unknown:
            frame = self.statement.reader.files(self.source, unknown, self.names)
            with explained():
                rows += self.writer.session.run(frame.count)
        return rows

    def rewrite(
        self, files: Sequence[DataFile], where: exp.Expr | None, given: Mapping[str, exp.Expr], kind: int
    ) -> Changed:
        """Write the files' rows anew, those that match with their new values.

        Without files the statement is analysed all the same: a mistake in it is one in every state of the
        table.
        """
        condition = "TRUE" if where is None else self.statement.text(where)
        texts = {name: self.statement.text(node) for name, node in given.items()}
        in_order = not any(node.find(exp.Query) for node in [*given.values(), where] if node is not None)
        if files and not in_order:
            files = self._matching(files, condition)
        names = self.names
        view = self.statement.view(self.statement.reader.files(self.source, files, names))
        refuse_chance_of(self.statement, condition, f"{view} AS {self.called}")
        changes = f"coalesce(({condition}), FALSE)"
        number = f"CASE WHEN {changes} THEN {kind} ELSE {tasks.KEPT} END AS {names.kind}"
        marked = f"(SELECT *, {number} FROM {view} AS {self.called}) AS {self.called}"
        hit = f"{names.kind} = {kind}"
        values: dict[str, Value | Assigned] = {
            field.name: Value(f"{self.called}.{quoted(field.name)}", field.type)
            for field in self.source.schema
        }
        if texts:
            marked = self.computed(texts, marked, hit, values)
        extra = {names.kind: names.kind, names.file: names.file, **self.before(hit if given else None)}
        rows = new_rows(self.statement, self.target, values, marked, extra, hit, names=names)
        if not files:
            return Changed()
        done = self.writer.write(self.target, rows, rows_of(files), files if in_order else None)
        touched = [f for number, f in enumerate(files) if not in_order or number in done.changed]
        return Changed(done.added, done.counts, tuple(touched), feed=done.feed)

    def before(self, hit: str | None) -> dict[str, str]:
        """The columns that tell the feed what an updated row was; rows that are deleted come as they were."""
        if self.target.feed is None or hit is None:
            return {}
        return {
            self.names.before(number): f"CASE WHEN {hit} THEN {self.called}.{quoted(name)} END"
            for number, name in enumerate(self.target.schema.names)
        }

    def computed(
        self, texts: Mapping[str, str], marked: str, hit: str, values: dict[str, Value | Assigned]
    ) -> str:
        """The rows with the new values in columns of their own, which go into `values`: each is evaluated
        once, whatever is asked of it later. CASE, for a value must not be computed where it does not apply.
        """
        new = {name: self.names.value(number) for number, name in enumerate(texts)}
        listed = ", ".join(f"CASE WHEN {hit} THEN ({texts[name]}) END AS {new[name]}" for name in texts)
        frame = self.statement.run(f"SELECT *, {listed} FROM {marked}")
        kinds = {field.name: field.dataType for field in frame.schema.fields}
        for name, column in new.items():
            value = Value(column, types.arrow_type(kinds[column]))
            assigned = assign(value, self.target.schema.field(name), self.statement.is_ansi)
            kept = f"{self.called}.{quoted(name)}"
            values[name] = Assigned(
                f"CASE WHEN {hit} THEN {assigned.sql} ELSE {kept} END",
                None if assigned.bad is None else f"CASE WHEN {hit} THEN {assigned.bad} ELSE FALSE END",
            )
        return f"{self.statement.view(frame)} AS {self.called}"

    def _matching(self, files: Sequence[DataFile], condition: str) -> list[DataFile]:
        view = self.statement.view(self.statement.reader.files(self.source, files, self.names))
        refuse_chance_of(self.statement, condition, f"{view} AS {self.called}")
        sql = f"SELECT DISTINCT {self.names.file} FROM {view} AS {self.called} WHERE {condition}"
        frame = self.statement.run(sql)
        with explained():
            found = {row[0] for row in self.writer.session.run(frame.collect)}
        return [file for number, file in enumerate(files) if number in found]

    @cached_property
    def _pruning(self) -> Pruning:
        names = (self.source.name, self.source.name.rpartition(".")[2])
        return Pruning(self.statement, self.source, columns_in(self.source.schema, names))

    def _rows_where(self, view: str) -> str:
        return f"SELECT 1 FROM {view} AS {self.called} WHERE"


def named(target: Target, given: Mapping[str, exp.Expr]) -> dict[str, exp.Expr]:
    """Assignments by the table's spelling of its columns."""
    found = {column_of(target, name): value for name, value in given.items()}
    if len(found) != len(given):
        raise InvalidInput("UPDATE sets a column twice")
    return found


def column_of(target: Target, name: str) -> str:
    """The column of this name, ignoring case; InvalidInput if there is none."""
    found = [field.name for field in target.schema if field.name.lower() == name.lower()]
    if len(found) != 1:
        raise unknown_column(name, target.schema.names)
    return str(found[0])
