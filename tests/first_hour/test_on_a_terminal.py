"""The first hour on a real terminal: what is typed, and what stands there then. README.md lists the items."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from terminal import on_terminal, typed

pytestmark = pytest.mark.usefixtures("usual_signals")

REFERENCE = "--engine reference"
ENDLESS = "CREATE STREAM b WITH (connector = 'generator', workload = 'bids'); SELECT auction FROM b"


# -------------------------------------------------------------------------------- 1: nothing lost


def test_ctrl_c_on_an_endless_input_leaves_whole_lines_and_says_what_was_done(place: Path) -> None:
    with typed(f'run -j 1 "{ENDLESS}" -o out.csv') as terminal:
        while not re.search(r"wrote [1-9]", terminal.until(" rows/s")):
            pass
        terminal.type("\x03")
        assert terminal.end() == 130
        assert "interrupted" in terminal.seen
        rows = re.search(r"wrote ([\d,]+) rows", terminal.seen)
    text = (place / "out.csv").read_text()
    assert rows is not None and text.endswith("\n")
    assert text.count("\n") - 1 == int(rows[1].replace(",", ""))


# -------------------------------------------------------------------------------- 2: inference


def test_row_that_contradicts_an_inferred_type_names_the_declaration_to_write(place: Path) -> None:
    (place / "late.csv").write_text("id,v\n" + "1,1234567890\n" * 90_000 + "2,x1\n")  # behind what is looked at
    seen = on_terminal(f"run {REFERENCE} \"SELECT SUM(v) AS s FROM 'late.csv'\"", columns=160)
    assert "late.csv:90002" in seen and "column v" in seen
    told = re.search(r"(CREATE STREAM .*); then read FROM (\w+), and write (TRY_CAST\(.*\)) where v is used", seen)
    assert told is not None, seen
    statement, stream, value = told.groups()
    seen = on_terminal(f'run {REFERENCE} "{statement}; SELECT SUM({value}) AS s FROM {stream}"', columns=160)
    assert f"{90_000 * 1234567890:,}".replace(",", "") in seen and "error" not in seen


def test_file_is_read_again_where_a_row_contradicts_an_inferred_type(place: Path) -> None:
    (place / "late.csv").write_text("id,v\n" + "1,1234567890\n" * 90_000 + "2,3.5\n")
    seen = on_terminal(f"run {REFERENCE} \"SELECT MIN(v) AS m FROM 'late.csv'\"", columns=160)
    assert "note: late is read again: v is DOUBLE, because late.csv:90002 holds '3.5'\n" in seen
    assert "m\n───\n3.5\n" in seen


# -------------------------------------------------------------------------------- 6: faults


def test_output_named_gz_is_packed_and_blank_lines_are_counted(place: Path) -> None:
    (place / "gaps.csv").write_text("a,b\n1,2\n\n3,4\n")
    seen = on_terminal(f"run {REFERENCE} \"SELECT * FROM 'gaps.csv'\" -o out.csv.gz")
    assert "read 2 rows of gaps · wrote 2 rows · 1 blank line" in seen
    assert (place / "out.csv.gz").read_bytes().startswith(b"\x1f\x8b")


# -------------------------------------------------------------------------------- 7: as people type it


def test_shipped_queries_declare_no_column_of_a_generated_stream() -> None:
    for query in Path(__file__).parents[2].glob("queries/**/*.cq"):
        for declared in re.findall(r"CREATE STREAM \w+ \((.*?)\)\s*WITH \(", query.read_text(), re.DOTALL):
            assert re.fullmatch(r"\s*WATERMARK FOR [^,]*", declared), (query.name, declared)


# -------------------------------------------------------------------------------- 9: the shell


def test_shell_completes_columns_and_shows_a_row_as_lines(place: Path) -> None:
    with typed("", columns=80, HOME=str(place)) as shell:
        shell.until("cq>")
        shell.type(".engine reference\nCREATE STREAM trips WITH (path = 'trips.csv');\n")
        shell.type("SELECT zi\t, far\t FROM trip\t WHERE id = 1;\n")
        assert "zip    fare\n─────  ────\n00501   2.5\n" in shell.until("00501   2.5\n")
        shell.type("\\x\nSELECT id, zip FROM trips WHERE id > 1;\n")
        shown = shell.until("zip  NULL\ncq>")  # what comes before the prompt would end a line, not the shell
        assert "── row 1\nid   2\nzip  10001\n── row 2\nid   3\nzip  NULL\n" in shown
        shell.type("\x04")
        assert shell.end() == 0


def test_shell_pages_a_long_result(place: Path) -> None:
    rows = "CREATE STREAM r WITH (connector = 'generator', workload = 'bids', rows = 60); SELECT auction FROM r;\n"
    with typed("", columns=80, HOME=str(place), PAGER="wc -l") as shell:
        shell.until("cq>")
        shell.type(".engine reference\n" + rows)
        shell.until("62\n")  # a header, a rule, sixty rows
        shell.type(".quit\n")
        assert shell.end() == 0


def test_shell_without_a_pager_shows_the_first_rows_and_all_when_asked(place: Path) -> None:
    rows = "CREATE STREAM r WITH (connector = 'generator', workload = 'bids', rows = 60); SELECT auction FROM r;\n"
    with typed("", columns=80, HOME=str(place)) as shell:
        shell.until("cq>")
        shell.type(".engine reference\n" + rows)
        assert shell.until("… 20 more rows; .all shows them").count("\n") >= 42
        shell.type(".all\n.timer\n")
        assert shell.until("timer on").count("\n") >= 62
        shell.type(".quit\n")
        assert shell.end() == 0


LONG = "CREATE STREAM r WITH (connector = 'generator', workload = 'bids', rows = {}); SELECT auction FROM r"


def test_table_longer_than_the_terminal_is_paged_whole_and_a_short_one_is_not() -> None:
    said = "a pager"
    seen = on_terminal(f'run -q {REFERENCE} "{LONG.format(60)}"', PAGER=f"echo {said}; wc -l")
    assert seen.split() == [*said.split(), "62"]
    seen = on_terminal(f'run -q {REFERENCE} "{LONG.format(20)}"', PAGER=f"echo {said}; wc -l")
    assert said not in seen and seen.count("\n") == 22
    for option in ("--no-pager", "--all", "-f csv"):
        seen = on_terminal(f'run -q {REFERENCE} {option} "{LONG.format(60)}"', PAGER=f"echo {said}; wc -l")
        assert said not in seen and ("… 20 more rows" in seen) == (option == "--no-pager")


def test_pager_that_is_left_early_ends_the_run(place: Path) -> None:
    seen = on_terminal(f'run {REFERENCE} "{LONG.format(30_000)}"', PAGER="head -3")
    assert seen.count("\n") == 3 and "CQ0" not in seen


def test_rows_before_an_error_are_shown_before_it() -> None:
    query = "SELECT id, 1 / (id - 3) AS x FROM 'trips.csv'"
    seen = on_terminal(f'run -q {REFERENCE} "{query}"', PAGER="cat -n")
    assert seen.index(" 2  -1") < seen.index("CQ0706")


def test_shell_goes_on_after_its_pager_was_left_early(place: Path) -> None:
    rows = "CREATE STREAM r WITH (connector = 'generator', workload = 'bids', rows = 30000); SELECT * FROM r;\n"
    with typed("", columns=80, HOME=str(place), PAGER="true") as shell:
        shell.until("cq>")
        shell.type(".engine reference\n" + rows)
        shell.type(".all\n.timer\n")
        shell.until("timer on")
        shell.type("SELECT 41 + 1 AS answer;\n")
        shell.until("42\n")
        shell.type(".quit\n")
        assert shell.end() == 0 and "CQ0999" not in shell.seen


# -------------------------------------------------------------------------------- 10: output


def test_wide_rows_are_shown_as_lines_where_they_are_asked_for() -> None:
    seen = on_terminal(f"run -q {REFERENCE} -x \"SELECT id, zip, ts FROM 'trips.csv' WHERE id = 1\"", columns=20)
    assert seen == "── row 1\nid   1\nzip  00501\nts   2024-01-01 00:00:10\n"


# -------------------------------------------------------------------------------- 11: while it works


def test_progress_has_a_share_and_the_time_left_and_goes_away(place: Path) -> None:
    text = ENDLESS.replace("'bids')", "'bids', rows = 900000000)").replace("SELECT auction", "SELECT SUM(auction) AS s")
    with typed(f'run -j 1 "{text}"', columns=120) as terminal:
        line = re.compile(r"cq: read [\d,]+ rows of b \(\d+%\) · wrote 0 · [\d,]+ rows/s · about \d+ (s|min) left")
        terminal.until(" left")
        assert line.search(terminal.seen)
        terminal.type("\x03")
        assert terminal.end() == 130
        assert " left" not in terminal.seen.splitlines()[-1]


def test_progress_is_told_in_a_pipe_too(place: Path) -> None:
    command = [sys.executable, "-m", "cq", "run", "-j", "1", ENDLESS.replace("auction FROM", "MAX(auction) AS m FROM")]
    command[-1] = command[-1].replace("'bids')", "'bids', rows = 4000000000)")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        told = next(line for line in run.stderr if line.startswith("cq: read "))
        run.terminate()
        run.wait(timeout=120)
    assert re.match(r"cq: read [\d,]+ rows of b \(\d+%\) · wrote 0 · [\d,]+ rows/s( · about .* left)?\n", told)


# -------------------------------------------------------------------------------- 12: explain


def test_plan_is_told_in_words_and_without_hashes() -> None:
    queries = Path(__file__).parents[2] / "queries"
    seen = on_terminal(f"explain {queries / 'lr_tolls.cq'}", columns=200)
    assert "every 1 minute, last 5 minutes by xway, dir, seg" in seen and "watermark ts" in seen
    assert not re.search(r" · [0-9a-f]{8}\b", seen)
    assert re.search(r" · [0-9a-f]{8}\b", on_terminal(f"explain -v {queries / 'lr_tolls.cq'}", columns=200))


def test_analysis_counts_the_rows_of_each_operator() -> None:
    query = "SELECT id FROM 'trips.csv' WHERE fare > 1 UNION ALL SELECT id FROM 'trips.csv' WHERE fare > 3"
    seen = on_terminal(f'explain --analyze "{query}"', columns=200)
    rows = re.findall(r"^ +(\d+) +(?:(\d+) +)?#\d+ (\w+)", seen, re.MULTILINE)
    counted = sorted((operator, *map(int, filter(None, found))) for *found, operator in rows)
    filters = [("filter", 3, 1), ("filter", 3, 2)]
    assert counted == [*filters, ("project", 1, 1), ("project", 2, 2), ("scan", 3), ("union", 3, 3)], seen


# -------------------------------------------------------------------------------- 15: diff


def test_diff_samples_and_says_so() -> None:
    seen = on_terminal("diff -j 1 \"SELECT id, zip FROM 'trips.csv'\" --rows 2")
    assert seen.endswith("result: equal, 2 rows\ncompared the first 2 rows of each input\n")


@pytest.mark.spark
def test_diff_with_spark_says_what_it_waits_for() -> None:
    with typed(f"diff {REFERENCE} \"SELECT id FROM 'trips.csv'\" --against spark") as terminal:
        terminal.until("cq: spark: waiting for Spark to start")
        assert terminal.end() == 0
        assert terminal.seen.endswith("result: equal, 3 rows\n")
