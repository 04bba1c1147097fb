"""Optimize one table: plan once, then rewrite group after group, each commit a transaction of its own.

The plan is made once, so that no file is rewritten twice by one run, and a writer meets each of its commits
at most once. A group that other clients changed meanwhile loses the files that are gone.
"""

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from lakevilla.answers import Receipt
from lakevilla.errors import Conflict, InvalidInput
from lakevilla.formats.port import Snapshot
from lakevilla.maintenance.optimize.plan import Group, Wanted, plan, units
from lakevilla.maintenance.optimize.report import OptimizeReport
from lakevilla.maintenance.queue_survey import LakeView
from lakevilla.maintenance.reports import Files
from lakevilla.model import DataFile
from lakevilla.predicates import ANYTHING
from lakevilla.sql.dialect import spark_text
from lakevilla.sql.expressions.predicate_extraction import columns_in, predicate_of
from lakevilla.sql.words.suggestions import unknown_column
from lakevilla.transaction.statements.compaction import Compaction
from lakevilla.transaction.statements.inputs import condition
from lakevilla.transaction.statements.statement import Statement

logger = logging.getLogger("lakevilla.maintenance")

TARGET_BYTES = 128 * 1024 * 1024
"""The size of new files where neither the call nor the table says another."""
_TARGETS = ("delta.targetFileSize", "write.target-file-size-bytes")
_TRIES = 5

_SIZE = re.compile(r"(\d+)\s*([kmgt]?)i?b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True)
class OptimizeOptions:
    """What `lake.optimize` was called with."""

    where: str | None = None
    zorder_by: Sequence[str] = ()
    target_size: int | str | None = None
    full: bool = False


Commit = Callable[[Statement], Receipt]
"""Runs one statement as a transaction."""


def optimize(view: LakeView, commit: Commit, name: str, options: OptimizeOptions) -> OptimizeReport:
    """Rewrite the table's files so that they are quick to read."""
    pinned = view.catalog.pin(name, view.meter)
    snapshot = pinned.snapshot
    snapshot.refuse_writes()
    where = condition(options.where)
    wanted = _wanted(snapshot, options)
    everything = snapshot.files(ANYTHING)
    groups = plan(everything if where is None else _selected(snapshot, where), wanted)
    parameters = {
        "predicate": json.dumps([] if where is None else [spark_text(where)], ensure_ascii=False),
        "zOrderBy": json.dumps(list(wanted.order)),
        "targetSize": str(wanted.target_bytes),
    }
    removed, added, versions, skipped = Files(), Files(), list[int](), 0
    for unit in units(groups):
        done = _rewrite(commit, pinned.ref.name, unit, wanted, parameters)
        removed, added = removed + done.removed, added + done.added
        versions += [] if done.version is None else [done.version]
        skipped += done.skipped
    after = view.catalog.pin(name, view.meter).snapshot.files(ANYTHING) if versions else everything
    return OptimizeReport(
        pinned.ref.name,
        before=_total(file.size for file in everything),
        after=_total(file.size for file in after),
        removed=removed,
        added=added,
        versions=tuple(versions),
        skipped=skipped,
    )


@dataclass(frozen=True)
class _Done:
    removed: Files
    added: Files
    version: int | None
    skipped: int


def _rewrite(
    commit: Commit, name: str, unit: Sequence[Group], wanted: Wanted, parameters: Mapping[str, str]
) -> _Done:
    """One commit. Where the lake's features cannot redo it, it is run again, on what is left."""
    identities = [tuple(file.identity for file in group) for group in unit]
    for left in reversed(range(_TRIES)):
        compaction = Compaction(name, identities, wanted.target_bytes, wanted.order, parameters)
        try:
            receipt = commit(Statement(compaction.run, tables=(name,)))
        except Conflict as error:
            if not left:
                raise
            logger.info("optimizing %r again: %s", name, error)
        else:
            break
    return _Done(
        _total(file.size for rewrite in compaction.done for file in rewrite.removed),
        _total(file.size for rewrite in compaction.done for file in rewrite.added),
        next(iter(receipt.versions.values()), None),
        len(unit) - len(compaction.done),
    )


def _wanted(snapshot: Snapshot, options: OptimizeOptions) -> Wanted:
    given = options.zorder_by
    columns = (given,) if isinstance(given, str) else tuple(given)
    order = tuple(_clustering_column(snapshot, column) for column in columns)
    if len(set(order)) != len(order):
        raise InvalidInput(f"ZORDER BY names a column twice: {', '.join(columns)}")
    return Wanted(_target_bytes(snapshot, options.target_size), options.full, order)


def _clustering_column(snapshot: Snapshot, name: str) -> str:
    schema = snapshot.schema
    found = [field.name for field in schema if field.name.lower() == name.lower()]
    if len(found) != 1:
        raise unknown_column(name, schema.names)
    column: str = found[0]
    if column in snapshot.partition_columns or column in _identity_columns(snapshot):
        raise InvalidInput(
            f"cannot cluster by {column!r}: all rows of a file have the same value of a partition column",
            column=column,
        )
    if pa.types.is_nested(schema.field(column).type):
        raise InvalidInput(
            f"cannot cluster by {column!r}: values of type {schema.field(column).type} have no order",
            column=column,
        )
    return column


def _identity_columns(snapshot: Snapshot) -> set[str]:
    fields = snapshot.partitioning.fields
    return {field.source[0] for field in fields if field.transform == "identity" and len(field.source) == 1}


def _target_bytes(snapshot: Snapshot, given: int | str | None) -> int:
    if given is None:
        known = [snapshot.properties[name] for name in _TARGETS if name in snapshot.properties]
        # A table's own value may be anything that another client has put there.
        return next((size for text in known if (size := _size(text))), TARGET_BYTES)
    size = _size(str(given))
    if not size:
        raise InvalidInput(f"target_size is a number of bytes, or a text such as '128 MB'; found {given!r}")
    return size


def _size(text: str) -> int:
    """The bytes of a size such as 104857600 or 100mb; 0 if it is none."""
    found = _SIZE.fullmatch(text.strip())
    return 0 if found is None else int(found[1]) * _UNITS[found[2].lower()]


def _selected(snapshot: Snapshot, where: exp.Expr) -> Sequence[DataFile]:
    if where.find(exp.Query):
        raise InvalidInput("the condition of OPTIMIZE cannot hold a subquery")
    resolve = columns_in(snapshot.schema)
    for column in where.find_all(exp.Column):
        if resolve(column) is None:
            raise unknown_column(column.name, snapshot.schema.names)
    return snapshot.files(predicate_of(where, resolve))


def _total(sizes: Iterable[int]) -> Files:
    found = list(sizes)
    return Files(len(found), sum(found))
