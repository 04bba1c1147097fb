"""The engine that chooses: local for small work, Spark for what that cannot do or for large tables.

It implements `engines.port.Engine`. Spark starts when it is first needed. Data that was given, or the result
of a query, is written by the engine that made it.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from sqlglot import exp

from lakevilla.engines.local.result import Result
from lakevilla.engines.port import ADJACENT_LITERALS, Engine, MergeClauses, Rewritten, Source, Target
from lakevilla.errors import Unsupported
from lakevilla.model import DataFile, WrittenFile

R = TypeVar("R")

LARGE_BYTES = 1 << 30
"""Statements over tables that are larger than this together run on Spark."""

notices = logging.getLogger("lakevilla.notices")


class AutoEngine:
    """Statements on the local engine, and on Spark where that is better.

    `start` makes the Spark engine; None where Spark is not installed or cannot reach the lake's store.
    """

    def __init__(
        self, local: Engine, start: Callable[[], Engine] | None, large_bytes: int = LARGE_BYTES
    ) -> None:
        self._local = local
        self._start = start
        self._large_bytes = large_bytes
        self._spark: Engine | None = None

    @property
    def name(self) -> str:
        return "auto"

    @property
    def composes(self) -> bool:
        return self._spark is not None

    def read(self, source: Source) -> Any:
        return self._run([source], lambda engine: engine.read(source))

    def file_rows(self, source: Source, files: Sequence[DataFile]) -> Iterator[pa.Table]:
        return self._local.file_rows(source, files)

    def result(self, table: pa.Table) -> Any:
        return self._local.result(table)

    def query(self, query: exp.Query, sources: Mapping[str, Source], now_ms: int) -> Any:
        return self._run(sources.values(), lambda engine: engine.query(query, sources, now_ms))

    def columns_of(self, query: exp.Query, sources: Mapping[str, Source], now_ms: int) -> pa.Schema:
        return self._run((), lambda engine: engine.columns_of(query, sources, now_ms))

    def accepts(self, data: object) -> bool:
        return self._owner(data).accepts(data)

    def knows(self, name: str) -> bool:  # noqa: ARG002 - the port's signature
        # Either engine may run the statement, and both read tables of the lake alone.
        return False

    def schema_of(self, data: object, besides: Collection[str] = ()) -> pa.Schema:
        return self._owner(data).schema_of(data, besides)

    def append(self, target: Target, data: object) -> Rewritten:
        return self._owner(data).append(target, data)

    def insert(
        self,
        target: Target,
        query: exp.Query,
        columns: Sequence[str],
        sources: Mapping[str, Source],
        now_ms: int,
    ) -> Rewritten:
        return self._run(
            sources.values(), lambda engine: engine.insert(target, query, columns, sources, now_ms)
        )

    def overwrite(
        self, target: Target, source: Source, data: object, where: exp.Expr | None, now_ms: int
    ) -> Rewritten:
        owner = self._owner(data)
        if owner is self._spark:
            return owner.overwrite(target, source, data, where, now_ms)
        rows = data.toArrow() if isinstance(data, Result) else data

        def work(engine: Engine) -> Rewritten:
            own = data if engine is self._local else rows
            return engine.overwrite(target, source, own, where, now_ms)

        return self._run([source], work)

    def update(
        self,
        target: Target,
        source: Source,
        set: Mapping[str, exp.Expr],
        where: exp.Expr | None,
        sources: Mapping[str, Source],
        now_ms: int,
    ) -> Rewritten:
        return self._run(
            [source, *sources.values()],
            lambda engine: engine.update(target, source, set, where, sources, now_ms),
        )

    def delete(
        self,
        target: Target,
        source: Source,
        where: exp.Expr | None,
        sources: Mapping[str, Source],
        now_ms: int,
    ) -> Rewritten:
        return self._run(
            [source, *sources.values()],
            lambda engine: engine.delete(target, source, where, sources, now_ms),
        )

    def merge(
        self,
        target: Target,
        source: Source,
        using: object,
        clauses: MergeClauses,
        sources: Mapping[str, Source],
        now_ms: int,
    ) -> Rewritten:
        if not isinstance(using, exp.Query) and self._owner(using) is self._spark:
            return self._owner(using).merge(target, source, using, clauses, sources, now_ms)
        return self._run(
            [source, *sources.values()],
            lambda engine: engine.merge(target, source, using, clauses, sources, now_ms),
        )

    def rewrite(
        self, target: Target, source: Source, groups: Sequence[Sequence[DataFile]], order: Sequence[str]
    ) -> Sequence[tuple[WrittenFile, ...]]:
        return self._run([source], lambda engine: engine.rewrite(target, source, groups, order))

    def _run(self, sources: Iterable[Source], work: Callable[[Engine], R]) -> R:
        """Work on the local engine; on Spark if the tables are large, or if local refuses the statement."""
        size = sum(source.about_bytes() for source in sources)
        if size > self._large_bytes and self._start is not None:
            return work(self._on_spark(f"the tables have about {size / 2**30:,.1f} GiB"))
        try:
            return work(self._local)
        except Unsupported as error:
            if self._start is None or error.rule == ADJACENT_LITERALS:
                raise
            return work(self._on_spark(error.message.removesuffix("; use engine='spark'")))

    def _on_spark(self, why: str) -> Engine:
        if self._spark is None:
            assert self._start is not None, "checked by callers"
            self._spark = self._start()
        notices.info("Using Spark: %s", why)
        return self._spark

    def _owner(self, data: object) -> Engine:
        """The engine whose result this is; local for everything else."""
        of_spark = type(data).__module__.startswith("pyspark.")
        return self._spark if self._spark is not None and of_spark else self._local
