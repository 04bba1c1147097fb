"""The doctor: everything that can be wrong with a lake, its store and this machine, looked at in one go.

Changes nothing. To learn whether conditional writes work and what time it is by the store, it writes objects
under a key of its own and deletes them again, unless that is not wished for. A check that fails says so and
does not stop the others; only a store or a HEAD that cannot be read does.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from lakevilla.errors import LakeVillaError, Unavailable
from lakevilla.maintenance.doctor.clients import dead_clients, unsettled
from lakevilla.maintenance.doctor.diagnosis import AGAIN, Check, Diagnosis, advice_for
from lakevilla.maintenance.doctor.files import look_at_files
from lakevilla.maintenance.doctor.machine import look_at_machine
from lakevilla.maintenance.doctor.store import find_lake, try_store
from lakevilla.maintenance.doctor.tables import look_at_tables, torn
from lakevilla.maintenance.queue_survey import LakeView, survey_queues


def diagnose(view: LakeView, *, probe_store: bool, files: bool, java: Callable[[], str | None]) -> Diagnosis:
    """Look at everything. `java` says what is wrong with this machine's Java, None if nothing is."""
    machine = list(look_at_machine(java))
    try:
        head = view.catalog.head(view.meter, fresh=True)
        checks = list(find_lake(view, head))
    except Unavailable as error:
        advice = "check the URL, the credentials and the network; without an answer nothing else can be said"
        return Diagnosis((Check("store", "problem", str(error), advice), *machine))
    except LakeVillaError as error:
        return Diagnosis((Check("store", "problem", str(error), advice_for(error)), *machine))
    if any(check.state == "problem" for check in checks):
        # Without the names of its tables a lake looks like another one.
        return Diagnosis((*checks, *machine))
    # To try a directory that is not there would create it.
    if probe_store and not (view.store.url.startswith("file:") and checks[0].state == "note"):
        checks += try_store(view)
    checks += machine
    checks += _guarded("unsettled entries", partial(unsettled, view))
    checks += torn(head)
    try:
        queues = survey_queues(view)
    except LakeVillaError as error:
        return Diagnosis((*checks, Check("tables", "problem", str(error), AGAIN)))
    checks += look_at_tables(view, head, queues)
    checks += _guarded("dead clients", partial(dead_clients, view, queues))
    if files:
        checks += _guarded("files", partial(look_at_files, view, queues, _named(checks)))
    return Diagnosis(tuple(checks))


def _named(checks: Iterable[Check]) -> set[str]:
    """The tables whose trouble is told already."""
    serious = (check for check in checks if check.state in ("warning", "problem"))
    return {name for check in serious if check.subject in ("tables", "owners") for name in check.tables}


def _guarded(subject: str, look: Callable[[], Iterator[Check]]) -> list[Check]:
    """What a look finds; an error of it is a finding too."""
    try:
        return list(look())
    except LakeVillaError as error:
        return [Check(subject, "problem", f"could not be looked at: {error}", AGAIN)]
