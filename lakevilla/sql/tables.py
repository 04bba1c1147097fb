"""Which tables a tree reads: not common table expressions, not aliases, not table-valued functions."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from sqlglot import exp

from lakevilla.errors import InvalidInput
from lakevilla.sql.dialect import spark_text
from lakevilla.sql.statements import TableName

IN_VIEW = "in_view"
"""In the `meta` of a node that names a table: it comes from the text of a view; true for a view of the lake,
false for a temporary one."""

_PLAIN = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


def tables_of(*trees: exp.Expr | None) -> tuple[TableName, ...]:
    """Every table that the trees read, each once, in the order of the text."""
    known = [tree for tree in trees if tree is not None]
    return tuple(dict.fromkeys(read_table(node) for tree in known for node in table_nodes(tree)))


def sql_name(name: str) -> str:
    """A table's name as a statement writes it: in back quotes where it needs them."""
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def table_name(table: exp.Expr) -> str:
    """`db.table` as one text; back quotes are only spelling."""
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        found = f", found {spark_text(table)}" if isinstance(table, exp.Expr) else ""
        raise InvalidInput(f"expected the name of a table{found}")
    return ".".join(part.name for part in table.parts)


def read_table(table: exp.Table) -> TableName:
    """The table and the version of it that a FROM clause names."""
    name, version, in_view = table_name(table), table.args.get("version"), bool(table.meta.get(IN_VIEW))
    alias = table.args.get("alias")
    if alias is not None and isinstance(alias.this, exp.Parameter):
        # The grammar takes the version of `t@v1` for an alias.
        raise InvalidInput(f"{name}@{alias.this.name}: write {name} VERSION AS OF or TIMESTAMP AS OF")
    if version is None:
        return TableName(name, in_view=in_view)
    if version.args.get("kind") != "AS OF":
        raise InvalidInput(f"time travel is VERSION AS OF or TIMESTAMP AS OF, found {spark_text(version)}")
    value = version.expression
    while isinstance(value, exp.Cast):
        value = value.this
    if version.name == "VERSION" and isinstance(value, exp.Literal) and value.name.isdecimal():
        return TableName(name, version=int(value.name), in_view=in_view)
    if version.name == "TIMESTAMP" and isinstance(value, exp.Literal) and value.is_string:
        return TableName(name, timestamp_ms=_milliseconds(value.name), in_view=in_view)
    raise InvalidInput(f"cannot read the version of table {name}: {spark_text(version)}", table=name)


def is_common(table: exp.Table, common: frozenset[str]) -> bool:
    """Whether the name in a FROM clause means one of these common table expressions. One in the text of a
    view means none of those around the view."""
    if IN_VIEW in table.meta:
        return False
    return not table.args.get("db") and table.name.lower() in common


def table_nodes(node: exp.Expr, common: frozenset[str] = frozenset()) -> Iterator[exp.Table]:
    """The nodes of the tree that name tables; `common` are the common table expressions around it."""
    with_ = node.args.get("with_")
    if with_ is not None:
        for definition in with_.expressions:
            own = {definition.alias.lower()} if with_.args.get("recursive") else set()
            yield from table_nodes(definition.this, common | own)
            common |= {definition.alias.lower()}
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not is_common(node, common):
        yield node
    for child in node.iter_expressions():
        if not isinstance(child, exp.With | exp.Hint):
            yield from table_nodes(child, common)


def _milliseconds(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise InvalidInput(f"{text!r} is not a timestamp; write '2026-01-31 12:00:00'") from error
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)
