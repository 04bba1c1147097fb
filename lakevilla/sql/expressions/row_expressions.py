"""Expressions that are evaluated for one row at a time: those of UPDATE, DELETE and MERGE.

What looks at several rows, or makes several of one, has no meaning there: its result would depend on which
rows are read together. Delta and Iceberg refuse it as well. Subqueries are queries of their own.
"""

from collections.abc import Iterator, Mapping

from sqlglot import exp

from lakevilla.errors import InvalidInput
from lakevilla.sql.dialect import spark_text
from lakevilla.sql.statements import MergeClauses


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


_AGGREGATES = _names("""
    any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor bool_and
    bool_or collect_list collect_set corr count count_if count_min_sketch covar_pop covar_samp every
    first first_value grouping grouping_id histogram_numeric hll_sketch_agg kurtosis last last_value
    listagg max max_by mean median min min_by mode percentile percentile_approx percentile_cont
    percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy
    regr_syy skewness some std stddev stddev_pop stddev_samp string_agg sum try_avg try_sum var_pop
    var_samp variance
""")
_TIME_WINDOWS = _names("session_window window window_time")
_GENERATORS = _names("""
    explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack
""")


def refuse_beyond_rows(*expressions: exp.Expr | None) -> None:
    """InvalidInput for an expression with a window function, an aggregate or a generator."""
    for expression in expressions:
        for node in () if expression is None else _outside_queries(expression):
            kind = _beyond_rows(node)
            if kind is not None:
                raise InvalidInput(
                    f"{spark_text(node)!r} is {kind}, and UPDATE, DELETE and MERGE evaluate expressions for "
                    "each row alone: compute it in a query, and MERGE from that"
                )


def refuse_in_merge(clauses: MergeClauses) -> None:
    """The same for all expressions of a MERGE."""
    changes = (*clauses.matched, *clauses.not_matched_by_source)
    refuse_beyond_rows(clauses.on, *(clause.condition for clause in changes))
    refuse_beyond_rows(*(clause.condition for clause in clauses.not_matched))
    for given in (*(clause.set for clause in changes), *(clause.values for clause in clauses.not_matched)):
        if isinstance(given, Mapping):
            refuse_beyond_rows(*given.values())


def _outside_queries(expression: exp.Expr) -> Iterator[exp.Expr]:
    found: Iterator[exp.Expr] = expression.walk(prune=lambda node: isinstance(node, exp.Query))
    return (node for node in found if not isinstance(node, exp.Query))


def _beyond_rows(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Window):
        return "a window function"
    name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
    if isinstance(node, exp.AggFunc) or name in _AGGREGATES:
        return "an aggregate"
    if name in _TIME_WINDOWS:
        return "a time window"
    return "a generator" if isinstance(node, exp.UDTF) or name in _GENERATORS else None
