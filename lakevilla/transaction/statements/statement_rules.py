"""Which statement may follow others in one transaction, by the features that it picked."""

from lakevilla.errors import InvalidInput
from lakevilla.model import Features
from lakevilla.transaction.guarantees import Guarantees
from lakevilla.transaction.redo.operations import Operations
from lakevilla.transaction.statements.statement import Defines, Statement


def refuse_next(picked: Guarantees, operations: Operations, statement: Statement) -> None:
    """Raise InvalidInput for what the features do not promise, before the statement does anything."""
    features = picked.features
    if picked.once is not None and statement.defines is Defines.NAMES:
        raise InvalidInput(
            "register and rename cannot be combined with once: run them in a separate transaction, before "
            "the pipeline starts"
        )
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


def refuse_second_table(operations: Operations, name: str) -> None:
    """Raise InvalidInput if a transaction with R alone, which changes another table, would change this."""
    others = [p.ref.name for p in operations.targets if p.ref.name.casefold() != name.casefold()]
    if others:
        raise InvalidInput(
            f"cannot change table {name!r}: the transaction has already changed {others[0]!r}, and with "
            "lakevilla.R alone it can change one table. Add lakevilla.CT to change both",
            table=name,
        )


def refuse_table_after_resume(table: str | None, name: str) -> None:
    """Raise InvalidInput if a transaction with R alone was resumed, on `table`: it stays with that."""
    if table is not None:
        raise InvalidInput(
            f"cannot change table {name!r}: the transaction was resumed, and with lakevilla.R alone it can "
            f"change only {table!r}. Change {name!r} in a separate transaction",
            table=name,
        )
