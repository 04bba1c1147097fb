"""Which engine a lake works with. Engines are imported when they are wanted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from lakevilla.engines.hidden_pandas import find_pandas
from lakevilla.engines.port import Engine
from lakevilla.environment import Environment
from lakevilla.errors import InvalidInput


@dataclass(frozen=True)
class EngineOptions:
    """What engines need of a lake: the user's Spark session if there is one, and how to reach the store."""

    environment: Environment
    spark: Any
    storage_options: Mapping[str, str]
    credentials: Callable[..., Any] | None
    url: str

    @property
    def spark_is_reachable(self) -> bool:
        """Whether Spark is installed and can read the lake's store."""
        return find_spec("pyspark") is not None and not self.url.startswith("memory:")


def choose_engine(engine: str | Engine | None, options: EngineOptions) -> Engine:
    """The engine of this name, or the one that was given; InvalidInput says which there are."""
    if engine is None:
        engine = "spark" if options.spark is not None or options.spark_is_reachable else "local"
    if not isinstance(engine, str):
        if not hasattr(engine, "schema_of"):
            raise InvalidInput(
                f"{engine!r} is not an engine: use engine='local' or engine='spark'; a Spark session is "
                "passed as spark=..."
            )
        return engine
    match engine:
        case "local":
            return _local(options)
        case "spark":
            return _spark(options)
        case "auto":
            from lakevilla.engines.auto import AutoEngine

            reachable = options.spark is not None or options.spark_is_reachable
            return AutoEngine(_local(options), (lambda: _spark(options)) if reachable else None)
    raise InvalidInput(f"unknown engine {engine!r}: use engine='local', engine='spark' or engine='auto'")


def attach(options: EngineOptions, name: str, tables: Callable[[Engine], Any]) -> None:
    """Show tables, which are made for a Spark engine, to the session of that engine as a catalog."""
    engine = _spark(options)
    from lakevilla.engines.spark.engine import SparkEngine

    assert isinstance(engine, SparkEngine)
    engine.attach(name, tables(engine))


def _local(options: EngineOptions) -> Engine:
    from lakevilla.engines.local.engine import LocalEngine

    return LocalEngine(options.environment)


def _spark(options: EngineOptions) -> Engine:
    find_pandas()
    try:
        from lakevilla.engines.spark.engine import SparkEngine
    except ImportError as error:
        raise InvalidInput(
            "engine='spark' needs PySpark: pip install 'lakevilla[spark]', or use engine='local'"
        ) from error
    return SparkEngine(
        options.environment, options.spark, options.storage_options, options.credentials, options.url
    )
