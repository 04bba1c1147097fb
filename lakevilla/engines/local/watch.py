"""How far a statement has come: which of the files that it chose were read, or how many rows were written."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock

from lakevilla.engines.port import Source
from lakevilla.model import DataFile
from lakevilla.predicates import Predicate
from lakevilla.progress import Reporter, Work


class Watch:
    """Counts the files of sources that one statement reads, each file once."""

    def __init__(self, work: Work, counts_rows: bool = False) -> None:
        self._work = work
        self._counts_rows = counts_rows
        self._lock = Lock()
        self._known: dict[object, int] = {}
        """The bytes of the files that were chosen; 0 for those that were read."""

    def source(self, source: Source, chosen: Sequence[DataFile] = ()) -> Source:
        """The source, watched; `chosen` are files that it will read anyway."""
        self._choose(chosen)

        def files(predicate: Predicate) -> Sequence[DataFile]:
            found = source.files(predicate)
            self._choose(found)
            return found

        return replace(source, files=files, was_read=self._read)

    def sources(self, sources: Mapping[str, Source]) -> dict[str, Source]:
        """The sources of a query, watched."""
        return {key: self.source(source) for key, source in sources.items()}

    def add_rows(self, rows: int) -> None:
        """So many rows were written."""
        if self._counts_rows:
            self._work.add(rows)

    def _choose(self, files: Sequence[DataFile]) -> None:
        with self._lock:
            new = {f.identity: f.size for f in files if f.identity not in self._known}
            self._known.update(new)
        if new:
            self._work.expect(sum(new.values()))

    def _read(self, file: DataFile) -> None:
        with self._lock:
            size = self._known.get(file.identity, 0)
            self._known[file.identity] = 0
        self._work.add(size)


@contextmanager
def reading(reporter: Reporter, what: str) -> Iterator[Watch]:
    """Report the bytes of the files that a statement reads."""
    with reporter.work(what, "bytes", 0) as work:
        yield Watch(work)


@contextmanager
def writing(reporter: Reporter, what: str, reads: bool) -> Iterator[Watch]:
    """Report the files that an INSERT reads; the rows that it writes if it reads none."""
    with reporter.work(what, "bytes" if reads else "rows", 0 if reads else None) as work:
        yield Watch(work, counts_rows=not reads)
