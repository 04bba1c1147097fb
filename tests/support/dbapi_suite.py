"""The compliance suite of PEP 249 from PyPI against `lakevilla.dbapi`: `python -m tests.support.dbapi_suite`.

It needs `dbapi-compliance` (`make compliance` brings it), which the lock file does not have.
"""

import tempfile
import unittest

import dbapi20  # type: ignore[import-not-found] # of dbapi-compliance

from lakevilla import dbapi


class Compliance(dbapi20.DatabaseAPI20Test):  # type: ignore[misc] # has no types
    """The suite's own tests, with types that a lake has, and without those that are for drivers to write."""

    driver = dbapi
    ddl1 = f"create table {dbapi20.DatabaseAPI20Test.table_prefix}booze (name string)"
    ddl2 = f"create table {dbapi20.DatabaseAPI20Test.table_prefix}barflys (name string, drink string)"

    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.connect_args = (self.folder.name,)
        self.connect_kw_args = {"engine": "local"}

    def tearDown(self) -> None:
        self.folder.cleanup()

    def test_nextset(self) -> None:
        """PEP 249: databases that give no further result sets leave `nextset` out."""
        assert not hasattr(dbapi.Cursor, "nextset")

    def test_setoutputsize(self) -> None:
        connection = self._connect()
        connection.cursor().setoutputsize(1, 0)
        connection.close()

    def test_non_idempotent_close(self) -> None:
        """The suite says that reasonable persons differ about it: to close twice does not raise an error
        here."""
        connection = self._connect()
        connection.close()
        connection.close()


if __name__ == "__main__":
    unittest.main()
