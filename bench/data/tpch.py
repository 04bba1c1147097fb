"""TPC-H: rows by DuckDB's generator, and the texts of its queries, which Spark runs as they are."""

from collections.abc import Sequence
from pathlib import Path

import duckdb
import duckdb_extension_tpch

TABLES = ("customer", "orders", "lineitem")


def write_tables(folder: Path, scale_factor: float) -> dict[str, Path]:
    """Write `TABLES` as Parquet files; the path of each."""
    paths = {table: folder / f"{table}.parquet" for table in TABLES}
    with _connection() as connection:
        connection.execute(f"CALL dbgen(sf = {scale_factor})")
        for table, path in paths.items():
            connection.execute(f"COPY {table} TO '{path}' (FORMAT parquet)")
    return paths


def query_texts(numbers: Sequence[int]) -> dict[int, str]:
    """Queries by their numbers: 1, 3, 4, 6 and 12 need no other tables than `TABLES`."""
    with _connection() as connection:
        texts = dict(connection.execute("SELECT query_nr, query FROM tpch_queries()").fetchall())
    return {number: texts[number].strip().rstrip(";") for number in numbers}


def _connection() -> duckdb.DuckDBPyConnection:
    (extension,) = Path(duckdb_extension_tpch.__file__).parent.rglob("*.duckdb_extension")
    connection = duckdb.connect()
    connection.execute(f"LOAD '{extension}'")
    return connection
