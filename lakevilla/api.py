"""Everything public except the errors, with the libraries that it needs: PyArrow, NumPy and sqlglot.

`lakevilla/__init__.py` imports this module when one of these names is first asked for, so that
`import lakevilla` and `lakevilla --help` stay fast. DuckDB, PySpark and PyIceberg come later still: with
the first statement, session or table that needs them.
"""

from lakevilla.answers import HistoryEntry, LakeEntry, Outcome, Receipt
from lakevilla.engines.local.result import Result
from lakevilla.lake import Lake
from lakevilla.maintenance.doctor.diagnosis import Check, Diagnosis
from lakevilla.maintenance.optimize.report import OptimizeReport
from lakevilla.maintenance.reports import Explanation, RecoverReport, RegisterReport, Status, VacuumReport
from lakevilla.model import Counts, Features
from lakevilla.progress import Progress
from lakevilla.session.session import Session
from lakevilla.transaction.transaction import Transaction
from lakevilla.travel.export import Export
from lakevilla.travel.past import PastLake
from lakevilla.travel.restore import RestoreReport

NONE = Features.NONE
R = Features.R
CT = Features.CT
I = Features.I  # noqa: E741 - the paper's name

__all__ = [
    "CT",
    "NONE",
    "Check",
    "Counts",
    "Diagnosis",
    "Explanation",
    "Export",
    "Features",
    "HistoryEntry",
    "I",
    "Lake",
    "LakeEntry",
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
    "Transaction",
    "VacuumReport",
]
