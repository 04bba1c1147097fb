"""Which engine a lake works with. Engines are imported when they are wanted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from threading import Lock
from typing import Any

from lakevilla.engines.hidden_pandas import find_pandas
from lakevilla.engines.port import Engine
from lakevilla.environment import Environment
from lakevilla.errors import InvalidInput
from lakevilla.progress import Reporter


@dataclass(frozen=True)
class EngineOptions:
    """What engines need of a lake: the user's Spark session if there is one, and how to reach the store."""

    environment: Environment
    spark: Any
    storage_options: Mapping[str, str]
    credentials: Callable[..., Any] | None
    url: str
    reporter: Reporter

    @property
    def spark_is_reachable(self) -> bool:
        """Whether Spark is installed and can read the lake's store."""
        return find_spec("pyspark") is not None and not self.url.startswith("memory:")


class EngineChoice:
    """The engine of this name, or the one that was given; InvalidInput says which there are.

    The local engine comes when it is first needed: what moves no rows goes without its libraries.
    """

    def __init__(self, engine: str | Engine | None, options: EngineOptions) -> None:
        if engine is None:
            engine = "spark" if options.spark is not None or options.spark_is_reachable else "local"
        self._options = options
        self._lock = Lock()
        self._engine: Engine | None = None
        if not isinstance(engine, str):
            if not hasattr(engine, "schema_of"):
                raise InvalidInput(
                    f"{engine!r} is not an engine: use engine='local' or engine='spark'; a Spark session is "
                    "passed as spark=..."
                )
            self._engine = engine
        elif engine == "spark":
            self._engine = _spark(options)
        elif engine not in ("local", "auto"):
            raise InvalidInput(
                f"unknown engine {engine!r}: use engine='local', engine='spark' or engine='auto'"
            )
        self.name = engine if isinstance(engine, str) else engine.name

    def get(self) -> Engine:
        """The engine, the same one each time."""
        if self._engine is None:
            with self._lock:
                self._engine = self._engine or self._made()
        return self._engine

    def attach(self, spark: Any, name: str, tables: Callable[[Engine], Any]) -> None:
        """Show tables, which are made for a Spark engine, to this session as a catalog; without a session, to
        the one that the lake would use."""
        engine = _spark(self._options if spark is None else replace(self._options, spark=spark))
        from lakevilla.engines.spark.engine import SparkEngine

        assert isinstance(engine, SparkEngine)
        engine.attach(name, tables(engine))

    def _made(self) -> Engine:
        local = _local(self._options)
        if self.name == "local":
            return local
        from lakevilla.engines.auto import AutoEngine

        reachable = self._options.spark is not None or self._options.spark_is_reachable
        return AutoEngine(local, (lambda: _spark(self._options)) if reachable else None)


def _local(options: EngineOptions) -> Engine:
    from lakevilla.engines.local.engine import LocalEngine

    return LocalEngine(options.environment, options.reporter)


def _spark(options: EngineOptions) -> Engine:
    find_pandas()
    try:
        from lakevilla.engines.spark.engine import SparkEngine
    except ImportError as error:
        raise InvalidInput(
            "engine='spark' needs PySpark: pip install 'lakevilla[spark]', or use engine='local'"
        ) from error
    return SparkEngine(
        options.environment,
        options.spark,
        options.storage_options,
        options.credentials,
        options.url,
        options.reporter,
    )
