"""LakeVilla: transactions over Delta Lake tables, on nothing but the object store."""

from importlib.metadata import version

from lakevilla.errors import (
    Aborted,
    CommitUnknown,
    Conflict,
    Corrupt,
    Deadlock,
    Fenced,
    InvalidInput,
    LakeVillaError,
    Torn,
    Unavailable,
    Unsupported,
    ValidationFailed,
)
from lakevilla.lake import Lake
from lakevilla.maintenance.reports import Explanation, RecoverReport, Status, VacuumReport
from lakevilla.model import Counts, Features, HistoryEntry, LakeEntry, Outcome, Receipt
from lakevilla.transaction.transaction import Transaction
from lakevilla.travel.export import Export
from lakevilla.travel.past import PastLake

__version__ = version("lakevilla")

NONE = Features.NONE
R = Features.R
CT = Features.CT
I = Features.I  # noqa: E741 - the paper's name

__all__ = [
    "CT",
    "NONE",
    "Aborted",
    "CommitUnknown",
    "Conflict",
    "Corrupt",
    "Counts",
    "Deadlock",
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
    "Outcome",
    "PastLake",
    "R",
    "Receipt",
    "RecoverReport",
    "Status",
    "Torn",
    "Transaction",
    "Unavailable",
    "Unsupported",
    "VacuumReport",
    "ValidationFailed",
]
