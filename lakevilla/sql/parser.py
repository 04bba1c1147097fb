"""From text to a statement.

One text is one statement. What the grammar allows and we do not mean is refused here with a sentence;
the engine decides which functions and constructs it can run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token

from lakevilla.errors import InvalidInput, LakeVillaError, Unsupported
from lakevilla.sql.ddl.alter import alter_table, in_plural, unset_properties
from lakevilla.sql.ddl.create import create_table
from lakevilla.sql.dialect import DIALECT, spark_text
from lakevilla.sql.extra_clauses import refuse_extra_clauses
from lakevilla.sql.letters import refuse_surrogates
from lakevilla.sql.merge import merge
from lakevilla.sql.parameters import bind
from lakevilla.sql.query_clauses import refuse_unknown_clauses
from lakevilla.sql.script import show
from lakevilla.sql.script.command_parser import WORDS, command
from lakevilla.sql.script.commands import SessionCommand
from lakevilla.sql.script.lexer import first_word
from lakevilla.sql.script.places import mark, move, point_at
from lakevilla.sql.script.places import show as show_place
from lakevilla.sql.script.splitter import only_piece
from lakevilla.sql.statements import (
    Delete,
    DropTable,
    Insert,
    Query,
    Statement,
    Update,
)
from lakevilla.sql.syntax_errors import (
    misspelt_definition,
    refuse_doubled,
    syntax_error,
    unclosed,
    unknown_statement,
    unread_definition,
)
from lakevilla.sql.tables import table_name, tables_of
from lakevilla.sql.views.statements import is_about_views, view_statement
from lakevilla.sql.words.function_names import is_function
from lakevilla.sql.words.suggestions import unknown_function

_SELECT = "SELECT "
_VIEWS = ("CREATE", "DROP")

_SMALLEST = {
    exp.DataType.Type.TINYINT: str(2**7),
    exp.DataType.Type.SMALLINT: str(2**15),
    exp.DataType.Type.BIGINT: str(2**63),
}


def parse(text: str, parameters: Mapping[str, Any] | None = None) -> Statement:
    """The one statement of a text, its parameters bound."""
    first = first_word(text)
    if first in WORDS:
        _refuse_command(text, first)
    if first in show.WORDS:
        return show.shown(text)
    if first in _VIEWS and is_about_views(piece := only_piece(text)):
        return view_statement(piece, parameters or {}, parse)
    tokens = _tokens(text)
    if first == "ALTER" and "UNSET" in (token.text.upper() for token in tokens):
        return unset_properties(tokens)
    if tokens and (unknown := unknown_statement(tokens, text)) is not None:
        raise unknown
    if tokens and tokens[0].token_type in DIALECT.tokenizer_class.COMMANDS:
        error = Unsupported(f"the statement {tokens[0].text.upper()} is not supported")
        raise point_at(error, text, tokens[0].start, tokens[0].end + 1)
    try:
        refuse_doubled(tokens, text)
        tree = _tree(in_plural(tokens) if first == "ALTER" else tokens, text)
        if isinstance(tree, exp.Command):
            raise unread_definition(tokens, text)
        return _statement(bind(tree, parameters or {}))
    except Unsupported as error:
        # The grammar takes some misspelt keywords for names.
        raise misspelt_definition(tokens, text) or error from None
    except LakeVillaError as error:
        show_place(error, text)
        raise
    except RecursionError as error:
        raise InvalidInput("the statement is nested too deeply: split it") from error


def _refuse_command(text: str, first: str) -> None:
    """InvalidInput for a statement of the session or of the lake, which is not part of a transaction."""
    found = command(text)
    if isinstance(found, SessionCommand):
        raise InvalidInput(
            f"{first} is a statement of a session: write lake.session().sql(...), or in Python "
            "`with lake.transaction() as tx:`"
        )
    if found is not None:
        raise InvalidInput(
            f"{first} is about the lake, and not part of a transaction: run it with lake.sql(...) or in a "
            "session, outside of BEGIN ATOMIC"
        )


def parse_expression(text: str, parameters: Mapping[str, Any] | None = None) -> exp.Expr:
    """An expression alone, as in `where=`, `set=` and CHECK constraints."""
    # Bound under its SELECT, so that a text which is nothing but a parameter has a parent.
    bound: exp.Expr = bind(_selected(f"{text}").copy(), parameters or {}).expressions[0]
    refuse_unknown_clauses(bound)
    return bound.pop()


@lru_cache(maxsize=256)
def _selected(text: str) -> exp.Select:
    """A SELECT of this expression alone. Shared by all calls with the text: copy it before a change."""
    whole = f"{_SELECT}{text}"
    try:
        tree = _tree(_tokens(whole), whole)
    except LakeVillaError as error:
        move(error, text, -len(_SELECT))
        raise
    if not isinstance(tree, exp.Select) or set(tree.args) - {"expressions"} - _unset(tree):
        raise InvalidInput(f"expected one expression, found {text!r}")
    if len(tree.expressions) != 1 or isinstance(tree.expressions[0], exp.Alias | exp.Star):
        raise InvalidInput(f"expected one expression, found {text!r}")
    return tree


def select_from(name: str, columns: str = "*", where: str | None = None) -> Query:
    """A query over one table, whose name may hold anything, also dots and quotes."""
    quoted = "`" + name.replace("`", "``") + "`"
    text = f"SELECT {columns} FROM {quoted}" + ("" if where is None else f" WHERE {where}")
    query = parse(text)
    assert isinstance(query, Query), "the text begins with SELECT"
    return query


@dataclass(frozen=True)
class PlainInsert:
    """An INSERT of one row of parameters: the name of a parameter for each column."""

    table: str
    values: Mapping[str, str]


def plain_insert(text: str) -> PlainInsert | None:
    """The text, if it is `INSERT INTO t (columns) VALUES (parameters)` and nothing else."""
    tree = _tree(_tokens(text), text)
    if not isinstance(tree, exp.Insert) or not isinstance(tree.this, exp.Schema):
        return None
    known = {"this", "expression"}
    if set(tree.args) - known - _unset(tree) or not isinstance(tree.expression, exp.Values):
        return None
    rows = tree.expression.expressions
    columns = [column.name for column in tree.this.expressions]
    values = rows[0].expressions if len(rows) == 1 and isinstance(rows[0], exp.Tuple) else []
    names = [value.name for value in values if isinstance(value, exp.Placeholder) and value.name]
    if not (len(names) == len(values) == len(columns) == len(set(columns))):
        return None
    return PlainInsert(table_name(tree.this.this), dict(zip(columns, names, strict=True)))


def _unset(tree: exp.Expr) -> set[str]:
    return {key for key, value in tree.args.items() if not value}


def _tokens(text: str) -> list[Token]:
    refuse_surrogates(text, "the statement")
    try:
        return list(DIALECT.tokenize(text))
    except TokenError as error:
        raise unclosed(text) from error


def _tree(tokens: list[Token], text: str) -> exp.Expr:
    try:
        trees = [tree for tree in DIALECT.parser().parse(tokens, text) if tree is not None]
    except ParseError as error:
        raise syntax_error(error, tokens, text) from error
    if len(trees) != 1:
        only_piece(text)
        raise InvalidInput("the text has no statement")
    tree: exp.Expr = trees[0]
    _unfold_negations(tree)
    _sign_smallest(tree)
    _refuse_odd_tests(tree, text)
    return tree


def _unfold_negations(tree: exp.Expr) -> None:
    """`a NOT LIKE b` as NOT (a LIKE b): a negation hidden in a flag is too easily overlooked."""
    for node in list(tree.find_all(exp.Like, exp.ILike, exp.Is)):
        if node.args.pop("negate", None):
            whole = node.parent if isinstance(node.parent, exp.Escape) else node
            whole.replace(exp.Not(this=whole.copy()))


def _refuse_odd_tests(tree: exp.Expr, text: str) -> None:
    """InvalidInput for `x IS y` where y is not a keyword that may stand there, and for `f(x AS y)` where no
    function f exists: CAST misspelt, as a rule."""
    for call in tree.find_all(exp.Anonymous):
        name = str(call.this)
        if any(isinstance(part, exp.Alias) for part in call.expressions) and not is_function(name):
            wrong = unknown_function(name)
            show_place(wrong, text)
            raise wrong
    for node in tree.find_all(exp.Is):
        tested = node.expression.this if isinstance(node.expression, exp.Not) else node.expression
        if isinstance(tested, exp.Column):
            error = InvalidInput(
                f"SQL syntax error: IS wants NULL, TRUE or FALSE, found {tested.sql()!r}; <=> compares values"
            )
            mark(error, tested)
            show_place(error, text)
            raise error


def _sign_smallest(tree: exp.Expr) -> None:
    """`-128Y`, read as the negative of 128Y, which is not a tinyint: the sign belongs to the literal."""
    for node in list(tree.find_all(exp.Neg)):
        typed = node.this
        if isinstance(typed, exp.Cast) and _SMALLEST.get(typed.to.this) == typed.this.name:
            node.replace(exp.Cast(this=exp.Neg(this=typed.this.copy()), to=typed.to.copy()))


def _statement(tree: exp.Expr) -> Statement:
    refuse_extra_clauses(tree)
    refuse_unknown_clauses(tree)
    match tree:
        case exp.Insert():
            return _insert(tree)
        case exp.Update():
            return _update(tree)
        case exp.Delete():
            return _delete(tree)
        case exp.Merge():
            return merge(tree)
        case exp.Create():
            return create_table(tree)
        case exp.Drop():
            return _drop(tree)
        case exp.Alter():
            return alter_table(tree)
        case exp.TruncateTable() if len(tree.expressions) == 1:
            name = table_name(tree.expressions[0])
            return Delete(name, name, None)
        case exp.Query():
            return Query(tree, tables_of(tree))
        case exp.Values():
            query = exp.select("*").from_(tree)
            return Query(query, tables_of(query))
    raise Unsupported(f"this statement is not supported: {spark_text(tree)[:80]}")


def _insert(tree: exp.Insert) -> Insert:
    target, columns = tree.this, ()
    if isinstance(target, exp.Schema):
        columns = tuple(column.name for column in target.expressions)
        target = target.this
    if isinstance(target, exp.Table) and target.args.get("partition"):
        raise Unsupported("INSERT with PARTITION (...) is not supported; give the values in the query")
    query = tree.expression
    if isinstance(query, exp.Values):
        query = exp.select("*").from_(query)
    if not isinstance(query, exp.Query):
        raise InvalidInput("INSERT needs VALUES or a query")
    if tree.args.get("with_") is not None:
        query.set("with_", tree.args["with_"])
    return Insert(
        table_name(target),
        columns,
        query,
        tables_of(query),
        overwrite=bool(tree.args.get("overwrite")),
        by_name=bool(tree.args.get("by_name")),
        where=tree.args.get("where"),
    )


def _update(tree: exp.Update) -> Update:
    if tree.args.get("from_") or tree.args.get("with_"):
        raise InvalidInput("UPDATE takes no FROM and no WITH in Spark SQL; use a subquery or MERGE")
    where = _condition(tree)
    assigned = {}
    for assignment in tree.expressions:
        if not isinstance(assignment, exp.EQ) or not isinstance(assignment.this, exp.Column):
            raise InvalidInput(f"SET needs column = value; found {spark_text(assignment)}")
        assigned[_assigned(assignment.this, tree.this)] = assignment.expression
    if len(assigned) != len(tree.expressions):
        raise InvalidInput("UPDATE sets a column twice")
    tables = tables_of(*assigned.values(), where)
    return Update(table_name(tree.this), tree.this.alias_or_name, assigned, where, tables)


def _assigned(column: exp.Column, target: exp.Table) -> str:
    names = [part.name for part in column.parts]
    if len(names) > 1 and names[0].lower() == target.alias_or_name.lower():
        names = names[1:]
    if len(names) > 1:
        raise Unsupported(
            f"cannot set {'.'.join(names)!r}: fields of structs cannot be set alone; set the whole column"
        )
    return names[0]


def _delete(tree: exp.Delete) -> Delete:
    if tree.args.get("using") or tree.args.get("with_"):
        raise InvalidInput("DELETE takes no USING and no WITH in Spark SQL; use a subquery or MERGE")
    if not isinstance(tree.this, exp.Table):
        raise InvalidInput(
            "SQL syntax error: expected FROM and a table; write DELETE FROM table WHERE condition"
        )
    where = _condition(tree)
    return Delete(table_name(tree.this), tree.this.alias_or_name, where, tables_of(where))


def _condition(tree: exp.Expr) -> exp.Expr | None:
    where = tree.args.get("where")
    return None if where is None else where.this


def _drop(tree: exp.Drop) -> DropTable:
    tables = tree.args.get("tables") or []
    if tree.args.get("kind") != "TABLE" or len(tables) != 1:
        raise Unsupported(f"only DROP TABLE of one table is supported, found {spark_text(tree)}")
    return DropTable(table_name(tables[0]), bool(tree.args.get("exists")))
