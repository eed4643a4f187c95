"""What a person at a terminal sees of `cq run`: a screenful of a result that ends, every row of one that does not."""

from __future__ import annotations

import io
import shlex
from pathlib import Path

import pyarrow as pa
import pytest
from terminal import on_terminal

from cq.cli import execute
from cq.cli.running import open_sinks
from cq.compiler.passes import compile
from cq.connectors.sinks.terminal import HELD_ROWS, Screen, Table

QUERY = ("-c", "CREATE STREAM b (id BIGINT); SELECT id FROM b", "b=many.csv")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "many.csv").write_text("id\n" + "7\n" * 100)


def on_a_terminal(*arguments: str) -> list[str]:
    """The lines a person sees of `cq run` on the reference."""
    seen = on_terminal(shlex.join(["run", "--engine", "reference", *arguments]), TERM="dumb")
    return seen.splitlines()


def test_terminal_gets_a_screenful_and_how_to_see_the_rest() -> None:
    *rows, more, summary = on_a_terminal(*QUERY)
    assert rows == ["id", "──", *[" 7"] * 40]
    assert more == "… 60 more rows; --all shows them, -o FILE and -f csv write them"
    assert summary.startswith("read 100 rows of b · wrote 100 rows · ")


@pytest.mark.parametrize(
    ("option", "rows"), [(("--all",), 100), (("--limit", "50"), 50), (("-f", "table", "--all"), 100)]
)
def test_terminal_gets_every_row_that_is_asked_for(option: tuple[str, ...], rows: int) -> None:
    assert on_a_terminal(*QUERY, "-q", *option) == ["id", "──", *[" 7"] * rows]


def test_csv_on_a_terminal_is_whole() -> None:
    assert on_a_terminal(*QUERY, "-q", "-f", "csv") == ["id", *["7"] * 100]


@pytest.mark.parametrize(("options", "shown"), [("", 3), (", rows = 9", 1)])
def test_a_result_that_does_not_end_is_shown_whole(options: str, shown: int) -> None:
    text = io.StringIO()
    stream = f"CREATE STREAM b WITH (connector = 'generator', workload = 'bids'{options});"
    query = compile(f"{stream} SELECT auction FROM b")
    table = open_sinks(query, (), "table", Screen(text, colour=False), shown=1)["result"]
    table.write(pa.record_batch({"auction": [7, 7, 7]}))
    assert text.getvalue().count("\n      7") == shown


def test_table_in_a_pipe_is_whole(capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["run", "--engine", "reference", "-f", "table", *QUERY]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 102


def test_results_that_end_are_one_table_each() -> None:
    text = io.StringIO()
    screen = Screen(text, colour=False, titles=True)
    first, second = (Table(name, ["n"], screen) for name in ("a", "b"))
    for table in (first, second, first):
        table.write(pa.record_batch({"n": [1]}))
    first.close()
    second.close()
    assert text.getvalue() == "a\nn\n─\n1\n1\n\nb\nn\n─\n1\n"


def test_a_long_result_and_one_that_does_not_end_are_shown_as_they_come() -> None:
    text = io.StringIO()
    screen = Screen(text, colour=False, titles=True)
    long, endless = Table("a", ["n"], screen), Table("b", ["n"], screen, ends=False)
    endless.write(pa.record_batch({"n": [7]}))
    assert text.getvalue() == "b\nn\n─\n7\n"
    long.write(pa.record_batch({"n": [1] * HELD_ROWS}))
    assert "a" not in text.getvalue()
    long.write(pa.record_batch({"n": [2]}))
    assert text.getvalue().endswith("\na\nn\n─\n" + "1\n" * HELD_ROWS + "2\n")


LONG = ["x" * 5, "y" * 70]


def drawn(rows: list[str | None], batch_rows: int, **screen: bool) -> str:
    """The rows as a table of one column, written so many at a time."""
    text = io.StringIO()
    table = Table("out", ["s"], Screen(text, colour=False, **screen))
    for start in range(0, len(rows), batch_rows):
        table.write(pa.record_batch({"s": pa.array(rows[start : start + batch_rows], pa.string())}))
    table.close()
    return text.getvalue()


@pytest.mark.parametrize("in_full", [False, True])
@pytest.mark.parametrize("before", [3, HELD_ROWS, HELD_ROWS + 5])
def test_a_table_looks_the_same_in_batches_of_any_size(before: int, in_full: bool) -> None:
    rows = [*["a"] * before, *LONG, None, "b"]
    expected = drawn(rows, len(rows), in_full=in_full)
    assert all(drawn(rows, n, in_full=in_full) == expected for n in (1, 7, HELD_ROWS))
    assert expected.splitlines()[-4:] == ["xxxxx", "y" * 70 if in_full else "y" * 59 + "…", "NULL", "b"]


def test_a_column_becomes_wider_with_the_row_that_needs_it() -> None:
    text = io.StringIO()
    table = Table("out", ["s", "n"], Screen(text, colour=False), ends=False)
    for s, n in (("a", 1), ("a longer text", 12), ("b", 3)):
        table.write(pa.record_batch({"s": [s], "n": [n]}))
    assert text.getvalue() == "s  n\n─  ─\na  1\na longer text  12\nb               3\n"


def test_a_terminal_cuts_texts_that_have_no_room_and_wide_shows_them(tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text("s,n\n" + "".join(f"{s},7\n" for s in LONG))
    query = ("-q", "-c", "CREATE STREAM t (s VARCHAR, n BIGINT); SELECT s, n FROM t", "t=texts.csv")
    assert on_a_terminal(*query)[-1] == "y" * 59 + "…  7"
    assert on_a_terminal("--wide", *query)[-1] == "y" * 70 + "  7"
