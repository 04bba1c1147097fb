"""The lake: the one place that wires stores, tables, engines and transactions together."""

import logging
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import PurePath
from typing import Any, overload

from lakevilla.engines.port import Engine
from lakevilla.environment import Environment, SystemEnvironment
from lakevilla.errors import InvalidInput
from lakevilla.maintenance.deciding import retention_ms
from lakevilla.maintenance.explaining import explain
from lakevilla.maintenance.recover import recover, status
from lakevilla.maintenance.reports import Explanation, RecoverReport, Status, VacuumReport
from lakevilla.maintenance.surveying import LakeView
from lakevilla.maintenance.vacuum import Wish, vacuum
from lakevilla.markers.lease import IDLE_SECONDS, LEASE_SECONDS, Leases
from lakevilla.model import Features, HistoryEntry, LakeEntry, Outcome, Receipt
from lakevilla.store.metered import Meter
from lakevilla.store.opening import open_store
from lakevilla.store.port import Store
from lakevilla.transaction.begun import begin
from lakevilla.transaction.catalog import Catalog
from lakevilla.transaction.chores import Chores
from lakevilla.transaction.finding import check_id, find_outcome
from lakevilla.transaction.guarantees import guarantees
from lakevilla.transaction.resuming import resume
from lakevilla.transaction.retrying import run
from lakevilla.transaction.statement import Statement
from lakevilla.transaction.syncing import sync
from lakevilla.transaction.transaction import Transaction
from lakevilla.transaction.verbs import Verbs
from lakevilla.travel.export import Export, export
from lakevilla.travel.instants import find, tag_instant, untag_instant
from lakevilla.travel.past import PastLake
from lakevilla.versions.cuts import Cuts
from lakevilla.versions.records import Head
from lakevilla.versions.tags import check_tag_name

logger = logging.getLogger("lakevilla.lake")

ALL = Features.R | Features.CT | Features.I


class Lake(Verbs):
    """Tables below one root, on a local directory or an object store.

        lake = lv.Lake("./lake")
        lake.create("accounts", "id BIGINT, balance DECIMAL(12, 2)")
        lake.sql("INSERT INTO accounts VALUES (1, 100.00)")
        lake.sql("SELECT * FROM accounts").show()

    Opening a lake sends no request and writes nothing. A `Lake` may be used from many threads; after a
    fork the child opens connections of its own.

    `spark` is the Spark session to work with. `engine="spark"` takes the active one, or starts a local one
    when a statement first needs it; `engine="local"` works in this process, without Java. Left out, it is
    Spark where PySpark is installed and the lake is in a place that Spark can reach, else local.

    `storage_options` are the options of the store (`AWS_ENDPOINT_URL` and its kin); `credentials` is a
    callable that gives fresh credentials whenever the store needs them. `features` are those of every
    transaction that picks none, and of the lake's own verbs. `default_format` is that of new tables that
    name none, `"delta"` or `"iceberg"`. `catalogs` are the options of catalogs that keep Iceberg tables, by
    name, as PyIceberg has them; others it finds in its own configuration. `lease_seconds` is how long a
    writer that shows no sign of life is waited for; all clients of a lake should agree on it. `store` and
    `environment` are for tests, which bring their own world.
    """

    def __init__(
        self,
        root: str | PurePath,
        *,
        engine: str | Engine | None = None,
        spark: Any = None,
        storage_options: Mapping[str, str] | None = None,
        credentials: Callable[..., Any] | None = None,
        features: Features = ALL,
        default_format: str = "delta",
        catalogs: Mapping[str, Mapping[str, str]] | None = None,
        environment: Environment | None = None,
        store: Store | None = None,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        if not isinstance(root, str | PurePath) or not str(root):
            raise InvalidInput(
                f"a lake lies in a directory or at a URL such as s3://bucket/path; found {root!r}"
            )
        self._environment = environment or SystemEnvironment()
        self._features = guarantees(features, "serializable", 0).features
        self._options = dict(storage_options or {})
        self._credentials = credentials
        self._store = store or self._open(str(root))
        self._engine = self._choose(engine, spark)
        self._catalog = Catalog(self._store, self._environment, self._open, default_format, catalogs)
        self._chores = Chores(self._environment)
        self._leases = Leases(
            self._store, self._environment, lease_seconds, IDLE_SECONDS / LEASE_SECONDS * lease_seconds
        )

    def __repr__(self) -> str:
        return f"Lake({self.url!r}, engine={self._engine.name!r})"

    @property
    def url(self) -> str:
        """Where the lake lies, without secrets."""
        return self._store.url

    @property
    def engine(self) -> str:
        """What does the data work: `spark` or `local`."""
        return self._engine.name

    def transaction(
        self, features: Features | None = None, *, isolation: str = "serializable", slack: int = 0
    ) -> Transaction:
        """Start a transaction; use it in a `with` block.

        With `lakevilla.I` it sees all tables at one instant. `isolation` is then `serializable` (also called
        `write-serializable`) or `snapshot`, which lets two transactions commit that each read what the
        other changes. `slack` is how many versions old what it only reads may be when it commits: above 0
        it is bounded staleness, not serializable.
        """
        picked = guarantees(self._features if features is None else features, isolation, slack)
        begun = begin(self._catalog, self._engine, self._environment, self._chores, picked)
        return Transaction(begun, self._leases)

    def resume(self, txn: str) -> Transaction:
        """Continue a transaction with R of several statements whose client died, after its last statement.

        Its state is restored: features, isolation and slack, the instant or the versions that it reads, own
        changes, tables that it created or dropped, and savepoints; `tx.statements` says how many statements
        had finished. With R alone only the table that it had changed can be changed. The old client is
        fenced: if it is still alive, whichever of the two commits first is the transaction, and the other
        ends as `Fenced`. A statement that was not SQL cannot be redone any more: `Conflict` if it would have
        to be.

        `InvalidInput` if there is nothing to resume: it is committed (the error says as which version or
        entry), it was aborted, it changed nothing, it had only one statement, or with CT or I it was not open
        for a second.
        """
        check_id(txn)
        begun = resume(self._catalog, self._engine, self._environment, self._leases, self._chores, txn)
        if begun is None:
            raise InvalidInput(f"transaction {txn} has left nothing to resume. {self.outcome(txn).advice}")
        return Transaction(begun, self._leases)

    def outcome(self, txn: str) -> Outcome:
        """What became of a transaction, after a crash or an unknown commit. `tx.id` and receipts name it.

        Takes up to a lease time (10 s) where something suggests that its client still lives.
        """
        check_id(txn)
        return find_outcome(self._catalog, self._environment, self._leases, txn)

    def close(self) -> None:
        """Wait for what is still done beside the caller, such as removing the records of transactions that
        have ended. What a program leaves that ends without it is removed by vacuum."""
        self._chores.finish()

    def run(
        self,
        work: Callable[[Transaction], Any],
        retries: int = 10,
        features: Features | None = None,
        *,
        isolation: str = "serializable",
        slack: int = 0,
    ) -> Receipt:
        """Call `work(tx)` in a transaction and commit it; when what it read has changed call it again, up to
        `retries` times more."""
        return run(self.transaction(features, isolation=isolation, slack=slack), work, retries)

    def sync(self, name: str | None = None, *, accept_torn: bool = False) -> dict[str, int]:
        """Make what other clients wrote part of the lake's instant, of one table or of all; the versions that
        were new, by table. Transactions with isolation do it by themselves for the tables that their first
        statement names. Of all tables, it also renews the hints of Iceberg tables that are behind.

        `accept_torn=True` takes torn tables as they are (see `explain`): they can be changed again.
        """
        return sync(self._catalog, self._environment, name, accept_torn)

    def tables(self) -> list[str]:
        """The names of all tables: registered ones, and those that lie in the lake's root."""
        return self._catalog.names(Meter())

    @overload
    def history(self, name: str, limit: int | None = None) -> list[HistoryEntry]: ...

    @overload
    def history(self, name: None = None, limit: int | None = None) -> list[LakeEntry]: ...

    def history(
        self, name: str | None = None, limit: int | None = None
    ) -> list[HistoryEntry] | list[LakeEntry]:
        """The versions of a table, newest first; without a name the entries of the lake, each of which left
        it at an instant that `lake.at(seq=...)` shows."""
        if limit is not None and limit < 0:
            raise InvalidInput(f"limit is {limit}: it cannot be negative")
        if name is None:
            return Cuts(self._catalog.log(Meter())).history(limit)
        return list(self._catalog.pin(name, Meter()).table.history(limit))

    def at(self, when: Any = None, /, *, seq: int | None = None, tag: str | None = None) -> PastLake:
        """The lake as it was at one instant, for reading: all tables together, those too that were dropped
        since. By the number of an entry (see `lake.history()` and receipts), by tag, or by time: then it is
        the newest entry that had been written by then."""
        head = find(self._catalog, when, seq, tag)
        return PastLake(self._catalog, self._engine, self._environment, head)

    def tag(self, name: str, at: Any = None) -> int:
        """Give an instant a name; vacuum keeps what it needs until `lake.untag`. The number of its entry.

        `at` is the number of an entry, another tag, a time, or a lake that is seen at an instant. Left out,
        it is now, with what other clients have written until now (`lake.sync`).
        """
        check_tag_name(name)
        if at is None:
            self.sync()
        return tag_instant(self._catalog, self._environment, name, self._instant(at))

    def untag(self, name: str) -> None:
        """Take the name of an instant back."""
        untag_instant(self._catalog, self._environment, name)

    def tags(self) -> dict[str, int]:
        """The names of instants, and their entries."""
        head = self._catalog.head(Meter(), fresh=True)
        return {} if head is None else dict(sorted(head.tags.items()))

    def export(self, at: Any = None) -> Export:
        """An instant as a list of tables and their versions, and as SQL for DuckDB, Spark and Trino, so that
        readers who know nothing of LakeVilla see all tables at one instant too. `at` as in `lake.tag`; left
        out, it is the newest instant (`lake.sync` brings in what other clients have written)."""
        head = self._instant(at)
        return export(self._catalog, head if head is not None else Cuts(self._catalog.log(Meter())).now)

    def vacuum(
        self,
        name: str | None = None,
        *,
        dry_run: bool = True,
        retention_hours: float | None = None,
        foreign: bool = False,
        dropped: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> VacuumReport:
        """Delete what no reader and no transaction can need any more, of one table or of the whole lake.

        Only says what it would delete, unless `dry_run=False`. Files go when the log removed them longer ago
        than the retention (the table's `delta.deletedFileRetentionDuration`, else 7 days; `retention_hours`
        overrides it, from 24 on), or when a LakeVilla transaction uploaded them and ended without them.
        `foreign=True` also takes old files in the table's folder that no version names, whoever wrote them;
        `dropped=True` the folders of dropped tables. Versions older than the retention cannot be read
        afterwards. `progress` is called with lines of text on long work.
        """
        wish = Wish(dry_run, retention_ms(retention_hours), foreign, dropped)
        return vacuum(self._view, name, wish, progress or logger.info)

    def recover(self, name: str | None = None, *, give_up: str | None = None) -> RecoverReport:
        """Release what dead clients hold, complete what they left half done, and list what they left behind.

        Takes up to a lease time (10 s), because a client counts as dead only after its lease has expired.
        Waiting clients do the same; a second call finds nothing to do.

        `give_up` names a table that a decided transaction cannot be published on and never will be, for
        example because its bucket is gone. The transaction is then rolled back on its other tables, and this
        table is marked as torn. A table whose log is deleted or damaged needs no such word.
        """
        return recover(self._view, name, give_up)

    def status(self) -> Status:
        """Who waits to write, who waits for whom, and which transactions left records. Changes nothing."""
        return status(self._view)

    def explain(self, what: str | None = None) -> Explanation:
        """Why a transaction waits or had to give way and what happens next, in sentences. Changes nothing.

        `what` is the id of a transaction (`tx.id`, `Conflict.transaction`) or the name of a table; left
        out, it is all that waits or is half done. Takes up to a lease time (10 s) where somebody holds a
        place in a queue of writers, because only who shows no sign of life for so long counts as gone.
        """
        return explain(self._view, what)

    def _instant(self, at: Any) -> Head | None:
        if at is None:
            return None
        return find(self._catalog, seq=at.seq) if isinstance(at, PastLake) else find(self._catalog, at)

    @property
    def _view(self) -> LakeView:
        return LakeView(self._catalog, self._store, self._environment, self._leases, Meter())

    def _run(self, statement: Statement) -> Any:
        with self.transaction() as tx:
            return tx._run(statement)

    def _open(self, url: str) -> Store:
        return open_store(url, self._options, environment=self._environment, credentials=self._credentials)

    def _choose(self, engine: str | Engine | None, spark: Any) -> Engine:
        if engine is None:
            reachable = find_spec("pyspark") is not None and not self.url.startswith("memory:")
            engine = "spark" if spark is not None or reachable else "local"
        if not isinstance(engine, str):
            if not hasattr(engine, "schema_of"):
                raise InvalidInput(
                    f"{engine!r} is no engine: use engine='local' or engine='spark'; a session of Spark is "
                    "given as spark=..."
                )
            return engine
        if engine == "local":
            # Imported when it is wanted: a client that brings its own engine needs no DuckDB.
            from lakevilla.engines.local.engine import LocalEngine

            return LocalEngine(self._environment)
        if engine == "spark":
            try:
                from lakevilla.engines.spark.engine import SparkEngine
            except ImportError as error:
                raise InvalidInput(
                    "engine='spark' needs PySpark: pip install 'lakevilla[spark]', or use engine='local'"
                ) from error
            return SparkEngine(self._environment, spark, self._options, self._credentials, self.url)
        raise InvalidInput(f"there is no engine {engine!r}: use engine='local' or engine='spark'")
