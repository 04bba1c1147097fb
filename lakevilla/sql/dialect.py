"""Spark's dialect, read as it is written.

sqlglot maps the functions that it knows to nodes of its own, and some of them to a function that means
nearly the same. We want neither: a function call stays a call by the name that the user wrote, so that
engines decide by Spark's names, and the text that goes back to Spark is the user's.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import UnsupportedError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser

from lakevilla.errors import Unsupported

_OWN_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "POSITION", "SUBSTRING", "SUBSTR", "OVERLAY")
"""Functions whose arguments are written with keywords of their own."""


class SparkAsWritten(Spark):
    """Spark SQL in which CAST fails on bad input and function calls keep their names."""

    class Parser(SparkParser):
        FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            name: SparkParser.FUNCTION_PARSERS[name] for name in _OWN_SYNTAX
        }
        # `array(1, 2)[0]` indexes the call; it is not a literal.
        ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}
        # So are these in PARTITIONED BY, where sqlglot drops arguments after the second.
        SCHEMA_UNNAMED_CONSTRAINTS: ClassVar[set[str]] = SparkParser.SCHEMA_UNNAMED_CONSTRAINTS - {
            "BUCKET",
            "TRUNCATE",
        }
        STRICT_CAST = True

        def _warn_unsupported(self) -> None:
            """What is not read is an error of ours (see `syntax_errors`), and no warning."""

    class Generator(SparkGenerator):
        # WITH stays where it is: two subqueries may each have one of the same name.
        EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()

        def not_sql(self, expression: exp.Not) -> str:
            """`x IS NOT NULL` as one test: from its text Spark makes the name of a column."""
            test = expression.this
            if isinstance(test, exp.Is) and isinstance(test.expression, exp.Null):
                return f"{self.sql(test, 'this')} IS NOT NULL"
            return str(super().not_sql(expression))


DIALECT = SparkAsWritten()


def spark_text(tree: exp.Expr) -> str:
    """The tree as Spark SQL, as messages show it; what Spark SQL cannot say is left out."""
    return str(tree.sql(dialect=DIALECT, unsupported_level=ErrorLevel.IGNORE))


def exact_text(tree: exp.Expr) -> str:
    """The tree as Spark SQL, functions as the user wrote them; Unsupported if the text would say less."""
    try:
        text = tree.sql(dialect=DIALECT, normalize_functions=False, unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError as error:
        raise Unsupported(f"the statement has a clause that Spark SQL has not: {error}") from error
    return str(text)
