"""One statement on two engines: what each says, and whether it is the same."""

import math
import re
import shutil
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import lakevilla as lv
from lakevilla.sql.parser import parse
from lakevilla.sql.statements import Query
from tests.conformance.engines.choice import DELETES, VECTORS
from tests.conformance.engines.comparison import difference
from tests.conformance.engines.tables import TABLES

# The order in which floats are added up is nobody's promise, so their last digits are not compared.
_ADDED_UP = re.compile(r"\b(sum|avg|mean|std\w*|var\w*)\(", re.IGNORECASE)
_DIGITS = 13


@dataclass(frozen=True)
class Outcome:
    """`refused` is Unsupported, `invalid` InvalidInput; a change gives its counts."""

    kind: str
    answer: Any = None

    @classmethod
    def of(cls, lake: lv.Lake, text: str) -> "Outcome":
        try:
            answer = lake.sql(text)
            return cls("answered", answer.toArrow() if hasattr(answer, "toArrow") else answer)
        except lv.Unsupported as error:
            return cls("refused", str(error))
        except (lv.InvalidInput, PySparkException, Py4JJavaError) as error:
            # A result on Spark is a DataFrame, which says itself what it finds wrong when it runs.
            return cls("invalid", str(error))


def compared(text: str, local: Outcome, spark: Outcome) -> str | None:
    """What differs. Where Spark finds a statement wrong, the local engine may refuse it without knowing."""
    wrong = ("invalid", "refused")
    if spark.kind in wrong and local.kind in wrong:
        return None
    if local.kind != spark.kind:
        return f"local {local.kind}: {_shown(local)}\nspark {spark.kind}: {_shown(spark)}"
    if isinstance(local.answer, pa.Table):
        digits = _DIGITS if _ADDED_UP.search(text) else None
        return difference(local.answer, spark.answer, ordered=_is_ordered(text), digits=digits)
    return None if local.answer == spark.answer else f"{local.answer} and {spark.answer}"


def fill(lake: lv.Lake, formats: str) -> None:
    """The tables, each in two files; `pairs` with older versions."""
    queues = cycle(("delta", "iceberg") if formats == "mixed" else (made_as(formats),))
    for (name, table), table_format in zip(TABLES.items(), queues, strict=False):
        lake.create(name, table.schema, format=table_format)
        middle = math.ceil(table.num_rows / 2) if name != "pairs" else table.num_rows - 1
        for part in (table.slice(0, middle), table.slice(middle)):
            if part.num_rows:
                lake.append(name, part)


def made_as(formats: str) -> str:
    """The format of tables that are made without naming one."""
    return {"mixed": "delta", VECTORS: "delta", DELETES: "iceberg"}.get(formats, formats)


class Twins:
    """A lake for each engine, with equal tables; `again` puts them back as they were."""

    def __init__(self, folder: Path, session: Any, formats: str) -> None:
        self._folder, self._session = folder, session
        self._formats = formats
        for name in ("local", "spark"):
            fill(lv.Lake(folder / name, engine="local", merge_on_read=formats in (VECTORS, DELETES)), formats)
            # An Iceberg table knows where it lies, so each lake has a copy of its own to come back from.
            shutil.copytree(folder / name, folder / f"{name}-first")
        self._open()

    def again(self) -> None:
        for name in ("local", "spark"):
            shutil.rmtree(self._folder / name)
            shutil.copytree(self._folder / f"{name}-first", self._folder / name)
        self._open()

    def _open(self) -> None:
        options: dict[str, Any] = {
            "default_format": made_as(self._formats),
            "merge_on_read": self._formats in (VECTORS, DELETES),
        }
        self.local = lv.Lake(self._folder / "local", engine="local", **options)
        self.spark = lv.Lake(self._folder / "spark", spark=self._session, **options)
        # What Spark wrote, seen without Spark.
        self.written = lv.Lake(self._folder / "spark", engine="local")


def _is_ordered(text: str) -> bool:
    statement = parse(text, {})
    return isinstance(statement, Query) and statement.tree.args.get("order") is not None


def _shown(outcome: Outcome) -> str:
    return (
        str(outcome.answer.to_pydict())[:300] if isinstance(outcome.answer, pa.Table) else str(outcome.answer)
    )
