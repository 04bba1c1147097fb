"""What `lake.optimize` did."""

from collections.abc import Iterator
from dataclasses import dataclass

from lakevilla.display import Report
from lakevilla.maintenance.reports import Files, count_text

_NONE = Files()


@dataclass(frozen=True, slots=True, repr=False)
class OptimizeReport(Report):
    """What optimize did to one table.

    `before` and `after` are all files of the table, at the version that it began with and after it; other
    clients may have changed them meanwhile. `removed` and `added` are the files that it rewrote, and what it
    wrote. `versions` are those that it committed, none if there was nothing to do. `skipped` counts groups of
    files that it left alone, because other clients changed them meanwhile.
    """

    table: str
    before: Files
    after: Files
    removed: Files = _NONE
    added: Files = _NONE
    versions: tuple[int, ...] = ()
    skipped: int = 0

    def _lines(self) -> Iterator[str]:
        if not self.versions:
            yield f"{self.table}: nothing to rewrite ({self.before})"
        else:
            shown = ", ".join(map(str, self.versions))
            yield f"{self.table}: rewrote {self.removed} as {self.added}"
            yield f"  version {shown}: {self.after}, from {self.before}"
        if self.skipped:
            groups = count_text(self.skipped, "group")
            yield f"  left {groups} of files alone that other clients changed meanwhile: run it again"
