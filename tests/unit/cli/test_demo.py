"""The demo: its story is true each time that it runs."""

import re
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.cli.main import main


def test_demo_tells_the_story_and_leaves_the_lake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "lake"
    assert main(["demo", "--lake", str(folder), "--engine", "local"]) == 0
    out = capsys.readouterr().out
    totals = re.findall(r"(.*): accounts .* total (\S+)", out)
    assert [total for whom, total in totals if "in between" in whom] == ["300.00", "350.00"]
    assert "ended by signal 9" in out
    versions = re.findall(r"^ +(accounts|savings) +version (\d+): (the|not)", out, re.M)
    assert [(table, said) for table, _, said in versions] == [
        ("accounts", "the"),
        ("savings", "not"),
        ("savings", "the"),
    ]
    assert "1 statement was run again" in out
    assert "\033" not in out
    lake = lv.Lake(folder, engine="local")
    assert lake.sql("SELECT balance FROM accounts WHERE owner = 'Ada'").collect()[0][0] == 140
    assert lake.doctor(files=False).healthy
