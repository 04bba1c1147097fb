"""`lakevilla sql`: scripts, formats, parameters, engines and exit codes."""

import io
import json
import logging
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import lakevilla as lv
from lakevilla.cli.arguments import parameter
from lakevilla.cli.main import main
from lakevilla.engines.local.engine import LocalEngine

LOCAL = "--engine=local"


@pytest.fixture
def folder(tmp_path: Path) -> str:
    lake = lv.Lake(tmp_path / "lake", engine="local", storage_options={"fsync": "false"})
    lake.create("accounts", "id BIGINT, owner STRING, balance DECIMAL(10, 2), day DATE, odd ARRAY<INT>")
    lake.sql(
        "INSERT INTO accounts VALUES (1, 'Ada | x', 1.50, DATE'2026-01-31', array(1, 2)), "
        "(2, NULL, NULL, NULL, NULL)"
    )
    return str(tmp_path / "lake")


def _told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_script_runs_as_a_whole_or_not_at_all(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = "BEGIN; UPDATE accounts SET owner = 'new'; SELECT count(*) AS n FROM accounts; COMMIT"
    out = _told(capsys, "sql", folder, script, LOCAL)
    assert "0 inserted, 2 updated, 0 deleted" in out
    assert "committed as entry 3: accounts version 2" in out
    failing = "BEGIN; DELETE FROM accounts; SELECT nothing FROM accounts; COMMIT"
    assert main(["sql", folder, failing, LOCAL]) == 1
    told = capsys.readouterr()
    assert "the transaction was rolled back" in told.err
    assert "still open" not in told.err
    assert "at line 1, column 37:" in told.err
    assert lv.Lake(folder, engine="local").read("accounts").count() == 2


def test_script_without_commit_is_rolled_back_and_fails(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", folder, "BEGIN; DELETE FROM accounts", LOCAL]) == 1
    assert "end it with COMMIT" in capsys.readouterr().err
    assert lv.Lake(folder, engine="local").read("accounts").count() == 2


def test_script_comes_from_a_file_or_standard_input(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "script.sql"
    script.write_text("-- a comment; here\nSELECT id FROM accounts WHERE id = :id;\n")
    arguments = ("--param", "id=2", "--format=csv", LOCAL)
    assert _told(capsys, "sql", folder, "-f", str(script), *arguments) == "id\n2\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(script.read_text()))
    assert _told(capsys, "sql", folder, "-", *arguments) == "id\n2\n"
    assert main(["sql", folder, "-f", str(tmp_path / "missing.sql"), LOCAL]) == 1
    assert "cannot be read" in capsys.readouterr().err


ROWS = "SELECT * FROM accounts ORDER BY id"


def test_rows_are_written_in_every_format(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(format: str) -> str:
        return _told(capsys, "sql", folder, ROWS, f"--format={format}", LOCAL)

    first = {"id": 1, "owner": "Ada | x", "balance": "1.50", "day": "2026-01-31", "odd": [1, 2]}
    second: dict[str, Any] = {"id": 2, "owner": None, "balance": None, "day": None, "odd": None}
    assert told("csv") == 'id,owner,balance,day,odd\n1,Ada | x,1.50,2026-01-31,"[1, 2]"\n2,,,,\n'
    assert json.loads(told("json")) == [first, second]
    assert [json.loads(line) for line in told("jsonl").splitlines()] == [first, second]
    assert told("markdown").splitlines()[:3] == [
        "| id | owner | balance | day | odd |",
        "|---|---|---|---|---|",
        "| 1 | Ada \\| x | 1.50 | 2026-01-31 | [1, 2] |",
    ]
    assert "|  1|Ada | x|   1.50|2026-01-31|[1, 2]|" in told("table")
    path = tmp_path / "rows.parquet"
    _told(capsys, "sql", folder, ROWS, "--format=parquet", f"--output={path}", LOCAL)
    assert pq.read_table(path).num_rows == 2


def test_output_goes_to_a_file_and_sentences_to_standard_error(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out.csv"
    script = "SELECT 1 AS a; DELETE FROM accounts WHERE id = 1; SELECT 2 AS b"
    assert main(["sql", folder, script, "--format=csv", f"-o{path}", LOCAL]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "0 inserted, 0 updated, 1 deleted\n"
    assert path.read_text() == "a\n1\nb\n2\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["SELECT 1", "--format=parquet"], "--output"),
        (["SELECT 1; SELECT 2", "--format=parquet", "--output={}/x"], "several"),
        (["SELECT 1 AS a, 2 AS a", "--format=json"], "write AS"),
        (["SELECT 1", "--features=X"], "unknown feature 'X'"),
    ],
)
def test_what_cannot_be_written_is_refused(
    folder: str, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", folder, *(one.format(folder) for one in arguments), LOCAL]) == 1
    assert words in capsys.readouterr().err


def test_long_values_are_cut_unless_told_otherwise(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"SELECT '{'x' * 50}' AS a"
    assert "x" * 50 not in _told(capsys, "sql", folder, text, LOCAL)
    assert "x" * 50 in _told(capsys, "sql", folder, text, "--no-truncate", LOCAL)


def test_settings_of_the_session_come_from_options(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = _told(
        capsys, "sql", folder, "SET", "--features=R,CT", "--isolation=snapshot", "--format=csv", LOCAL
    )
    assert out == 'name,value\nfeatures,"R,CT"\nisolation,snapshot\nslack,0\n'


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=1", 1),
        ("a=-5", -5),
        ("a=007", "007"),
        ("a=1.50", "1.50"),
        ("a=true", True),
        ("a=null", None),
        ("a='5'", "5"),
        ("a=", ""),
        ("a=b=c", "b=c"),
        ("a=2026-01-31", "2026-01-31"),
    ],
)
def test_parameter_has_the_type_that_sql_would_read(text: str, value: Any) -> None:
    name, found = parameter(text)
    assert name == "a"
    assert (str(found) if text == "a=1.50" else found) == value
    assert isinstance(found, str) or text not in ("a=007", "a='5'")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (lv.InvalidInput("x"), 1),
        (lv.Conflict("x"), 3),
        (lv.ValidationFailed("x"), 3),
        (lv.CommitUnknown("x"), 4),
        (lv.Unavailable("x"), 5),
        (lv.Unsupported("x"), 6),
        (lv.Torn("x"), 7),
    ],
)
def test_exit_code_says_what_to_do(
    folder: str, error: Exception, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(lv.Lake, "status", fail)
    assert main(["status", folder]) == code


class _Spark(LocalEngine):
    """Stands for Spark: it says that it was asked."""

    asked = 0

    def query(self, *args: Any, **kwargs: Any) -> Any:
        type(self).asked += 1
        return super().query(*args, **kwargs)


def test_auto_takes_spark_for_large_tables_and_for_what_local_refuses(
    folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from lakevilla.engines import auto, choice

    def start(options: choice.EngineOptions) -> LocalEngine:
        logging.getLogger("lakevilla.notices").info("Starting Spark ...")
        return _Spark(options.environment)

    monkeypatch.setattr(choice, "_spark", start)
    monkeypatch.setattr(_Spark, "asked", 0)
    assert main(["sql", folder, "SELECT count(*) FROM accounts"]) == 0
    assert _Spark.asked == 0
    assert capsys.readouterr().err == ""
    assert main(["sql", folder, "SELECT hex(id) FROM accounts; SELECT 1"]) == 6
    assert _Spark.asked == 1
    err = capsys.readouterr().err
    assert err.startswith(
        "Starting Spark ...\nUsing Spark: the local engine does not support the function hex()"
    )
    monkeypatch.setattr(auto.AutoEngine.__init__, "__defaults__", (10,))
    assert main(["sql", folder, "SELECT id FROM accounts"]) == 0
    assert _Spark.asked == 2
    assert "the tables have about" in capsys.readouterr().err


def test_reports_are_json_when_asked(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(_told(capsys, "tables", folder, "--json")) == ["accounts"]
    assert json.loads(_told(capsys, "history", folder, "accounts", "--json"))[0]["version"] == 1
    assert json.loads(_told(capsys, "history", folder, "--json"))[0]["seq"] == 2
    assert json.loads(_told(capsys, "tag", folder, "end", "--json")) == {"end": 2}
    assert json.loads(_told(capsys, "tag", folder, "--json")) == {"end": 2}
    assert json.loads(_told(capsys, "vacuum", folder, "--json"))["dry_run"] is True
    assert json.loads(_told(capsys, "recover", folder, "--json"))["freed"] == []
    assert json.loads(_told(capsys, "sync", folder, "--json")) == {}
    assert json.loads(_told(capsys, "outcome", folder, "0" * 32, "--json"))["txn"] == "0" * 32


@pytest.mark.parametrize(
    "words",
    [
        ["{}", "--format", "csv", "SELECT 1 AS one"],
        ["--format=csv", "{}", "-n", "3", "SELECT 1 AS one"],
        ["{}", "--no-truncate", "SELECT 1 AS one", "--form", "csv"],
        ["-n3", "{}", "--format", "csv", "--", "SELECT 1 AS one"],
        ["{}", "SELECT :v AS one", "--param", "v=1", "--json", "--format", "csv"],
        ["{}", "-- a comment with = in it\nSELECT 1 AS one", "--format", "csv"],
    ],
    ids=str,
)
def test_options_may_stand_anywhere(
    folder: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", *(word.format(folder) for word in words)]) == 0
    assert capsys.readouterr().out == "one\n1\n"


def test_output_that_cannot_hold_a_letter_says_what_to_do(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["sql", folder, "SELECT '\u2192' AS arrow", "--format", "csv"]
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
        assert main(arguments) == 1
    error = capsys.readouterr().err
    assert "written in latin-1, which cannot hold '\\u2192': set PYTHONIOENCODING=utf-8" in error
    assert main([*arguments, "--output", str(tmp_path / "rows.csv")]) == 0
    assert (tmp_path / "rows.csv").read_text(encoding="utf-8") == "arrow\n\u2192\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sql", "lake", "SELECT 1", "--fromat", "csv"], "unknown option --fromat; did you mean --format?"),
        (["sql", "--no-truncat", "lake", "SELECT 1", "x"], "too many arguments"),
        (["tables", "lake", "--jsno"], "unknown option --jsno; did you mean --json?"),
        (["status", "lake", "--zzz=hidden-secret"], "unknown option --zzz; see --help"),
        (["tables", "lake", "hidden-secret"], "too many arguments"),
    ],
    ids=str,
)
def test_unknown_option_is_refused_by_its_command_with_a_suggestion(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    error = capsys.readouterr().err
    assert ended.value.code == 2
    assert told in error
    assert f"usage: lakevilla {words[0]}" in error
    assert "hidden-secret" not in error


def test_rows_for_a_place_that_cannot_be_written_change_nothing(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place, words in (("none/rows.csv", "there is no directory"), ("", "it is a directory")):
        script = "DELETE FROM accounts; SELECT * FROM accounts"
        assert main(["sql", folder, script, "--format", "csv", "-o", str(tmp_path / place)]) == 1
        assert words in capsys.readouterr().err
    assert lv.Lake(folder, engine="local").read("accounts").count() > 0
