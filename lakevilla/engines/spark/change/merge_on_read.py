"""Changes of tables that may delete rows of files that stay: merge on read.

One job reads the rows that change, by the columns that it needs, writes their new values, and reports where
they were: what is deleted is just what is written anew, whatever the condition is. Files of which most rows
go are rewritten by a second job, which copies the rows that are left by their positions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from sqlglot import exp

from lakevilla.engines.spark.change.assignment import Assigned, Value
from lakevilla.engines.spark.change.copy_on_write import Change, Changed
from lakevilla.engines.spark.scan.pruning import refuse_chance_of
from lakevilla.engines.spark.types import quoted
from lakevilla.engines.spark.write import tasks
from lakevilla.engines.spark.write.writer import Done, NewRows, new_rows, rows_of
from lakevilla.files.bitmaps import Positions, joined
from lakevilla.files.deleted_rows import DeletedRows, is_worth_keeping
from lakevilla.files.parquet import FOOTER_BYTES, ParquetObject
from lakevilla.model import DataFile, Deletes, WrittenFile


@dataclass(frozen=True)
class MaskingChange(Change):
    """One changing statement on such a table."""

    def rewrite(
        self, files: Sequence[DataFile], where: exp.Expr | None, given: Mapping[str, exp.Expr], kind: int
    ) -> Changed:
        if where is None:
            return super().rewrite(files, where, given, kind)
        condition, names = self.statement.text(where), self.names
        view = self.statement.view(self.statement.reader.files(self.source, files, names))
        refuse_chance_of(self.statement, condition, f"{view} AS {self.called}")
        extra = {names.kind: f"{kind}", names.file: names.file, names.row: names.row}
        matching = f"{view} AS {self.called} WHERE {condition}"
        if kind == tasks.DELETED and self.target.feed is not None:
            # The rows are needed whole. They are in the table already: no rule of it is asked again.
            target = replace(self.target, checks={})
            rows = new_rows(self.statement, target, self._as_they_are(), matching, extra, names=names)
        elif kind == tasks.DELETED:
            listed = ", ".join(f"{sql} AS {name}" for name, sql in extra.items())
            rows = NewRows(self.statement.run(f"SELECT {listed} FROM {matching}"), (), names)
        else:
            matching = f"(SELECT * FROM {matching}) AS {self.called}"
            rows = self._updated(matching, given, {**extra, **self.before("TRUE")})
        if not files:
            return Changed()
        return self.settled(self.writer.write(self.target, rows, rows_of(files)), files)

    def settled(self, done: Done, files: Sequence[DataFile]) -> Changed:
        """Keep files that are worth keeping, with masked rows; the rows of the others are copied."""
        hits = [(files[number], rows) for number, rows in sorted(done.positions.items())]
        sizes = self.statement.environment.fan_out([partial(self._rows_of_file, file) for file, _ in hits])
        masked: list[DeletedRows] = []
        gone: list[tuple[DataFile, Positions]] = []
        for (file, rows), file_rows in zip(hits, sizes, strict=True):
            before = 0 if file.deletes is None else file.deletes.count
            if before is None or is_worth_keeping(len(rows), before, file_rows):
                masked.append(DeletedRows(file, rows, file_rows))
            else:
                gone.append((file, rows))
        left = [(f, rows) for f, rows in gone if len(rows) < (f.living_rows or len(rows) + 1)]
        copied = self._copied(left) if left else ()
        removed = tuple(file for file, _ in gone)
        return Changed(done.added + copied, done.counts, removed, tuple(masked), done.feed)

    def _updated(self, matching: str, given: Mapping[str, exp.Expr], extra: Mapping[str, str]) -> NewRows:
        texts = {name: self.statement.text(node) for name, node in given.items()}
        values = self._as_they_are()
        matching = self.computed(texts, matching, "TRUE", values)
        return new_rows(self.statement, self.target, values, matching, extra, names=self.names)

    def _as_they_are(self) -> dict[str, Value | Assigned]:
        return {
            field.name: Value(f"{self.called}.{quoted(field.name)}", field.type)
            for field in self.source.schema
        }

    def _rows_of_file(self, file: DataFile) -> int:
        """How many rows the file holds; from the file itself where the log does not say it."""
        if file.rows is not None:
            return file.rows
        store, key = self.source.open(file)
        return int(ParquetObject(store, key, file.size, FOOTER_BYTES).metadata.num_rows)

    def _copied(self, gone: Sequence[tuple[DataFile, Positions]]) -> tuple[WrittenFile, ...]:
        """The rows of these files that are left when those at the positions go."""
        files = [replace(file, deletes=_all_deleted(file, rows)) for file, rows in gone]
        view = self.statement.view(self.statement.reader.files(self.source, files, self.names))
        # They are in the table already: no rule of it is asked again.
        target = replace(self.target, checks={}, feed=None)
        source = f"{view} AS {self.called}"
        rows = new_rows(self.statement, target, self._as_they_are(), source, names=self.names)
        return self.writer.write(target, rows, rows_of(files)).added


def _all_deleted(file: DataFile, rows: Positions) -> Deletes:
    before = None if file.deletes is None else file.deletes.rows().to_numpy(zero_copy_only=False)
    deleted = rows if before is None else joined(before, rows)
    return Deletes(file.identity, len(deleted), lambda: pa.array(deleted, pa.int64()))
