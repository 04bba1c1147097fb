"""The lake: the only place that connects stores, tables, engines and transactions."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from types import TracebackType
from typing import Any, Self, overload

from lakevilla.answers import HistoryEntry, LakeEntry, Outcome, Receipt
from lakevilla.display import Records
from lakevilla.engines.choice import EngineChoice, EngineOptions
from lakevilla.engines.port import Engine, Source
from lakevilla.engines.spark.session.java import trouble
from lakevilla.environment import Environment, SystemEnvironment
from lakevilla.errors import InvalidInput
from lakevilla.maintenance.doctor.checks import diagnose
from lakevilla.maintenance.doctor.diagnosis import Diagnosis
from lakevilla.maintenance.queue_survey import LakeView
from lakevilla.maintenance.register import register_all
from lakevilla.maintenance.reports import RegisterReport
from lakevilla.maintenance.upkeep import Upkeep
from lakevilla.markers.lease import IDLE_SECONDS, LEASE_SECONDS, Leases
from lakevilla.model import Features
from lakevilla.progress import Progress, Reporter
from lakevilla.session.session import Session
from lakevilla.session.settings import Settings
from lakevilla.sql.script.command_parser import command
from lakevilla.sql.script.commands import SessionCommand
from lakevilla.store.locations import local_url
from lakevilla.store.metered import Meter
from lakevilla.store.open import open_store
from lakevilla.store.port import Store
from lakevilla.tables.catalog import Catalog
from lakevilla.transaction.guarantees import guarantees
from lakevilla.transaction.instants.sync import sync
from lakevilla.transaction.lifecycle.background import BackgroundTasks
from lakevilla.transaction.lifecycle.rerun import run
from lakevilla.transaction.lifecycle.start import begin
from lakevilla.transaction.outcomes.outcome import check_id, find_outcome
from lakevilla.transaction.redo.resume import resume
from lakevilla.transaction.statements.statement import Statement
from lakevilla.transaction.transaction import Transaction
from lakevilla.transaction.verbs import Verbs
from lakevilla.travel.attached import Attached
from lakevilla.travel.instant_verbs import InstantVerbs
from lakevilla.travel.instants import find, tag_instant
from lakevilla.travel.past import PastLake
from lakevilla.travel.restore import RestoreReport, plan_restore
from lakevilla.versions.instants import Instants
from lakevilla.versions.tags import check_tag_name

ALL = Features.R | Features.CT | Features.I


class Lake(Verbs, Upkeep, InstantVerbs):
    """Tables below one root, on a local directory or an object store.

        lake = lv.Lake("./lake")
        lake.create("accounts", "id BIGINT, balance DECIMAL(12, 2)")
        lake.sql("INSERT INTO accounts VALUES (1, 100.00)")
        lake.sql("SELECT * FROM accounts").show()

    Opening a lake sends no request and writes nothing. A `Lake` may be used from many threads; after a
    fork the child opens its own connections.

    - `spark` is the Spark session to use.
    - `engine="spark"` takes the active session, or starts a local one when a statement first needs it;
      `engine="local"` works in this process, without Java; `engine="auto"` takes Spark for statements that
      local cannot run, or over tables of more than 1 GiB, and local for all others. The default is Spark if
      PySpark is installed and Spark can reach the lake's store, else local.
    - `storage_options` are the options of the store, such as `AWS_ENDPOINT_URL`.
    - `credentials` is a callable that returns fresh credentials whenever the store needs them.
    - `features` are the features of every transaction that picks none, and of the lake's own methods.
    - `default_format` is the format of new tables that name none, `"delta"` or `"iceberg"`. With
      `merge_on_read=True`, changes of new tables delete rows where they are, which not every client reads.
    - `catalogs` are PyIceberg's options of catalogs that keep Iceberg tables, by the catalog's name. For
      other catalogs PyIceberg's own configuration applies.
    - `lease_seconds` is the lease time: a client counts as dead after its lease did not change for so long.
      All clients of a lake should use the same value.
    - `progress` is called with a `Progress` a few times a second, while a statement takes longer than a
      second.
    - `store` and `environment` are for tests.
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
        merge_on_read: bool = False,
        catalogs: Mapping[str, Mapping[str, str]] | None = None,
        environment: Environment | None = None,
        store: Store | None = None,
        lease_seconds: float = LEASE_SECONDS,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        if not isinstance(root, str | PurePath) or not str(root):
            raise InvalidInput(
                f"cannot open a lake at {root!r}: expected a directory, or a URL such as s3://bucket/path"
            )
        self._environment = environment or SystemEnvironment()
        self._features = guarantees(features, "serializable", 0).features
        self._options = dict(storage_options or {})
        self._credentials = credentials
        self._store = store or self._open(str(root))
        self._reporter = Reporter(progress, self._environment)
        url, reporter = self._store.url, self._reporter
        options = EngineOptions(self._environment, spark, self._options, credentials, url, reporter)
        self._choice = EngineChoice(engine, options)
        self._catalog = Catalog(
            self._store, self._environment, self._open, default_format, catalogs, merge_on_read
        )
        self._background = BackgroundTasks(self._environment)
        self._leases = Leases(
            self._store, self._environment, lease_seconds, IDLE_SECONDS / LEASE_SECONDS * lease_seconds
        )

    def __repr__(self) -> str:
        return f"Lake({self.url!r}, engine={self.engine!r})"

    @property
    def url(self) -> str:
        """The URL of the lake's root, without secrets."""
        return self._store.url

    @property
    def engine(self) -> str:
        """The engine that does the data work: `spark`, `local` or `auto`."""
        return self._choice.name

    @property
    def _engine(self) -> Engine:
        return self._choice.get()

    def transaction(
        self,
        features: Features | None = None,
        *,
        isolation: str = "serializable",
        slack: int = 0,
        once: tuple[str, int] | None = None,
    ) -> Transaction:
        """Start a transaction; use it in a `with` block.

        With `lakevilla.I` it reads all tables at one instant. `isolation` is then `serializable` (also called
        `write-serializable`) or `snapshot`, which allows write skew: two transactions commit that each read
        what the other changes. `slack` is how many versions old a table that it only read may be at the
        commit: above 0 it is bounded staleness, not serializable.

        `once=("app", batch)` names a batch of a pipeline, which is committed once, however often and by
        however many clients it is run: if this batch of the app, or a later one, is committed already, the
        commit changes nothing, and `receipt.replayed` says so. `tx.replayed` says it when the transaction
        begins, so that the work can be left out. Numbers grow from batch to batch. It needs CT or I.
        """
        picked = guarantees(self._features if features is None else features, isolation, slack, once)
        start = begin(self._catalog, self._engine, self._environment, self._background, picked)
        return Transaction(start, self._leases)

    def session(
        self, features: Features | None = None, *, isolation: str = "serializable", slack: int = 0
    ) -> Session:
        """A SQL session: texts of several statements with BEGIN, COMMIT, ROLLBACK and SAVEPOINT. Use it in a
        `with` block. The arguments are its first settings, which SET changes."""
        picked = guarantees(self._features if features is None else features, isolation, slack)
        return Session(self, Settings(picked.features, picked.isolation, picked.slack))

    def sql(self, text: str, /, *, views: Mapping[str, object] | None = None, **parameters: Any) -> Any:
        """Run one statement as a transaction of its own; `:name` in the text takes the parameter of that
        name. For several statements, or for BEGIN and COMMIT, use `lake.session()`. `views` is data that the
        statement reads under names, such as `views={"df": frame}` for `SELECT * FROM df`.

        A query gives a result, a change gives counts of rows, a definition gives None. Statements about the
        lake (SHOW TAGS, SHOW HISTORY, EXPLAIN CONFLICT, TAG, VACUUM, queries with AT) run here too.
        """
        found = command(text, parameters)
        if found is None or isinstance(found, SessionCommand):
            return super().sql(text, views=views, **parameters)
        if views:
            raise InvalidInput("this statement reads no views: leave views=... out")
        return self.session().sql(text, **parameters)

    def resume(self, txn: str) -> Transaction:
        """Continue a transaction with R of several statements whose client died, after its last statement.

        Its state is restored: features, isolation and slack, the instant or the versions that it reads, own
        changes, tables that it created or dropped, and savepoints; `tx.statements` says how many statements
        had finished. With R alone only the table that it had changed can be changed. If the old client is
        still alive, the client that commits first wins, and the other one ends with `Fenced`. A statement
        that was not SQL cannot be redone: `Conflict` if that would be necessary.

        `InvalidInput` if there is nothing to resume: it is committed (the error says as which version or
        entry), it was aborted, it changed nothing, it had only one statement, or with CT or I it was not open
        for a second.
        """
        check_id(txn)
        start = resume(self._catalog, self._engine, self._environment, self._leases, self._background, txn)
        if start is None:
            raise InvalidInput(
                f"transaction {txn} cannot be resumed: it left no records. {self.outcome(txn).advice}",
                transaction=txn,
            )
        return Transaction(start, self._leases)

    def outcome(self, txn: str) -> Outcome:
        """The outcome of a transaction, after a crash or an unknown commit. `tx.id` and receipts name it.

        Takes up to a lease time (10 s) if its client may still be alive.
        """
        check_id(txn)
        return find_outcome(self._catalog, self._environment, self._leases, txn)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Wait for background work, such as removing the records of ended transactions: what a program leaves
        is removed by vacuum. A `with` block does the same at its end. The lake can be used afterwards."""
        self._background.finish()

    def run(
        self,
        work: Callable[[Transaction], Any],
        retries: int = 10,
        features: Features | None = None,
        *,
        isolation: str = "serializable",
        slack: int = 0,
        once: tuple[str, int] | None = None,
    ) -> Receipt:
        """Call `work(tx)` in a transaction and commit it; if a value that it read has changed, call it again,
        at most `retries` times. With `once` as in `transaction`, `work` is not called for a batch that is
        committed already."""
        return run(self.transaction(features, isolation=isolation, slack=slack, once=once), work, retries)

    def sync(self, name: str | None = None, *, accept_torn: bool = False) -> dict[str, int]:
        """Adopt what other clients wrote into the lake's instant, for one table or for all. Returns the
        adopted versions, by table. Transactions with isolation do this automatically for the tables that they
        touch. Without a name it also updates stale hints of Iceberg tables.

        `accept_torn=True` accepts torn tables as they are (see `explain`): they can be changed again.
        """
        return sync(self._catalog, self._environment, name, accept_torn)

    def tables(self) -> list[str]:
        """The names of all tables: registered ones, and those in the lake's root."""
        return self._catalog.names(Meter())

    def views(self) -> dict[str, str]:
        """The views of the lake, with the texts of their queries."""
        head = self._catalog.head(Meter(), fresh=True)
        return {} if head is None else {view.name: view.text for _, view in sorted(head.views.items())}

    def register_all(self, folder: str | PurePath, *, prefix: str = "") -> RegisterReport:
        """Register every Delta and Iceberg table below a folder or a warehouse, up to three levels deep.

        A table is named after its folders, as in `sales.orders`, with `prefix` before that. `folder` is a URL
        or a path on this machine. A table that cannot be registered is skipped, and the report says why; so
        are tables that the lake has already. A folder without tables is InvalidInput. Each table is an entry
        of the global log of its own: after an error the call can be repeated.
        """
        url = str(folder) if "://" in str(folder) else local_url(str(folder))
        return register_all(self._catalog, self._environment, url, prefix, self.register)

    @overload
    def history(self, name: str, limit: int | None = None) -> list[HistoryEntry]: ...

    @overload
    def history(self, name: None = None, limit: int | None = None) -> list[LakeEntry]: ...

    def history(
        self, name: str | None = None, limit: int | None = None
    ) -> list[HistoryEntry] | list[LakeEntry]:
        """The versions of a table, newest first. Without a name, the entries of the global log:
        `lake.at(seq=...)` shows the instant after each."""
        if limit is not None and limit < 0:
            raise InvalidInput(f"limit cannot be negative; found {limit}")
        if name is None:
            return Records(Instants(self._catalog.log(Meter())).history(limit))
        return Records(self._catalog.pin(name, Meter()).table.history(limit))

    def at(self, when: Any = None, /, *, seq: int | None = None, tag: str | None = None) -> PastLake:
        """The lake as it was at one instant, for reading: all tables together, including those that were
        dropped since. The instant is given by the number of an entry (see `lake.history()` and receipts), by
        a tag, or by a time: then it is the newest entry at that time."""
        head = find(self._catalog, when, seq, tag)
        return PastLake(self._catalog, self._engine, self._environment, head)

    def attach(self, spark: Any = None, name: str = "lake", *, at: Any = None) -> None:
        """Show the lake's tables to a Spark session as a catalog, for reading by plain Spark SQL:

            lake.attach(spark, "lake")
            spark.sql("SELECT * FROM lake.orders JOIN lake.customers USING (customer_id)")

        All tables of one query are read at one instant, the newest one when Spark analyses the query, or
        `at`, which is as in `lake.tag`. To attach again under the same name replaces the lake or the instant.
        The name cannot be that of another catalog or schema of the session.
        A session that is left out is the one that the lake would use.
        """
        self._choice.attach(spark, name, partial(self._attached, at))

    def _attached(self, at: Any, engine: Engine) -> Attached:
        head = self._instant(at)
        past = None if head is None else PastLake(self._catalog, engine, self._environment, head)
        return Attached(self._catalog, engine, self._environment, past)

    def _source(self, name: str, at: Any) -> Source:
        """A table with its files, at an instant or at the newest one."""
        found = self._attached(at, self._engine).source(name)
        if found is None:
            raise self._catalog.missing(name, Meter(), None)
        return found

    def restore(
        self,
        *,
        seq: int | None = None,
        tag: str | None = None,
        at: Any = None,
        version: int | None = None,
        tables: Sequence[str] | None = None,
    ) -> RestoreReport:
        """Bring tables back to an earlier instant, all of them or those named, in one commit.

        The instant is the number of an entry (`seq`), a tag, a time (`at`) or what `lake.at` returned.
        `version` is a version of one table instead: `restore(version=3, tables=["t"])`. Rows and columns
        become what they were, and so do the partitioning and the constraints of a Delta table; other
        properties stay. Versions since then stay readable. Tables that were dropped since, and those that
        came later, are left alone, and the report says so. `InvalidInput` if files were deleted by vacuum;
        then nothing was changed.
        """
        plan = plan_restore(self._catalog, seq, tag, at, version, tables)
        with self.transaction(ALL) as tx:
            for statement in plan.statements():
                tx._run(statement)
        return RestoreReport.of(plan, tx.receipt)

    def tag(self, name: str, at: Any = None) -> int:
        """Name an instant; vacuum keeps what it needs until `lake.untag`. Returns the number of its entry.

        `at` is the number of an entry, another tag, a time, or what `lake.at` returned. The default is now,
        including what other clients have written until now (`lake.sync`).
        """
        check_tag_name(name)
        if at is None:
            self.sync()
        return tag_instant(self._catalog, self._environment, name, self._instant(at))

    def doctor(self, *, probe: bool = True, files: bool = True) -> Diagnosis:
        """Look for everything that can be wrong with the lake, its store and this machine, and say what to
        do. Changes nothing.

        The store: does it answer, do conditional writes work, may this client write, how far is the clock
        away. The machine: versions of libraries, Java. The lake: unsettled entries, torn tables, tables that
        cannot be read or are not those that the global log knows, dead clients, legacy writers, and what
        vacuum would delete. `probe=False` tries no write: the store gets no request but reads.
        `files=False` leaves the tables' files unlisted, which takes long on large lakes. Takes up to a lease
        time (10 s) if a ticket is held or records are left.
        """
        return diagnose(self._view, probe_store=probe, files=files, java=trouble)

    @property
    def _view(self) -> LakeView:
        return LakeView(self._catalog, self._store, self._environment, self._leases, Meter())

    def _run(self, statement: Statement) -> Any:
        with self.transaction() as tx:
            return tx._run(statement)

    def _open(self, url: str) -> Store:
        return open_store(url, self._options, environment=self._environment, credentials=self._credentials)
