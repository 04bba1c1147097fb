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
            "to register or rename a table is a transaction of its own, without once: do it before the "
            "pipeline starts"
        )
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


def refuse_second_table(operations: Operations, name: str) -> None:
    """Raise InvalidInput if a transaction with R alone, which changes another table, would change this."""
    others = [p.ref.name for p in operations.targets if p.ref.name.casefold() != name.casefold()]
    if others:
        raise InvalidInput(
            f"the transaction changes {others[0]!r} already, and R alone is one table: add lakevilla.CT "
            f"to change {name!r} with it",
            table=name,
        )


def refuse_table_after_resume(table: str | None, name: str) -> None:
    """Raise InvalidInput if a transaction with R alone was resumed, on `table`: it stays with that."""
    if table is not None:
        raise InvalidInput(
            f"a transaction that was resumed changes {table!r} only: change {name!r} in a transaction of its "
            "own",
            table=name,
        )
