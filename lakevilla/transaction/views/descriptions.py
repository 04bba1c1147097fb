"""What SHOW and DESCRIBE say of a view."""

import pyarrow as pa

from lakevilla.errors import InvalidInput
from lakevilla.sql import statements as sql
from lakevilla.transaction.views.definitions import create_text
from lakevilla.versions.views import View

_TEXT = pa.string()


def described(view: View, temporary: bool, statement: sql.Statement) -> pa.Table:
    """The answer for a view; InvalidInput for what only tables have."""
    match statement:
        case sql.Describe(extended=extended):
            return _extended(view, temporary) if extended else _columns(view)
        case sql.ShowColumns():
            return pa.table({"col_name": pa.array([column.name for column in view.columns], _TEXT)})
        case sql.ShowCreateTable():
            return pa.table({"createtab_stmt": [create_text(view, temporary=temporary)]})
    what = {
        sql.DescribeDetail: "details",
        sql.DescribeHistory: "history",
        sql.ShowProperties: "properties",
    }[type(statement)]
    raise InvalidInput(f"{view.name!r} is a view and has no {what}: name a table", table=view.name)


def _columns(view: View) -> pa.Table:
    return pa.table(
        {
            "col_name": pa.array([column.name for column in view.columns], _TEXT),
            "data_type": pa.array([column.type for column in view.columns], _TEXT),
            "nullable": pa.array([True for _ in view.columns], pa.bool_()),
            "comment": pa.array([column.comment or None for column in view.columns], _TEXT),
        }
    )


def _extended(view: View, temporary: bool) -> pa.Table:
    rows = [(column.name, column.type, column.comment) for column in view.columns]
    rows += [
        ("", "", ""),
        ("# Detailed View Information", "", ""),
        ("Name", view.name, ""),
        ("Type", "TEMPORARY VIEW" if temporary else "VIEW", ""),
        ("View Text", view.text, ""),
    ]
    if view.comment:
        rows.append(("Comment", view.comment, ""))
    names = ("col_name", "data_type", "comment")
    return pa.table({name: pa.array([row[i] for row in rows], _TEXT) for i, name in enumerate(names)})
