"""The exceptions of PEP 249, and which of them stands for which error of a lake."""

from collections.abc import Iterator
from contextlib import contextmanager

from lakevilla.errors import (
    Corrupt,
    InvalidInput,
    LakeVillaError,
    Unsupported,
)


class Warning(Exception):
    """Never raised; PEP 249 asks for it."""


class Error(Exception):
    """The root of the errors of this module. Its `__cause__` is the lake's own error, where there is one."""


class InterfaceError(Error):
    """The module was used in a wrong way, such as a cursor that is closed."""


class DatabaseError(Error):
    """An error of the lake."""


class DataError(DatabaseError):
    """A value cannot be processed."""


class OperationalError(DatabaseError):
    """Not the program's fault: another client's commit came first, or the store does not answer."""


class IntegrityError(DatabaseError):
    """A row violates NOT NULL or a CHECK constraint."""


class InternalError(DatabaseError):
    """Records of the lake contradict each other."""


class ProgrammingError(DatabaseError):
    """A wrong statement, name, parameter or value."""


class NotSupportedError(DatabaseError):
    """The table or the statement needs a feature that LakeVilla does not implement."""


@contextmanager
def translated() -> Iterator[None]:
    """Raise what a lake raises as an exception of PEP 249."""
    try:
        yield
    except LakeVillaError as error:
        raise kind_of(error)(str(error)) from error


def kind_of(error: LakeVillaError) -> type[DatabaseError]:
    """Which exception of PEP 249 stands for an error of a lake."""
    if isinstance(error, InvalidInput):
        return IntegrityError if error.rule else ProgrammingError
    if isinstance(error, Unsupported):
        return NotSupportedError
    return InternalError if isinstance(error, Corrupt) else OperationalError
