"""Known bugs of commits on Iceberg tables that a catalog keeps, to be planted one by one, as in
`planted.commits`.

One that needs a very narrow race is not here but in tests/lake/catalogs/test_cataloged_commits.py: a commit
that may still come is given up for a new one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from pyiceberg.table.update import TableRequirement, TableUpdate

from lakevilla.errors import Unavailable
from lakevilla.formats.iceberg.log import catalog_log, updates
from lakevilla.formats.iceberg.log.catalog_log import CatalogLog
from lakevilla.formats.iceberg.log.catalogs import Applied, Cataloged, Refused, Unanswered
from lakevilla.formats.iceberg.log.versions import Made, Version
from lakevilla.formats.iceberg.metadata.document import Raw
from lakevilla.formats.iceberg.metadata.paths import METADATA
from lakevilla.formats.iceberg.snapshot import IcebergSnapshot
from sim.planted.commits import Plant, planter

BUGS: dict[str, Plant] = {}
"""Every bug by its name."""

_bug = planter(BUGS)

_ROOM = "lakevilla.formats.iceberg"
_LOG = f"{_ROOM}.log.catalog_log.CatalogLog"

_commit = Cataloged.commit
_create = CatalogLog.create
_follow = CatalogLog.follow
_made = CatalogLog._made
_requirements_of = updates.requirements_of


# Answers that do not come.


@_bug(f"{_ROOM}.log.catalogs.Cataloged.commit")
def unanswered_commit_taken_for_refused(
    self: Cataloged, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
) -> Applied | Refused | Unanswered:
    """What did not answer is said not to have happened."""
    answer = _commit(self, requirements, updates)
    if isinstance(answer, Unanswered):
        raise Unavailable(answer.reason)
    return answer


@_bug(f"{_ROOM}.log.catalogs.Cataloged.commit")
def unanswered_commit_taken_for_made(
    self: Cataloged, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
) -> Applied | Refused | Unanswered:
    """Whatever is current then is taken for the version that was made."""
    answer = _commit(self, requirements, updates)
    if isinstance(answer, Unanswered):
        current = self.current()
        assert current is not None
        return Applied(current.metadata)
    return answer


@_bug(f"{_ROOM}.log.catalogs.Cataloged.commit")
def passing_refusal_taken_for_permanent(
    self: Cataloged, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
) -> Applied | Refused | Unanswered:
    """A commit is given up because another request was in progress: once a bug of ours."""
    answer = _commit(self, requirements, updates)
    return replace(answer, final=True) if isinstance(answer, Refused) else answer


@_bug(f"{_ROOM}.log.catalogs.Cataloged.commit")
def unanswered_copy_forgotten_for_a_later_refusal(
    self: Cataloged, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
) -> Applied | Refused | Unanswered:
    """That an earlier copy may still come is forgotten: once a bug of ours."""
    answer = _commit(self, requirements, updates)
    return Refused(answer.reason, final=False) if isinstance(answer, Unanswered) else answer


@_bug(f"{_ROOM}.log.publish.attempt_of")
def commit_sent_again_past_itself(info: Any) -> None:  # noqa: ARG001
    """The client does not check whether the version that came first is its own commit: it commits again on
    top of it."""
    return


@_bug(f"{_ROOM}.log.catalog_log.pairwise")
def unanswered_commit_looked_for_in_one_version(
    versions: Sequence[Version],
) -> Iterable[tuple[Version, Version]]:
    """It may stand above versions that it has passed over: once a bug of ours, which seeds found."""
    return list(pairwise(versions))[:1]


# What a commit asks for.


@_bug(f"{_ROOM}.log.catalog_log.requirements_of")
def commit_that_asks_only_for_its_table(base: Raw, *, exact: bool) -> tuple[TableRequirement, ...]:  # noqa: ARG001
    found = _requirements_of(base, exact=False)
    return tuple(one for one in found if one.type == "assert-table-uuid")


# Which version is which.


@_bug(f"{_LOG}._placed")
def published_later_is_not_recognised(
    self: CatalogLog,  # noqa: ARG001
    version: Version,
    before: Version | None = None,  # noqa: ARG001
) -> Version:
    """Only the version that a commit expected to make is its own."""
    return version


@_bug(f"{_LOG}._placed")
def copied_property_is_taken_for_a_commit(
    self: CatalogLog,  # noqa: ARG001
    version: Version,
    before: Version | None = None,  # noqa: ARG001
) -> Version:
    """A version that names a commit counts as that commit, even if another client has built on it."""
    return replace(version, published=bool(version.commit_info))


@_bug(f"{_LOG}._made")
def expected_version_is_said_to_be_made(self: CatalogLog, base: Version, answer: Applied, txn: str) -> Made:
    """The answer is not looked at: a commit that passed over others is told by a wrong number."""
    made = _made(self, base, answer, txn)
    return Made(replace(made.version, number=base.number + 1), base)


@_bug(f"{_LOG}._current")
def newest_metadata_file_is_taken_for_current(self: CatalogLog) -> str | None:
    """By a LIST: losers of a race leave files of the same number."""
    found = [meta.key for meta in self._store.list(METADATA) if catalog_log._number(meta.key) is not None]
    return max(found, default=None)


@_bug(f"{_LOG}.follow")
def versions_between_are_left_out(self: CatalogLog, version: Version) -> list[Version]:
    """Only the newest version is looked at."""
    return _follow(self, version)[-1:]


@_bug(f"{_ROOM}.log.footprint._is_passed_over")
def properties_of_others_are_a_conflict(before: IcebergSnapshot, after: IcebergSnapshot) -> bool:  # noqa: ARG001
    """For clients that read these versions on their walk; a later client does not read them."""
    return False
