"""MERGE into tables that may delete rows of files that stay.

Which clause applies to which row is found by the columns that the conditions need. Of files that stay, only
rows that get new values are read whole, each with the number of its source row and of its clause; so nothing
is decided twice. Files of which most rows go are rewritten, as MERGE does it elsewhere.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakevilla.engines.local.arrow import inward
from lakevilla.engines.local.change import ROW, Hits, Numbers, narrowed, portions, rows_of, whole_rows
from lakevilla.engines.local.merge import CLAUSE, NO_CLAUSE, SOURCE, Merge
from lakevilla.engines.local.rows import NewRows, checked, new_rows
from lakevilla.engines.local.translation.queries.scope import Reference
from lakevilla.model import DataFile
from lakevilla.predicates import Predicate

_PICK = "lv_pick"
_NO_SOURCE = -1


@dataclass(frozen=True)
class _Acting:
    """Rows of the target to which a clause applies, each once: their numbers, the rows of the source that
    they met, and the clauses."""

    rows: Numbers
    sources: Numbers
    clauses: Numbers

    def take(self, chosen: slice | np.ndarray) -> "_Acting":
        return _Acting(self.rows[chosen], self.sources[chosen], self.clauses[chosen])


class MaskingMerge(Merge):
    """One MERGE, merge on read."""

    def changed(
        self, files: Sequence[DataFile], predicate: Predicate, rewriting: NewRows, deletes: set[int]
    ) -> Iterator[pa.Table]:
        change = self.change
        sql, reference = self._matching()
        computing = self._computing()
        for portion in portions(change, reference, files, predicate):
            tables = {change.relation.sql: portion.table, self.source.sql: self.rows}
            acting = self._acting(change.run(sql, tables))
            fresh: list[tuple[Hits, _Acting]] = []
            mostly_gone, end = [], 0
            for hit in portion.hits(acting.rows):
                start, end = end, end + len(hit.rows)
                if hit.keep_file:
                    fresh.append(self._masked(hit, acting.take(slice(start, end)), deletes))
                else:
                    mostly_gone.append(hit.file)
            fresh = [(hit, some) for hit, some in fresh if len(hit.rows)]
            if fresh:
                yield self._new(fresh, computing)
            yield from super().changed(mostly_gone, predicate, rewriting, deletes)

    def _matching(self) -> tuple[str, Reference]:
        """The query for rows that met a row of the source or a clause, and the columns that it needs."""
        target, reference = narrowed(self.change.relation, self.change.source.schema)
        number, on = self.clause_of(target)
        joined = (
            f"SELECT {target.sql}.{ROW}, {self.source.sql}.{SOURCE}, {number} AS {CLAUSE} "
            f"FROM {rows_of(target)} LEFT JOIN {rows_of(self.source)} ON {on}"
        )
        return f"SELECT * FROM ({joined}) WHERE {SOURCE} IS NOT NULL OR {CLAUSE} <> {NO_CLAUSE}", reference

    def _computing(self) -> NewRows:
        """The query for new rows, from old ones with the numbers of their source rows and clauses."""
        target, name = self.change.relation, self.change.queries.fresh("j")
        joined = (
            f"SELECT * FROM {rows_of(target)} LEFT JOIN {rows_of(self.source)} "
            f"ON {target.sql}.{_PICK} = {self.source.sql}.{SOURCE}"
        )
        source, extra = f"({joined}) AS {name}", {ROW: f"{name}.{ROW}"}
        return new_rows(self.change.queries, self.change.target, self.values(name), source, extra)

    def _acting(self, result: pa.Table) -> _Acting:
        """Note which rows of the source met one of the target, and refuse what is ambiguous."""
        sources = result.column(1).fill_null(_NO_SOURCE).to_numpy()
        self.matched[sources[sources != _NO_SOURCE]] = True
        found = _Acting(result.column(0).to_numpy(), sources, result.column(2).to_numpy())
        found = found.take(found.clauses != NO_CLAUSE)
        self.refuse_two(found.rows[found.sources != _NO_SOURCE])
        return found.take(np.unique(found.rows, return_index=True)[1])

    def _masked(self, hit: Hits, acting: _Acting, deletes: set[int]) -> tuple[Hits, _Acting]:
        """Delete these rows where they are. Those of them that get new values."""
        updated = ~np.isin(acting.clauses, list(deletes))
        if self.change.feed.is_wanted and not updated.all():
            self.change.feed.deleted(whole_rows(self.change, [hit.only(~updated)]))
        self.change.masked.append(hit.deleted_rows)
        self.updated += int(updated.sum())
        self.deleted += int((~updated).sum())
        return hit.only(updated), acting.take(updated)

    def _new(self, fresh: Sequence[tuple[Hits, _Acting]], computing: NewRows) -> pa.Table:
        names = [output.sql for output in self.change.relation.outputs]
        before = whole_rows(self.change, [hit for hit, _ in fresh])
        old = inward(before, names).append_column(ROW, pa.array(np.arange(before.num_rows, dtype=np.int64)))
        picks, clauses = (
            pa.array(np.concatenate(numbers))
            for numbers in ([some.sources for _, some in fresh], [some.clauses for _, some in fresh])
        )
        numbered = old.append_column(_PICK, picks).append_column(CLAUSE, clauses)
        tables = {self.change.relation.sql: numbered, self.source.sql: self.rows}
        result = self.change.run(computing.sql, tables)
        new = checked(result, computing, self.change.target)
        if self.change.feed.is_wanted:
            self.change.feed.updated(before.take(result.column(len(computing.outputs))), new)
        return new
