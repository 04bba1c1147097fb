"""Clauses of queries and expressions that the grammar reads and Spark SQL does not have.

The grammar is that of many dialects: it reads `LIMIT 1 BY x`, `FETCH FIRST 1 ROW WITH TIES`, or a window
frame with EXCLUDE. An engine, or the text that is written for it, would leave out what it does not know,
and give other rows. So each kind of node has a list of what it may say; all else is refused by name, for
both engines alike. An engine may refuse more.
"""

from sqlglot import exp

from lakevilla.errors import Unsupported
from lakevilla.sql.script.places import mark

_MODIFIERS = frozenset({"with_", "order", "sort", "cluster", "distribute", "limit", "offset"})
"""What may follow every query."""

_PARTS: dict[type[exp.Expr], frozenset[str]] = {
    exp.With: frozenset({"expressions", "recursive"}),
    exp.CTE: frozenset({"this", "alias"}),
    exp.Select: _MODIFIERS
    | {"expressions", "hint", "distinct", "from_", "laterals", "joins", "where", "group", "having"}
    | {"windows"},
    exp.Union: _MODIFIERS | {"this", "expression", "distinct"},
    exp.Except: _MODIFIERS | {"this", "expression", "distinct"},
    exp.Intersect: _MODIFIERS | {"this", "expression", "distinct"},
    exp.Subquery: _MODIFIERS | {"this", "alias", "laterals", "joins", "pivots", "sample"},
    exp.Values: frozenset({"expressions", "alias", "order", "limit", "offset", "pivots"}),
    exp.Table: frozenset(
        {"this", "db", "catalog", "alias", "laterals", "joins", "pivots", "version", "sample"}
    ),
    exp.TableAlias: frozenset({"this", "columns"}),
    exp.Version: frozenset({"this", "kind", "expression"}),
    exp.TableSample: frozenset(
        {"percent", "size", "seed", "bucket_numerator", "bucket_denominator", "bucket_field"}
    ),
    exp.Pivot: frozenset({"alias", "expressions", "fields", "unpivot", "columns", "include_nulls"})
    # How the grammar itself names the columns.
    | {"pivot_column_naming"},
    exp.PivotAlias: frozenset({"this", "alias"}),
    exp.UnpivotColumns: frozenset({"this", "expressions"}),
    exp.From: frozenset({"this"}),
    exp.Join: frozenset({"this", "on", "side", "kind", "using", "method"}),
    exp.Lateral: frozenset({"this", "view", "outer", "alias"}),
    exp.Where: frozenset({"this"}),
    exp.Having: frozenset({"this"}),
    exp.Group: frozenset({"expressions", "grouping_sets", "cube", "rollup", "all"}),
    exp.Rollup: frozenset({"expressions"}),
    exp.Cube: frozenset({"expressions"}),
    exp.GroupingSets: frozenset({"expressions"}),
    exp.Order: frozenset({"expressions"}),
    exp.Sort: frozenset({"expressions"}),
    exp.Cluster: frozenset({"expressions"}),
    exp.Distribute: frozenset({"expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Limit: frozenset({"expression"}),
    exp.Fetch: frozenset({"direction", "count", "limit_options"}),
    exp.LimitOptions: frozenset({"rows"}),
    exp.Offset: frozenset({"expression"}),
    exp.Distinct: frozenset({"expressions"}),
    exp.Star: frozenset({"except_"}),
    exp.Hint: frozenset({"expressions"}),
    exp.QueryTransform: frozenset(exp.QueryTransform.arg_types),
    exp.Alias: frozenset({"this", "alias"}),
    exp.Aliases: frozenset({"this", "expressions"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Column: frozenset({"this", "table", "db", "catalog"}),
    exp.Anonymous: frozenset({"this", "expressions"}),
    exp.Filter: frozenset({"this", "expression"}),
    exp.WithinGroup: frozenset({"this", "expression"}),
    exp.IgnoreNulls: frozenset({"this"}),
    exp.RespectNulls: frozenset({"this"}),
    exp.Window: frozenset({"this", "partition_by", "order", "spec", "alias", "over"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side"}),
    exp.Lambda: frozenset({"this", "expressions"}),
    exp.Kwarg: frozenset({"this", "expression"}),
    exp.PropertyEQ: frozenset({"this", "expression"}),
    exp.Tuple: frozenset({"expressions"}),
    exp.Bracket: frozenset({"this", "expressions"}),
    exp.In: frozenset({"this", "expressions", "query"}),
    exp.Between: frozenset({"this", "low", "high", "symmetric"}),
    exp.Exists: frozenset({"this"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.TryCast: frozenset({"this", "to", "safe"}),
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.If: frozenset({"this", "true", "false"}),
    exp.Trim: frozenset({"this", "expression", "position"}),
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.StrPosition: frozenset({"this", "substr", "position"}),
    exp.Interval: frozenset({"this", "unit"}),
    exp.IntervalSpan: frozenset({"this", "expression"}),
    exp.DataType: frozenset({"this", "expressions", "nested", "collate"}),
    exp.DataTypeParam: frozenset({"this"}),
    exp.ColumnDef: frozenset({"this", "kind", "constraints"}),
}

_OPERATOR = frozenset({"this", "expression", "negate", "typed", "safe"})
"""What an operator may say that has no entry of its own. The grammar sets the last two itself."""

_UNMEANT: dict[type[exp.Expr], str] = {
    exp.Unnest: "UNNEST (it is explode there)",
    exp.AtTimeZone: "AT TIME ZONE (it is from_utc_timestamp there)",
    exp.HavingMax: "HAVING MAX or HAVING MIN in an aggregate",
    exp.Final: "FINAL",
}
"""Nodes in whose place the text for Spark would have something else."""

_SET_IF_FALSE = {(exp.CTE, "materialized"), (exp.Lateral, "cross_apply"), (exp.Window, "first")}
"""Parts whose False is a clause of its own."""

_WORDS: dict[str, str] = {
    "at_before": "AT or BEFORE after a table",
    "by_name": "UNION BY NAME",
    "connect": "CONNECT BY",
    "cross_apply": "CROSS APPLY or OUTER APPLY",
    "exclude": "EXCLUDE in a window frame",
    "first": "FROM FIRST or FROM LAST",
    "for_": "FOR XML",
    "global_": "GLOBAL",
    "hints": "hints after a table",
    "is_global": "GLOBAL IN",
    "join_mark": "(+) after a column",
    "key_expressions": "USING KEY in WITH",
    "kind": "SELECT AS STRUCT or SELECT AS VALUE",
    "limit_options": "LIMIT with PERCENT or WITH TIES",
    "locks": "FOR UPDATE or FOR SHARE",
    "match": "MATCH_RECOGNIZE",
    "match_condition": "MATCH_CONDITION of a join",
    "materialized": "MATERIALIZED in WITH",
    "on": "DISTINCT ON",
    "operation_modifiers": "modifiers of SELECT such as SQL_CALC_FOUND_ROWS",
    "ordinality": "WITH ORDINALITY",
    "percent": "FETCH with PERCENT",
    "rows_from": "ROWS FROM",
    "sample": "TABLESAMPLE behind an alias",
    "scalar": "WITH of a value",
    "search": "SEARCH or CYCLE in WITH",
    "cycle": "SEARCH or CYCLE in WITH",
    "siblings": "ORDER SIBLINGS BY",
    "totals": "GROUP BY WITH TOTALS",
    "unnest": "IN UNNEST",
    "when": "AT or BEFORE after a table",
    "with_fill": "ORDER BY WITH FILL",
    "with_ties": "FETCH with WITH TIES",
}
_OF_KINDS: dict[tuple[type[exp.Expr], str], str] = {
    (exp.Limit, "expressions"): "LIMIT BY",
    (exp.Limit, "this"): "LIMIT inside an aggregate",
    (exp.Offset, "expressions"): "OFFSET BY",
    (exp.Order, "this"): "ORDER BY inside an aggregate",
    (exp.Table, "limit"): "LIMIT after the name of a table",
    (exp.Cast, "format"): "CAST with FORMAT",
    (exp.Cast, "default"): "CAST with DEFAULT",
    (exp.Union, "kind"): "INNER or OUTER before UNION",
    (exp.Union, "side"): "LEFT, RIGHT or FULL before UNION",
    (exp.Star, "replace"): "* REPLACE",
    (exp.Star, "rename"): "* RENAME",
    (exp.Star, "ilike"): "* ILIKE",
}
_OF_SPARK: dict[tuple[type[exp.Expr], str], str] = {
    (exp.Table, "partition"): "PARTITION after the name of a table is not supported: give its columns like "
    "others, or write INSERT INTO ... REPLACE WHERE",
    (exp.ColumnDef, "position"): "FIRST and AFTER are not supported: new columns come last",
}
"""What Spark SQL has, and LakeVilla has not."""
_KEYS = ("expressions", "grouping_sets", "cube", "rollup")


def refuse_unknown_clauses(tree: exp.Expr) -> None:
    """Unsupported for what the tree says and Spark SQL cannot say. Hints never change a result."""
    for node in tree.walk(prune=lambda node: isinstance(node, exp.Hint)):
        kind = type(node)
        if kind in _UNMEANT:
            _refuse(node, _UNMEANT[kind])
        known = _PARTS.get(kind) or (_OPERATOR if isinstance(node, exp.Binary) else None)
        if known is None:
            continue
        for part, value in node.args.items():
            if part not in known and (value or (value is False and (kind, part) in _SET_IF_FALSE)):
                if (kind, part) in _OF_SPARK:
                    raise _marked(node, _OF_SPARK[kind, part])
                plain = part.rstrip("_").upper().replace("_", " ")
                _refuse(node, _OF_KINDS.get((kind, part)) or _WORDS.get(part, plain))
        _refuse_odd_parts(node)


def _refuse_odd_parts(node: exp.Expr) -> None:
    """Unsupported for parts that may stand alone, or with another value."""
    match node:
        case exp.Group() if node.args.get("all") is False:
            _refuse(node, "GROUP BY DISTINCT")
        case exp.Group() if node.args.get("all") and any(node.args.get(key) for key in _KEYS):
            _refuse(node, "GROUP BY ALL together with a list")
        case exp.Fetch() if node.args.get("count") is None:
            _refuse(node, "FETCH without a number")
        case exp.Window() if str(node.args.get("over") or "OVER").upper() != "OVER":
            _refuse(node, f"{node.args['over']} after an aggregate")


def _refuse(node: exp.Expr, what: str) -> None:
    raise _marked(node, f"Spark SQL has no {what}, and LakeVilla has none either")


def _marked(node: exp.Expr, what: str) -> Unsupported:
    error = Unsupported(what)
    mark(error, node)
    return error
