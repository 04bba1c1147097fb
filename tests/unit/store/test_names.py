"""Table names: what is fine, and what could leave the lake or be taken for something else."""

import pytest

from lakevilla.errors import InvalidInput
from lakevilla.store.names import check_table_name


@pytest.mark.parametrize(
    "name",
    ["accounts", "db.table", "Größe", "日本語", "a b", "A", "x" * 200, "1", "a'b\"c", "a..b", "a_", "🙂"],
)
def test_good_name_is_returned_as_it_is(name: str) -> None:
    assert check_table_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../x",
        "a/b",
        "a\\b",
        "a%2Fb",
        "%2e%2e",
        "_lakevilla",
        ".hidden",
        " a",
        "a ",
        "a\u00a0",
        "a\x00b",
        "a\nb",
        "a\x7f",
        "a\u202eb",
        "a\u200bb",
        "a\u2028b",
        "\ud800",
        "x" * 201,
        "ü" * 101,
        "e\u0301",
    ],
)
def test_bad_name_is_refused_with_the_rule(name: str) -> None:
    with pytest.raises(InvalidInput, match="a table's name has 1 to 200 bytes"):
        check_table_name(name)
