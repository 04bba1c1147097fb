"""Which statement may follow others in one transaction, by the features that it picked."""

from lakevilla.errors import InvalidInput
from lakevilla.model import Features
from lakevilla.transaction.redo.operations import Operations
from lakevilla.transaction.statements.statement import Defines, Statement


def refuse_next(features: Features, operations: Operations, statement: Statement) -> None:
    """Raise InvalidInput for what the features do not promise, before the statement does anything."""
    if not len(operations):
        return
    alone, defines = operations.lake_change is not None, statement.defines
    if not features & (Features.CT | Features.I) and (alone or defines is Defines.TABLES):
        raise InvalidInput(
            "to create or drop a table is a transaction of its own: add lakevilla.CT to do it together with "
            "other statements"
        )
    if not features:
        raise InvalidInput(
            "a transaction with features NONE is one statement: add lakevilla.R for more, or start another "
            "transaction"
        )
    if alone or defines is Defines.NAMES:
        raise InvalidInput(
            "to register or rename a table is a transaction of its own: do it before or after this one"
        )
