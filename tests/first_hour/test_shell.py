"""`cq` alone on a terminal is a shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from prompt_toolkit.history import FileHistory
from terminal import plain, typed

from cq.cli.prompt import Completer, finished, interposed, shorten
from cq.cli.shell import Shell

pytestmark = pytest.mark.usefixtures("usual_signals")

TYPED = """.engine reference
.help
CREATE STREAM t (id BIGINT, fare DOUBLE)
WITH (path = 'trips.csv');
SELECT id,
  fare * 2 AS twice FROM t WHERE id < 3;
SELECT nothing
FROM t;
CREATE VIEW big AS SELECT id FROM t WHERE id > 2;
SELECT * FROM big;
.tables
.timer
SELECT COUNT(*) AS n FROM 'day/*.csv.gz';
.explain SELECT id FROM t
.nothing
CREATE STREAM t (zip VARCHAR, id BIGINT) WITH (path = 'trips.csv');
SELECT zip FROM t LIMIT 1; SELECT COUNT(*) AS n FROM big;
.quit
"""


def said_by_the_shell(typed_text: str, home: Path) -> str:
    """What the screen holds after these lines were typed."""
    with typed("", TERM="dumb", HOME=str(home)) as shell:
        shell.type(typed_text)
        assert shell.end() == 0
        return plain(shell.raw)


def test_shell_keeps_what_is_declared_and_goes_on_after_mistakes(tmp_path: Path) -> None:
    seen = said_by_the_shell(TYPED, tmp_path)
    assert "id  twice\n──  ─────\n 1    5.0\n 2    8.0\n" in seen
    assert " --> <shell>:1:8\n  |\n1 | SELECT nothing\n  |        ^^^^^^^ no such column\n" in seen
    assert "id\n──\n 3\n" in seen and "never used" not in seen
    assert "\nt\nbig\n" in seen
    assert "timer on" in seen and "n\n─\n6\n" in seen and "read 6 rows of day · wrote 1 row · " in seen
    assert "there is no command .nothing" in seen
    assert "zip\n─────\n00501\n" in seen and "result_2\nn\n─\n1\n" in seen
    assert "SELECT zip FROM t LIMIT 1;" in (tmp_path / ".cq_history").read_text()


def test_schema_is_that_of_a_name_or_of_a_file_in_quotes_or_not(tmp_path: Path) -> None:
    typed_text = (
        "CREATE STREAM t (id BIGINT)\nWITH (path = 'trips.csv');\nCREATE VIEW \"My v\" AS SELECT id FROM t;\n"
        ".schema T\n.schema \"My v\"\n.schema 'trips.csv'\n.schema trips.csv\n.schema 'day/*.csv.gz'\n.quit\n"
    )
    seen = said_by_the_shell(typed_text, tmp_path)
    assert seen.count('CREATE VIEW "My v" AS') == 2 and "no such file" not in seen  # typed, and shown
    assert seen.count("CREATE STREAM trips (\n") == 2 and seen.count("CREATE STREAM day (\n") == 1
    assert "CREATE STREAM t (id BIGINT) WITH (path = 'trips.csv');" in " ".join(seen.split())


def offered(shell: Shell, before: str) -> dict[str, str]:
    """What Tab offers behind this text, and what each is."""
    return {o.word: o.kind for o in Completer(shell.offers).offered(before, before)[1]}


def test_shell_completes_words_names_and_files() -> None:
    shell = Shell({"trips": "CREATE STREAM trips WITH (path = 'trips.csv');"})
    assert offered(shell, "SEL") == {"SELECT": "keyword"}
    words = {"factorial": "function", "false": "keyword", "fare": "column of trips"}
    assert offered(shell, "SELECT fa") == words
    assert offered(shell, "SELECT FA") == {"FACTORIAL": "function", "FALSE": "keyword", "fare": "column of trips"}
    assert offered(shell, "SELECT trips.z") == {"trips.zip": "column of trips"}
    assert offered(shell, "SELECT * FROM tri")["trips"] == "declared"
    assert offered(shell, ".ta") == {".tables": "command"} and offered(shell, ".explain SEL") == {"SELECT": "keyword"}
    names = "day/ people.jsonl semi.csv trips.csv"
    assert offered(shell, "SELECT 'it', x FROM '") == dict(
        zip(names.split(), ["directory", *["file"] * 3], strict=True)
    )
    assert offered(shell, "SELECT * FROM 'day/a") == {"day/a.csv.gz": "file"}
    assert offered(Shell(), "SELECT * FROM 'people.jsonl' WHERE na")["name"] == "column of people.jsonl"


def test_completion_offers_no_name_that_queries_cannot_call() -> None:
    assert "date_trunc" in offered(Shell(), "SELECT date_") and "date_trunc_day" not in offered(Shell(), "SELECT date_")


def test_enter_runs_a_command_or_what_ends_with_a_semicolon() -> None:
    assert finished("exit") and finished("HELP;") and not finished("exit,")
    assert finished("") and finished(".tables") and finished("\\x") and finished("SELECT 1\n;  ")
    assert not finished("SELECT 1") and not finished("SELECT 1; SELECT 2")


def test_enter_goes_on_behind_a_semicolon_that_ends_no_statement() -> None:
    assert not finished("SELECT 'a;") and not finished("SELECT 1 -- so;") and finished("SELECT 'a;';")
    body = "CREATE TRIGGER g AFTER INSERT ON s BEGIN ATOMIC UPDATE t SET n = 1 WHERE k = new.k;"
    assert not finished(body) and finished(body + " END;")


def test_statement_set_runs_at_its_end(place: Path) -> None:
    insert = "INSERT INTO o SELECT 1 AS a;"
    for begin in ("EXECUTE STATEMENT SET BEGIN", "BEGIN STATEMENT SET;"):
        opened = f"{begin} {insert}"
        assert not finished(opened) and not finished(opened + insert) and finished(opened + " END;")
    typed_text = (
        ".engine reference\nCREATE SINK o WITH (path = 'o.csv');\nEXECUTE STATEMENT SET\nBEGIN\n"
        "INSERT INTO o SELECT id FROM 'trips.csv';\nEND;\n.quit\n"
    )
    assert "CQ0" not in said_by_the_shell(typed_text, place)
    assert (place / "o.csv").read_text() == "id\n1\n2\n3\n"


def test_history_keeps_its_last_entries(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    path = tmp_path / "home" / "history"
    shorten(path, 10)
    assert not path.exists()
    entries = [f"\n# 2024-01-01 00:00:00\n+SELECT {n}\n+  AS n;\n" for n in range(12)]
    path.write_text("".join(entries[:11]))
    path.chmod(0o640)
    shorten(path, 10)
    assert path.read_text() == "".join(entries[:11])  # a tenth more than are kept are still there
    path.write_text("".join(entries))
    shorten(path, 10)
    assert path.read_text() == "".join(entries[2:]) and path.stat().st_mode & 0o777 == 0o640
    assert next(iter(FileHistory(str(path)).load_history_strings())) == "SELECT 11\n  AS n;"
    assert os.listdir(tmp_path / "home") == ["history"]


def test_what_is_typed_ahead_of_a_completion_stands_behind_it(place: Path) -> None:
    with typed("", columns=80, HOME=str(place)) as shell:
        shell.until("cq>")
        shell.type("SELE\t 34 AS v;\n")
        shell.until("34\ncq>")
        shell.type("SELECT gone")
        shell.until("gone")
        shell.type("\x03")  # Ctrl-C drops what stands there
        shell.until("cq>")
        shell.type(".timer\n")
        shell.until("timer on\ncq>")
        shell.type("\x04")
        assert shell.end() == 0


def test_commands_are_taken_inside_a_statement_too_and_leave_it_as_it_is(place: Path) -> None:
    with typed("", columns=80, HOME=str(place)) as shell:
        shell.until("cq>")
        shell.type("SELECT 30 +\n.timer\n")
        shell.until("timer on", "..>")
        shell.type("exit\n")
        shell.until("exit is part of the statement: use .quit to leave", "..>")
        shell.type("\x03")
        shell.until("cq>")
        shell.type("help\n")
        shell.until(".explain QUERY")
        shell.type("SELECT 30 +\n.timer\n4 AS v;\n")
        shell.until("timer off", "34\ncq>")
        shell.type("SELECT 1 +\n")
        shell.until("..>")
        shell.type("\x04")  # Ctrl-D drops what has been begun, and leaves where there is nothing
        shell.until("cq>")
        shell.type("\x04")
        assert shell.end() == 0
    assert ".timer" not in (place / ".cq_history").read_text()


@pytest.mark.parametrize("leave", ["exit\n", "quit;\n", "\\q\n", ".quit;\n", "SELECT 1\n.quit\n"])
def test_shell_is_left_by_every_word_that_people_know(place: Path, leave: str) -> None:
    with typed("", columns=80, HOME=str(place)) as shell:
        shell.until("cq>")
        shell.type(leave)
        assert shell.end() == 0


def test_line_that_only_looks_like_a_command_is_a_part_of_its_statement() -> None:
    assert (
        interposed("SELECT 'a\n.help") is None and interposed(".help") is None and interposed("SELECT 1 +\n.5") is None
    )
    assert interposed("SELECT 1 +\n .schema a.csv;") == ("SELECT 1 +", ".schema a.csv;")


def test_sigterm_ends_the_shell_at_its_prompt(place: Path) -> None:
    with typed("", columns=80, HOME=str(place)) as shell:
        shell.until("cq>")
        shell.process.terminate()
        assert shell.end() != 0


def test_other_commands_do_not_load_the_prompt() -> None:
    loaded = "import sys; from cq.cli import execute; execute(['run', '--engine', 'reference', '-q', 'SELECT 1'])"
    code = loaded + "; assert not any(name.startswith('prompt_toolkit') for name in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)
