"""A Spark of our own: a local one, or that of the Spark Connect server that the environment names.

It is quiet: Spark's own start tells a dozen things that the user did not ask for. Errors are told, and on a
terminal long jobs show Spark's progress bar, unless the lake reports progress itself.
"""

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from lakevilla.engines.spark.session import java, packages
from lakevilla.environment import Environment
from lakevilla.errors import InvalidInput

# A user that has set these has a Spark with settings, logging and Java of its own.
_OWN_SPARK = ("PYSPARK_GATEWAY_PORT", "SPARK_CONF_DIR", "SPARK_HOME")
_LOGGING = Path(__file__).with_name("log4j2.properties")
_NEWEST = 21

# Java itself warns of a module that Spark always asks for, before any setting is read: the first line goes,
# unless it is another, and all that follows passes as it comes. Ctrl-C is for us, not for this.
_WITHOUT_FIRST_WARNING = """trap '' INT
IFS= read -r line || exit
case $line in "WARNING: Using incubator modules"*) ;; *) printf '%s\\n' "$line" ;; esac
exec cat"""

# PySpark has no types for it.
_launch_gateway: Any = launch_gateway
_filters: list["subprocess.Popen[bytes]"] = []


def start(url: str, environment: Environment, shows_jobs: bool = True) -> Any:
    """The session for a lake at this URL, which may show its jobs on a terminal; InvalidInput says what is
    missing where Spark does not start."""
    builder: Any = SparkSession.builder
    if "SPARK_REMOTE" in os.environ or os.environ.get("SPARK_API_MODE", "").lower() == "connect":
        return builder.getOrCreate()
    logging.getLogger("lakevilla.notices").info("Starting Spark ...")
    own = not any(name in os.environ for name in _OWN_SPARK)
    if own and (trouble := java.trouble()):
        raise InvalidInput(trouble)
    settings = _settings(url, shows_jobs)
    try:
        if own and SparkContext._gateway is None and os.name == "posix":
            _start_quietly(settings, environment)
        return builder.config(map=settings).getOrCreate()
    except PySparkRuntimeError as error:
        why = f"Spark cannot be started: {str(error).partition(chr(10))[0]}. engine='local' works without it."
        raise InvalidInput(java.trouble(newest=_NEWEST) or why) from error


def _settings(url: str, shows_jobs: bool) -> dict[str, str]:
    cores = os.cpu_count() or 1
    return {
        "spark.app.name": "LakeVilla",
        "spark.master": "local[*]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(shows_jobs and sys.stderr.isatty()).lower(),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(2 * cores),
        "spark.sql.warehouse.dir": os.path.join(tempfile.gettempdir(), "lakevilla-warehouse"),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        **packages.settings(url),
    }


def _start_quietly(settings: Mapping[str, str], environment: Environment) -> None:
    """Start the JVM and its context; the session finds them."""
    logging = {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"}
    conf = SparkConf().setAll([*settings.items(), *logging.items()])
    # In another thread, where Ctrl-C does not reach: a JVM whose launch is broken off would stay for ever.
    gateway, _ = environment.fan_out([lambda: _launched(conf), lambda: None])
    SparkContext(conf=conf, gateway=gateway)


def _launched(conf: SparkConf) -> Any:
    """A JVM without the warning; it ends when this process does."""
    passing = subprocess.Popen(["sh", "-c", _WITHOUT_FIRST_WARNING], stdin=subprocess.PIPE, stdout=2)
    # It ends when the JVM does; until then something must hold it.
    _filters.append(passing)
    assert passing.stdin is not None
    with passing.stdin as end:
        return _launch_gateway(conf, {"stderr": end})
