"""The commands that the page of the command shows do what it says that they do."""

import re
import shlex
from pathlib import Path

import pytest

from lakevilla.cli.main import main
from tests.docs.examples import ROOT
from tests.docs.messages import shape

PAGE = "docs/command.md"
_BLOCK = re.compile(r"```console\n(.*?)^```", re.M | re.S)


def _sessions() -> list[tuple[str, str]]:
    """Each command line of the page, and what is shown below it."""
    lines = "".join(_BLOCK.findall((ROOT / PAGE).read_text()))
    return [
        (part.partition("\n")[0], part.partition("\n")[2])
        for part in re.split(r"^\$ ", lines, flags=re.M)[1:]
    ]


def test_commands_of_the_page_show_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    found = _sessions()
    assert len(found) > 10
    for line, expected in found:
        program, *arguments = shlex.split(line)
        if program == "cat":
            Path(arguments[0]).write_text(expected)
            continue
        assert program == "lakevilla"
        code = main(arguments)
        told = capsys.readouterr()
        shown = [shape(one) for one in (told.out + told.err).rstrip().splitlines()]
        assert shown == [shape(one) for one in expected.rstrip().splitlines()], line
        assert (code != 0) == told.err.startswith("lakevilla: "), line


def test_exit_codes_of_the_page_are_those_of_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    told = capsys.readouterr().out
    codes = re.findall(r"^  (\d+) +\S", told[told.index("exit codes:") :], re.M)
    page = (ROOT / PAGE).read_text()
    assert codes == re.findall(r"^\| (\d+) \|", page[page.index("## Exit codes") :], re.M)
