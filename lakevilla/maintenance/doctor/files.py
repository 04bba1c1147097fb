"""The files of the tables: those that are missing, those that vacuum would delete, and their layout."""

from collections.abc import Collection, Iterator

from lakevilla.errors import LakeVillaError
from lakevilla.maintenance.doctor.diagnosis import Check, advice_for
from lakevilla.maintenance.doctor.layout import layout_texts
from lakevilla.maintenance.file_listing import list_files
from lakevilla.maintenance.queue_survey import LakeView, Queues
from lakevilla.maintenance.reports import count_text
from lakevilla.maintenance.vacuum import VacuumOptions, vacuum
from lakevilla.model import DataFile
from lakevilla.predicates import ANYTHING
from lakevilla.tables.pinned import Pinned


def look_at_files(view: LakeView, queues: Queues, known: Collection[str]) -> Iterator[Check]:
    """Everything that takes a list of all files. `known` are tables whose trouble is told already."""
    damaged: set[str] = set()
    well_laid_out = True
    for pinned in queues.tables:
        name = pinned.ref.name
        try:
            files = list(pinned.snapshot.files(ANYTHING))
            found = list(_damage(view, pinned, files))
        except LakeVillaError as error:
            files = []
            text = f"the files of {name!r} cannot be listed: {error}"
            found = [Check("data", "problem", text, advice_for(error, name), (name,))]
        if found:
            damaged.add(name)
            yield from found
        if texts := layout_texts(files):
            well_laid_out = False
            advice = f"`lakevilla optimize`, or lake.optimize({name!r})"
            yield Check("layout", "note", f"{name!r} has {', and '.join(texts)}", advice, (name,))
    if not damaged:
        yield Check("data", "ok", "the data files of the tables' newest versions are there")
    if well_laid_out:
        yield Check("layout", "ok", "no table has many small files or many deleted rows in its files")
    yield from _needless(view, damaged.union(known))


def _damage(view: LakeView, pinned: Pinned, files: list[DataFile]) -> Iterator[Check]:
    """Data files in the table's folder that are missing, or shorter than the table's log says."""
    name = pinned.ref.name
    listed = list_files(view.catalog.store_of(pinned.ref.location, view.meter))
    sizes = dict(zip(listed.column("key").to_pylist(), listed.column("size").to_pylist(), strict=True))
    inside = [file for file in files if "://" not in file.key]
    missing = [file.key for file in inside if file.key not in sizes]
    short = [file.key for file in inside if sizes.get(file.key, file.size) < file.size]
    advice = (
        "restore them from a backup, or bring the table back to a version whose files are there: "
        f"lake.restore(version=..., tables=[{name!r}])"
    )
    if missing:
        text = f"{_some(missing, files)} of {name!r} are missing, such as {missing[0]}"
        yield Check("data", "problem", text, advice, (name,))
    if short:
        text = f"{_some(short, files)} of {name!r} are shorter than its log says, such as {short[0]}"
        yield Check("data", "warning", text, advice, (name,))


def _some(damaged: list[str], files: list[DataFile]) -> str:
    return f"{len(damaged):,} of the {count_text(len(files), 'data file')}"


def _needless(view: LakeView, known: Collection[str]) -> Iterator[Check]:
    """Files that no reader and no transaction needs, by a dry run of vacuum."""
    report = vacuum(view, None, VacuumOptions(), lambda _: None)
    refused = {name: reason for name, reason in report.failed.items() if name not in known}
    due = [table for table in report.tables if table.files.count]
    if not due and not refused:
        yield Check("files", "ok", "nothing is left for vacuum to delete")
    for name, reason in refused.items():
        advice = "do what the reason says; the table's old files stay until then"
        yield Check("files", "warning", f"vacuum would leave {name!r} alone: {reason}", advice, (name,))
    for table in due:
        orphans = f", {table.orphans} of them left by transactions" if table.orphans.count else ""
        yield Check(
            "files",
            "note",
            f"vacuum would delete {table.files} of {table.table!r}{orphans}",
            f"`lakevilla vacuum --delete`, or lake.vacuum({table.table!r}, dry_run=False)",
            (table.table,),
        )
