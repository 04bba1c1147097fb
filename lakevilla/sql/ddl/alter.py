"""ALTER TABLE, from sqlglot's tree (or its tokens, where it has no tree) to values."""

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.sql.ddl.create import constraint_of, property_pairs
from lakevilla.sql.dialect import spark_text
from lakevilla.sql.statements import (
    Action,
    AddColumns,
    AddConstraint,
    AlterTable,
    DropColumns,
    DropConstraint,
    RenameColumn,
    RenameTable,
    SetProperties,
    UnsetProperties,
)
from lakevilla.sql.tables import table_name
from lakevilla.sql.types import field_of


def alter_table(tree: exp.Alter) -> AlterTable:
    """One change of a table's definition."""
    actions = tree.args.get("actions") or []
    if tree.args.get("kind") != "TABLE":
        raise Unsupported(f"only ALTER TABLE is supported, found {spark_text(tree)[:80]}")
    name = table_name(tree.this)
    if actions and all(isinstance(action, exp.ColumnDef) for action in actions):
        return AlterTable(name, _add(actions))
    if len(actions) != 1:
        raise Unsupported(f"ALTER TABLE makes one change at a time, found {spark_text(tree)[:80]}")
    return AlterTable(name, _action(actions[0]))


def unset_properties(tokens: list[Token]) -> AlterTable:
    """ALTER TABLE name UNSET TBLPROPERTIES [IF EXISTS] ('key', ...)."""
    place = next(i for i, token in enumerate(tokens) if token.text.upper() == "UNSET")
    name = "".join(token.text for token in tokens[2:place])
    rest = [token for token in tokens[place + 1 :] if token.token_type != TokenType.SEMICOLON]
    words = [token.text.upper() for token in rest]
    if_exists = words[1:3] == ["IF", "EXISTS"]
    start = 3 if if_exists else 1
    if not name or words[:1] != ["TBLPROPERTIES"] or words[start : start + 1] != ["("] or words[-1] != ")":
        raise InvalidInput("write ALTER TABLE name UNSET TBLPROPERTIES [IF EXISTS] ('key', ...)")
    keys = tuple(token.text for token in rest[start + 1 : -1] if token.token_type == TokenType.STRING)
    return AlterTable(name, UnsetProperties(keys, if_exists))


def in_plural(tokens: list[Token]) -> list[Token]:
    """The tokens of an ALTER TABLE with COLUMNS for COLUMN where the grammar needs it: Spark takes both
    before several columns and before brackets."""
    words = [token.text.upper() for token in tokens]
    for place in range(1, len(tokens)):
        before, after = words[place - 1], words[place + 1 :]
        brackets = after[:1] == ["("] or after[:3] == ["IF", "EXISTS", "("]
        if words[place] == "COLUMN" and (before == "ADD" or (before == "DROP" and brackets)):
            one = tokens[place]
            plural = Token(TokenType.VAR, "COLUMNS", one.line, one.col, one.start, one.end)
            return [*tokens[:place], plural, *tokens[place + 1 :]]
    return tokens


def _action(action: exp.Expr) -> Action:
    match action:
        case exp.Schema():
            return _add(action.expressions)
        case exp.RenameColumn():
            return RenameColumn(_plain(action.this), _plain(action.args["to"]))
        case exp.AlterRename():
            return RenameTable(table_name(action.this))
        case exp.AlterSet() if action.expressions and isinstance(action.expressions[0], exp.Properties):
            return SetProperties(property_pairs(action.expressions[0].expressions))
        case exp.AddConstraint() if len(action.expressions) == 1:
            return AddConstraint(*constraint_of(action.expressions[0]))
        case exp.Drop():
            return _drop(action)
    raise Unsupported(f"ALTER TABLE: {spark_text(action)} is not supported")


def _add(columns: list[exp.Expr]) -> AddColumns:
    for column in columns:
        if not isinstance(column.this, exp.Identifier):
            raise Unsupported(f"{spark_text(column.this)}: fields of structs cannot be added")
        if column.args.get("position") is not None:
            raise Unsupported(
                f"cannot add column {column.name!r}: FIRST and AFTER are not supported; columns are added "
                "last",
                column=column.name,
            )
    return AddColumns(tuple(field_of(column) for column in columns))


def _drop(action: exp.Drop) -> DropColumns | DropConstraint:
    if_exists, named = bool(action.args.get("exists")), action.args.get("tables") or []
    if action.args.get("kind") == "CONSTRAINT":
        return DropConstraint(named[0].name, if_exists)
    if action.args.get("kind") in ("COLUMN", "COLUMNS"):
        columns = [
            c for entry in named for c in (entry.expressions if isinstance(entry, exp.Schema) else [entry])
        ]
        return DropColumns(tuple(_plain(column) for column in columns), if_exists)
    raise Unsupported(f"ALTER TABLE: {spark_text(action)} is not supported")


def _plain(column: exp.Expr) -> str:
    if isinstance(column, exp.Column) and len(column.parts) > 1:
        raise Unsupported(f"{spark_text(column)}: fields of structs cannot be altered")
    return column.name
