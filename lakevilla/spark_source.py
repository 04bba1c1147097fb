"""`spark.read.format("lakevilla")`: tables of a lake by Spark's Python data source API.

    from lakevilla.spark_source import LakeVillaSource

    spark.dataSource.register(LakeVillaSource)
    spark.read.format("lakevilla").option("table", "orders").option("at", "month-end").load("/data/lake")

The path is the lake's root. `table` is required; `at` is an instant as in `lake.at`: the number of an entry,
a tag or a time, without which the newest one is read. Other options are storage options.
"""

from lakevilla.engines.port import Source
from lakevilla.engines.spark.data_source import TableSource
from lakevilla.engines.spark.scan.file_urls import Access
from lakevilla.errors import InvalidInput
from lakevilla.lake import Lake


class LakeVillaSource(TableSource):
    """The format `lakevilla`, for reading."""

    @classmethod
    def name(cls) -> str:
        return "lakevilla"

    def opened(self) -> tuple[Source, Access]:
        options = dict(self.options)
        root, table = options.pop("path", None), options.pop("table", None)
        at = options.pop("at", None)
        if not root or not table:
            raise InvalidInput(
                "the format 'lakevilla' needs the lake's root and a table: "
                "spark.read.format('lakevilla').option('table', 'orders').load('/data/lake')"
            )
        lake = Lake(root, engine="local", storage_options=options)
        return lake._source(table, at), Access(options, None)
