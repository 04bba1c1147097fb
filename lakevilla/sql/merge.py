"""MERGE INTO, from sqlglot's tree to clauses."""

from collections.abc import Mapping

from sqlglot import exp

from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.sql.dialect import spark_text
from lakevilla.sql.statements import MatchedClause, Merge, MergeClauses, NotMatchedClause
from lakevilla.sql.tables import table_name, tables_of


def merge(tree: exp.Merge) -> Merge:
    """The merge, its source as a query, its clauses in the order of the text."""
    target, using = tree.this, tree.args["using"]
    target_alias, source_alias = target.alias_or_name, using.alias_or_name
    query = _source(using)
    if tree.args.get("with_") is not None:
        query.set("with_", tree.args["with_"])
    matched, not_matched, by_source = [], [], []
    for when in tree.args["whens"].expressions:
        if when.args.get("source"):
            by_source.append(_matched(when, target_alias))
        elif when.args.get("matched"):
            matched.append(_matched(when, target_alias))
        else:
            not_matched.append(_not_matched(when, target_alias))
    if any(clause.set == "*" for clause in by_source):
        raise InvalidInput("WHEN NOT MATCHED BY SOURCE cannot use UPDATE SET *: there is no source row")
    for clauses in (matched, not_matched, by_source):
        if any(clause.condition is None for clause in clauses[:-1]):
            raise InvalidInput("only the last clause of its kind in a MERGE may be without a condition")
    on = tree.args["on"]
    bound = MergeClauses(target_alias, source_alias, on, tuple(matched), tuple(not_matched), tuple(by_source))
    return Merge(table_name(target), query, bound, tables_of(query, on, *_expressions(bound)))


def _source(using: exp.Expr) -> exp.Query:
    if isinstance(using, exp.Subquery) and isinstance(using.this, exp.Query):
        query: exp.Query = using.this
        return query
    if isinstance(using, exp.Table | exp.Values):
        return exp.select("*").from_(using)
    raise Unsupported(f"MERGE cannot read from {spark_text(using)}")


def _matched(when: exp.When, alias: str) -> MatchedClause:
    then, condition = when.args["then"], when.args.get("condition")
    if isinstance(then, exp.Var) and then.name.upper() == "DELETE":
        return MatchedClause(condition, None)
    if not isinstance(then, exp.Update):
        raise InvalidInput(f"WHEN MATCHED takes UPDATE or DELETE, found {spark_text(then)}")
    if len(then.expressions) == 1 and isinstance(then.expressions[0], exp.Star):
        return MatchedClause(condition, "*")
    pairs = []
    for assignment in then.expressions:
        if not isinstance(assignment, exp.EQ):
            raise InvalidInput(f"SET needs column = value; found {spark_text(assignment)}")
        pairs.append((_column(assignment.this, alias), assignment.expression))
    return MatchedClause(condition, _distinct(pairs))


def _not_matched(when: exp.When, alias: str) -> NotMatchedClause:
    then, condition = when.args["then"], when.args.get("condition")
    if not isinstance(then, exp.Insert):
        raise InvalidInput(f"WHEN NOT MATCHED takes INSERT, found {spark_text(then)}")
    if isinstance(then.this, exp.Star):
        return NotMatchedClause(condition, "*")
    if not isinstance(then.this, exp.Tuple) or then.expression is None:
        raise InvalidInput("INSERT in a MERGE needs (columns) VALUES (values), or *")
    columns, values = then.this.expressions, then.expression.expressions
    if len(columns) != len(values):
        raise InvalidInput(f"INSERT in a MERGE names {len(columns)} columns and gives {len(values)} values")
    return NotMatchedClause(
        condition, _distinct([(_column(c, alias), v) for c, v in zip(columns, values, strict=True)])
    )


def _column(column: exp.Expr, alias: str) -> str:
    names = [part.name for part in column.parts] if isinstance(column, exp.Column) else [column.name]
    if len(names) > 1 and names[0].lower() == alias.lower():
        names = names[1:]
    if len(names) > 1:
        raise Unsupported(
            f"cannot set {'.'.join(names)!r}: fields of structs cannot be set alone; set the whole column"
        )
    return names[0]


def _distinct(pairs: list[tuple[str, exp.Expr]]) -> Mapping[str, exp.Expr]:
    assigned = dict(pairs)
    if len({name.lower() for name in assigned}) != len(pairs):
        raise InvalidInput("a clause of the MERGE sets a column twice")
    return assigned


def _expressions(clauses: MergeClauses) -> list[exp.Expr | None]:
    changes = (*clauses.matched, *clauses.not_matched_by_source)
    every = [clause.condition for clause in changes]
    every += [clause.condition for clause in clauses.not_matched]
    assigned = [*(clause.set for clause in changes), *(clause.values for clause in clauses.not_matched)]
    for expressions in assigned:
        if expressions is not None and expressions != "*":
            every.extend(expressions.values())
    return every
