"""What the translation reads of each kind of node; a node that says more is refused."""

from sqlglot import exp

_READ: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Literal: ("this", "is_string"),
    exp.Identifier: ("this", "quoted"),
    exp.Column: ("this", "table", "db", "catalog"),
    exp.Div: ("this", "expression", "typed", "safe"),
    exp.Cast: ("this", "to"),
    exp.TryCast: ("this", "to", "safe"),
    exp.Between: ("this", "low", "high"),
    exp.In: ("this", "expressions", "query"),
    exp.Case: ("this", "ifs", "default"),
    exp.If: ("this", "true", "false"),
    exp.Trim: ("this", "expression", "position"),
    exp.Substring: ("this", "start", "length"),
    exp.StrPosition: ("this", "substr"),
    exp.Bracket: ("this", "expressions"),
    exp.Concat: ("expressions", "safe", "coalesce"),
    exp.DPipe: ("this", "expression", "safe"),
    exp.Anonymous: ("this", "expressions"),
    exp.Window: ("this", "partition_by", "order", "spec", "alias", "over"),
    exp.Subquery: ("this", "order", "limit", "offset", "with_"),
    exp.Count: ("this", "big_int"),
}


def parts_read(kind: type[exp.Expr]) -> tuple[str, ...]:
    """The parts of such a node that its rule reads."""
    return _READ.get(kind, ("this", "expression"))
