"""PyIceberg and DuckDB as readers of Iceberg tables that are kept by files. For tests."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_avro
import duckdb_extension_httpfs
import duckdb_extension_iceberg

from tests.legacy.test_delta_clients import sorted_rows
from tests.support.iceberg_files import FilesCatalog

Rows = list[dict[str, Any]]


def by_pyiceberg(url: str, version: int | None = None, options: Mapping[str, str] | None = None) -> Rows:
    """The rows of a version, or of the newest one."""
    catalog = FilesCatalog(options)
    table = catalog.load_table(url) if version is None else catalog.at(url, version)
    return sorted_rows(table.scan().to_arrow())


def by_duckdb(url: str, version: int | None = None, options: Mapping[str, str] | None = None) -> Rows:
    number = FilesCatalog(options).newest(url) if version is None else version
    with duck(options) as connection:
        place = f"{url}/metadata/v{number}.metadata.json"
        return sorted_rows(connection.sql(f"SELECT * FROM iceberg_scan('{place}')").to_arrow_table())


def duck(options: Mapping[str, str] | None = None) -> duckdb.DuckDBPyConnection:
    """A connection that reads Iceberg tables, on the server of these options if there are some."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    needed = [duckdb_extension_avro, duckdb_extension_iceberg]
    for package in needed if options is None else [duckdb_extension_httpfs, *needed]:
        (extension,) = Path(str(package.__file__)).parent.rglob("*.duckdb_extension")
        connection.execute(f"LOAD '{extension}'")
    if options is not None:
        endpoint = options["AWS_ENDPOINT_URL"].partition("://")[2]
        connection.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID '{options['AWS_ACCESS_KEY_ID']}', "
            f"SECRET '{options['AWS_SECRET_ACCESS_KEY']}', REGION '{options['AWS_REGION']}', "
            f"ENDPOINT '{endpoint}', URL_STYLE 'path', USE_SSL false)"
        )
    return connection
