"""Clauses that the grammar allows and no statement here means.

The grammar is that of many dialects. A clause that is read and then ignored changes what a statement does:
`DELETE ... LIMIT 1` would delete everything. So each kind of statement lists what it means, and any other
clause is refused.
"""

from sqlglot import exp

from lakevilla.errors import Unsupported

_MEANT: dict[type[exp.Expr], tuple[str, frozenset[str]]] = {
    exp.Insert: (
        "INSERT",
        frozenset({"this", "expression", "with_", "overwrite", "by_name", "where", "hint"}),
    ),
    exp.Update: ("UPDATE", frozenset({"this", "expressions", "where", "with_", "from_", "hint"})),
    exp.Delete: ("DELETE", frozenset({"this", "where", "with_", "using", "hint"})),
    exp.Merge: ("MERGE", frozenset({"this", "using", "on", "whens", "with_"})),
    exp.Drop: ("DROP", frozenset({"kind", "tables", "exists"})),
    exp.TruncateTable: ("TRUNCATE TABLE", frozenset({"expressions"})),
}

_OF_TARGETS = frozenset({"this", "db", "catalog", "alias", "partition"})
"""What the name of a changed table may have; PARTITION has an error of its own."""

_OF_ACTIONS: dict[type[exp.Expr], frozenset[str]] = {
    exp.Update: frozenset({"expressions"}),
    exp.Insert: frozenset({"this", "expression"}),
}

_WORDS = {
    "conflict": "ON CONFLICT",
    "alternative": "OR ...",
    "order": "ORDER BY",
    "joins": "JOIN",
    "tables": "a list of tables",
    "exists": "IF EXISTS",
    "option": "RESTART, CONTINUE, CASCADE or RESTRICT",
    "sample": "TABLESAMPLE",
    "version": "a version",
}


def refuse_extra_clauses(tree: exp.Expr) -> None:
    """Unsupported for a clause that the statement would ignore."""
    if type(tree) not in _MEANT:
        return
    name, meant = _MEANT[type(tree)]
    _refuse(tree, name, meant)
    for target in _targets(tree):
        if isinstance(target, exp.Table):
            _refuse(target, name, _OF_TARGETS)
            alias = target.args.get("alias")
            if alias is not None and isinstance(alias.this, exp.Parameter):
                # The grammar takes the version of `t@v1` for an alias.
                raise Unsupported(f"{name} with a version is not supported")
    for when in _actions(tree):
        then = when.args.get("then")
        if isinstance(then, exp.Expr) and type(then) in _OF_ACTIONS:
            _refuse(then, "an action of MERGE", _OF_ACTIONS[type(then)])


def _refuse(node: exp.Expr, name: str, meant: frozenset[str]) -> None:
    extra = sorted(key for key, value in node.args.items() if value and key not in meant)
    if extra:
        clause = _WORDS.get(extra[0], extra[0].rstrip("_").upper())
        raise Unsupported(f"{name} with {clause} is not supported")


def _actions(tree: exp.Expr) -> list[exp.Expr]:
    return list(tree.args["whens"].expressions) if isinstance(tree, exp.Merge) else []


def _targets(tree: exp.Expr) -> list[exp.Expr]:
    """The tables that the statement changes."""
    if isinstance(tree, exp.TruncateTable):
        return list(tree.expressions)
    if isinstance(tree, exp.Drop):
        return list(tree.args.get("tables") or [])
    target = tree.this
    return [target.this if isinstance(target, exp.Schema) else target]
