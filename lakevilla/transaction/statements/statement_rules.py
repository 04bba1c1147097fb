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
            "CREATE and DROP cannot be combined with other statements in this transaction: add lakevilla.CT, "
            "or run them in a separate transaction"
        )
    if not features:
        raise InvalidInput(
            "a transaction with features NONE has only one statement: add lakevilla.R for more, or start "
            "another transaction"
        )
    if alone or defines is Defines.NAMES:
        raise InvalidInput(
            "register and rename cannot be combined with other statements: run them in a separate transaction"
        )
