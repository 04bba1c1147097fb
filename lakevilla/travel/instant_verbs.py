"""What users do with instants of the lake, as verbs of the lake: tags, exports, changes between instants."""

from abc import ABC, abstractmethod
from typing import Any

from lakevilla.engines.port import Engine, Result
from lakevilla.environment import Environment
from lakevilla.store.metered import Meter
from lakevilla.tables.catalog import Catalog
from lakevilla.travel.export import Export, export
from lakevilla.travel.instants import find, untag_instant
from lakevilla.travel.past import PastLake
from lakevilla.versions.instants import Instants
from lakevilla.versions.records import Head


class InstantVerbs(ABC):
    """The verbs; the lake has the parts."""

    _catalog: Catalog
    _environment: Environment

    @property
    @abstractmethod
    def _engine(self) -> Engine:
        """What reads rows."""

    def untag(self, name: str) -> None:
        """Remove the tag of an instant."""
        untag_instant(self._catalog, self._environment, name)

    def tags(self) -> dict[str, int]:
        """The tags, with the numbers of their entries."""
        head = self._catalog.head(Meter(), fresh=True)
        return {} if head is None else dict(sorted(head.tags.items()))

    def export(self, at: Any = None) -> Export:
        """An instant as a list of tables and their versions, and as SQL for DuckDB, Spark and Trino, so that
        readers without LakeVilla see all tables at one instant too. `at` as in `lake.tag`; the default is the
        newest instant (`lake.sync` adopts what other clients have written)."""
        head = self._instant(at)
        return export(self._catalog, head if head is not None else self._newest)

    def changes(self, name: str, since: Any = None, until: Any = None) -> Result:
        """The rows of a table that changed after the instant `since`, up to the instant `until`.

        Each row has what changed (`_change_type`: `insert`, `delete`, `update_preimage` or
        `update_postimage`), the version of the table (`_commit_version`), the instant (`_commit_seq`, and
        `_commit_timestamp`) and the transaction (`_transaction`, of LakeVilla's clients). Instants are as in
        `lake.tag`; without `since` the table begins empty, without `until` the newest instant counts. Several
        tables that are asked with the same instants give what happened to all of them between these.

        Updates are told from deletes and inserts where a Delta table has `delta.enableChangeDataFeed`. A
        version of another client belongs to the instant that adopted it (`lake.sync`). `InvalidInput` if the
        instant has expired, or vacuum has deleted a file that is needed.
        """
        upto = self._instant(until)
        last = upto if upto is not None else self._newest
        from lakevilla.travel.changes import TableChanges

        found = TableChanges(self._catalog, self._engine, self._environment, name, self._instant(since), last)
        return self._engine.result(found.rows())

    @property
    def _newest(self) -> Head:
        return Instants(self._catalog.log(Meter())).now

    def _instant(self, at: Any) -> Head | None:
        if at is None:
            return None
        return find(self._catalog, seq=at.seq) if isinstance(at, PastLake) else find(self._catalog, at)
