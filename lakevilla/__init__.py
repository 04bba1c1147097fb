"""LakeVilla: transactions over Delta Lake and Iceberg tables, on nothing but the object store.

The errors come with this module, every other name when it is first used.
"""

import sys
from typing import TYPE_CHECKING, Any

from lakevilla.errors import (
    Aborted,
    CommitUnknown,
    Conflict,
    Corrupt,
    Fenced,
    InvalidInput,
    LakeVillaError,
    Torn,
    Unavailable,
    Unsupported,
    ValidationFailed,
)

if TYPE_CHECKING:
    from lakevilla import streaming
    from lakevilla.api import (
        CT,
        NONE,
        Check,
        Counts,
        Diagnosis,
        Explanation,
        Export,
        Features,
        HistoryEntry,
        I,
        Lake,
        LakeEntry,
        OptimizeReport,
        Outcome,
        PastLake,
        Progress,
        R,
        Receipt,
        RecoverReport,
        RegisterReport,
        RestoreReport,
        Result,
        Session,
        Status,
        Transaction,
        VacuumReport,
    )

    __version__: str

__all__ = [
    "CT",
    "NONE",
    "Aborted",
    "Check",
    "CommitUnknown",
    "Conflict",
    "Corrupt",
    "Counts",
    "Diagnosis",
    "Explanation",
    "Export",
    "Features",
    "Fenced",
    "HistoryEntry",
    "I",
    "InvalidInput",
    "Lake",
    "LakeEntry",
    "LakeVillaError",
    "OptimizeReport",
    "Outcome",
    "PastLake",
    "Progress",
    "R",
    "Receipt",
    "RecoverReport",
    "RegisterReport",
    "RestoreReport",
    "Result",
    "Session",
    "Status",
    "Torn",
    "Transaction",
    "Unavailable",
    "Unsupported",
    "VacuumReport",
    "ValidationFailed",
    "streaming",
]


if not TYPE_CHECKING:  # A type checker would take every name for granted.

    def __getattr__(name: str) -> Any:
        """A name of `lakevilla.api`, or the version of this package; it is kept for the next time."""
        if name == "__version__":
            from importlib.metadata import version

            value = version("lakevilla")
        elif name == "streaming":
            from importlib import import_module

            value = import_module("lakevilla.streaming")
        elif name in __all__:
            from lakevilla import api

            value = getattr(api, name)
        else:
            raise AttributeError(
                f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__]
            )
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, "__version__"])
