"""Which rows of a table a statement can concern, as a predicate that can be asked of files.

What a literal means depends on the session: its time zone, ANSI mode, default types. So Spark itself is
asked: it plans the statement over the table, and the filters of its scan are the predicate, with literals
as this session reads them. Nothing runs for that. Without a local JVM (Spark Connect) plans are out of
reach; then only comparisons count that mean the same in every session, and all else may be anything.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from sqlglot import exp

from lakevilla.engines.port import Source
from lakevilla.engines.spark.failures import explained
from lakevilla.engines.spark.scan.filters import predicate_of as predicate_of_filters
from lakevilla.engines.spark.scan.queries import Statement
from lakevilla.engines.spark.session.connect import is_connect
from lakevilla.engines.spark.session.jvm import driver_side
from lakevilla.errors import InvalidInput
from lakevilla.predicates import ANYTHING, NOTHING, Predicate, disjunction
from lakevilla.sql.expressions.predicate_extraction import Resolve, predicate_of, predicate_unless

_BY_CHANCE = {"rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle"} | {
    "monotonically_increasing_id",
    "spark_partition_id",
    "input_file_name",
}
_AGGREGATED_CHANCE = "AGGREGATE_FUNCTION_WITH_NONDETERMINISTIC_EXPRESSION"


@dataclass(frozen=True)
class Pruning:
    """Asks what a statement needs of its target. `resolve` finds the target's columns in expressions."""

    statement: Statement
    source: Source
    resolve: Resolve

    @property
    def plans(self) -> bool:
        """Whether Spark is asked, which then finds mistakes in conditions, too."""
        return driver_side(self.statement.reader.session) is not None

    def matching(self, condition: exp.Expr | None, over: Callable[[str], str]) -> Predicate:
        """What every row of the target satisfies for which the condition may be true.

        `over` makes the text of a query from the target's relation and the condition's text.
        """
        if condition is None:
            return ANYTHING
        refuse_chance(condition)
        text = self.statement.text(condition)
        found = self._planned(lambda view: f"{over(view)} {text}")
        return predicate_of(certain(condition, self.resolve), self.resolve) if found is None else found

    def remaining(self, condition: exp.Expr, over: Callable[[str], str]) -> Predicate:
        """What every row of the target satisfies for which the condition may be false or null."""
        text = self.statement.text(condition)
        found = self._planned(lambda view: f"{over(view)} NOT ({text}) OR ({text}) IS NULL")
        return predicate_unless(certain(condition, self.resolve), self.resolve) if found is None else found

    def _planned(self, sql: Callable[[str], str]) -> Predicate | None:
        """The predicate of the target's scans in Spark's plan of a query; None if there is no JVM."""
        side = driver_side(self.statement.reader.session)
        if side is None:
            return None
        mark, view = self._marked
        frame = self.statement.run(sql(view))
        with explained():
            found = json.loads(side.scans(frame._jdf, mark))
        if not found["deterministic"]:
            raise by_chance()
        if not found["scans"]:
            return NOTHING if found["empty"] else ANYTHING
        scans = [predicate_of_filters(json.dumps(filters), self.source.schema) for filters in found["scans"]]
        return disjunction(scans)

    @cached_property
    def _marked(self) -> tuple[str, str]:
        """A mark, and a view of the source in whose plans it is found. Both serve every plan asked for."""
        mark = self.statement.environment.new_id()
        return mark, self.statement.view(self.statement.reader.planned(self.source, mark))


def is_deterministic(frame: Any) -> bool:
    """Whether the plan is deterministic, as far as Spark knows."""
    return is_connect(frame.sparkSession) or bool(frame._jdf.queryExecution().analyzed().deterministic())


def refuse_chance_of(statement: Statement, value: str, rows: str) -> None:
    """InvalidInput if the value over these rows is not deterministic; both are SQL. For Spark Connect, where
    the plan is out of reach: Spark refuses to aggregate such values when it analyses the text. Any other
    error is left to the statement itself, which meets it too."""
    if "(" not in value or not is_connect(statement.reader.session):
        return
    try:
        statement.run(f"SELECT max({value}) FROM {rows}")
    except InvalidInput as error:
        cause = error.__cause__
        if isinstance(cause, PySparkException) and cause.getCondition() == _AGGREGATED_CHANCE:
            raise by_chance() from error


def by_chance() -> InvalidInput:
    """The error for a condition whose value is not determined by the rows."""
    return InvalidInput(
        "the condition of an UPDATE, DELETE or MERGE must be deterministic, because it is evaluated more "
        "than once: compute such a value into a column first, or in the query that is the source of a MERGE"
    )


def refuse_chance(*conditions: exp.Expr | None) -> None:
    """InvalidInput for functions that are known to give another value each time.

    Where Spark's plan is in reach, it knows better, also of the user's own functions.
    """
    for condition in conditions:
        for node in condition.find_all(exp.Anonymous, exp.TableSample) if condition is not None else ():
            # Spark draws another sample each time it reads the text, and calls the plan deterministic.
            if isinstance(node, exp.TableSample) or str(node.this).lower() in _BY_CHANCE:
                raise by_chance()


def certain(condition: exp.Expr, resolve: Resolve) -> exp.Expr:
    """The condition, with everything whose meaning depends on the session replaced by an unknown."""
    if isinstance(condition, exp.Paren | exp.Not):
        return type(condition)(this=certain(condition.this, resolve))
    if isinstance(condition, exp.And | exp.Or):
        return type(condition)(
            this=certain(condition.this, resolve), expression=certain(condition.expression, resolve)
        )
    if isinstance(condition, exp.Is) and isinstance(condition.expression, exp.Null):
        return condition
    if isinstance(condition, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE | exp.Between | exp.In):
        sides = [node for value in condition.args.values() for node in _nodes(value)]
        columns = [found for node in sides if (found := resolve(node)) is not None]
        rest = [node for node in sides if resolve(node) is None]
        if len(columns) == 1 and rest and all(_plain(node, columns[0].type) for node in rest):
            return condition
    return exp.Anonymous(this="unknown")


def _nodes(value: object) -> list[exp.Expr]:
    if isinstance(value, list):
        return [node for item in value for node in _nodes(item)]
    return [value] if isinstance(value, exp.Expr) else []


def _plain(node: exp.Expr, column: pa.DataType) -> bool:
    """Whether a comparison of the literal with such a column means the same in every session."""
    if isinstance(node, exp.Paren | exp.Neg):
        return pa.types.is_integer(column) and _plain(node.this, column)
    if not isinstance(node, exp.Literal):
        return False
    if pa.types.is_integer(column):
        return not node.is_string and node.name.isdecimal() and len(node.name) <= 18
    return bool(pa.types.is_string(column)) and bool(node.is_string)
