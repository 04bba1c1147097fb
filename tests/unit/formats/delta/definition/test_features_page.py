"""docs/delta-features.md lists every feature that the code decides about, with the same stance."""

from pathlib import Path

from lakevilla.formats.delta.definition.features import FEATURES

PAGE = Path(__file__).parents[5] / "docs" / "delta-features.md"


def test_page_lists_exactly_the_features_that_the_code_knows() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    expected = [
        f"| `{feature.name}` | {feature.read.value} | {feature.write.value} |"
        for feature in FEATURES.values()
    ]
    assert rows == expected
