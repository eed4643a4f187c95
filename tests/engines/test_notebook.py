"""`%%cq`: a cell is a query over the variables of the notebook, and shows its result, its plan or its mistake."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import cq
from cq.notebook import Picture, run_cell
from cq.result import Result

BIDS = [{"auction": 1, "price": 5}, {"auction": 2, "price": 7}, {"auction": 1, "price": 9}]
BEST = "SELECT auction, MAX(price) AS best FROM bids GROUP BY auction"
REFERENCE = "--engine reference "


class Notebook:
    """As much of IPython as an extension meets."""

    def __init__(self, **variables: Any) -> None:
        self.user_ns = variables
        self.magics: dict[tuple[str, str], Any] = {}

    def register_magic_function(self, func: Any, magic_kind: str, magic_name: str) -> None:
        self.magics[magic_kind, magic_name] = func


def test_extension_gives_a_magic_for_cells() -> None:
    notebook = Notebook(bids=BIDS)
    cq.load_ipython_extension(notebook)
    result = notebook.magics["cell", "cq"](REFERENCE, BEST)
    assert result.to_pylist() == [{"auction": 1, "best": 9}, {"auction": 2, "best": 7}]
    assert "<table>" in result._repr_html_()
    assert "%%cq --explain" in (notebook.magics["cell", "cq"].__doc__ or "")


def test_result_is_kept_under_the_name_on_the_line() -> None:
    variables: dict[str, Any] = {"bids": pa.Table.from_pylist(BIDS)}
    shown = run_cell(variables, REFERENCE + "best --limit 1", BEST)
    assert variables["best"] is shown and isinstance(shown, Result) and len(shown.only) == 1


def test_variable_in_capitals_is_found_without_quotes() -> None:
    shown = run_cell({"Bids": BIDS, "BEST": 1}, REFERENCE, BEST)
    assert isinstance(shown, Result) and len(shown.only) == 2


def test_parameters_functions_and_windows_name_variables_too() -> None:
    @cq.udf
    def twice(x: int) -> int:
        return 2 * x

    text = (
        "CREATE VIEW v AS SELECT auction, twice(price) AS price FROM bids;"
        "WITH w AS (SELECT * FROM v) SELECT price FROM w WHERE price > :least"
    )
    shown = run_cell({"bids": BIDS, "twice": twice, "least": 12, "v": "not read", "w": 1}, REFERENCE, text)
    assert isinstance(shown, Result) and shown.to_pylist() == [{"price": 14}, {"price": 18}]


SECONDS = [{"ts": datetime.datetime(2024, 1, 1, 10, 0, s), "v": v} for s, v in ((0, 1), (2, 2), (1, 3), (11, 4))]
WINDOWS = "SELECT SUM(v) AS v FROM TUMBLE(s, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start"


@pytest.mark.parametrize(
    "declared",
    [
        "CREATE STREAM s (WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)",
        "CREATE STREAM s (ts TIMESTAMP, v BIGINT, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)",
        "CREATE STREAM s (WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH (on_error = 'skip', connector = 'memory')",
    ],
)
def test_declared_stream_without_a_source_is_the_variable_of_its_name(declared: str) -> None:
    # s: 0 2 1 | 11
    shown = run_cell({"s": SECONDS}, REFERENCE, f"{declared}; {WINDOWS}")
    assert isinstance(shown, Result) and shown.to_pylist() == [{"v": 6}, {"v": 4}]


def test_declaration_that_an_error_shows_in_a_cell_runs_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cell({"s": SECONDS}, REFERENCE, WINDOWS) is None
    way = capsys.readouterr().err.partition("help: CREATE")[2].partition("; then read FROM s\n")[0]
    shown = run_cell({"s": SECONDS}, REFERENCE, f"CREATE{way}; {WINDOWS}")
    assert isinstance(shown, Result) and shown.to_pylist() == [{"v": 6}, {"v": 4}] and shown.losses == ()


def test_late_rows_stand_under_the_table_of_a_cell_and_nowhere_else(capsys: pytest.CaptureFixture[str]) -> None:
    # s: 0 2 11 | 1, which is late
    rows = [SECONDS[0], SECONDS[1], SECONDS[3], SECONDS[2]]
    shown = run_cell({"s": rows}, REFERENCE, f"CREATE STREAM s (WATERMARK FOR ts); {WINDOWS}")
    assert isinstance(shown, Result) and "<p>note: 1 late row was dropped by " in shown._repr_html_()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("source", ["path = 's.csv'", "connector = 'generator', workload = 'nexmark_bid', rows = 3"])
def test_declared_stream_with_a_source_is_no_variable(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.csv").write_text("price\n1\n2\n3\n")
    text = f"CREATE STREAM s WITH ({source}); SELECT COUNT(*) AS n FROM s"
    shown = run_cell({"s": SECONDS}, REFERENCE, text)
    assert isinstance(shown, Result) and shown.to_pylist() == [{"n": 3}]


@pytest.mark.parametrize("option", ["--explain", "--analyze -j 0"])
def test_plans_are_pictures(option: str) -> None:
    shown = run_cell({"bids": BIDS}, option, "SELECT price FROM bids WHERE price > 6")
    assert isinstance(shown, Picture) and "filter" in repr(shown)
    ElementTree.fromstring(shown._repr_svg_().encode())
    assert ("3 → 2 rows" in shown._repr_svg_()) is ("analyze" in option)


@pytest.mark.parametrize(
    ("line", "cell", "said"),
    [
        ("", "SELECT * FROM bidz", 'unknown stream, table or view "bidz"'),
        ("", "SELEC 1", "did you mean SELECT?"),
        ("", "SELECT plain(price) FROM bids", "help: write @cq.udf above it"),
        ("--nothing", "SELECT 1", "%%cq: No such option"),
        ("'", "SELECT 1", "%%cq: No closing quotation"),
    ],
)
def test_mistakes_are_shown_without_a_traceback(
    line: str, cell: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def plain(x: int) -> int:
        return x

    assert run_cell({"bids": BIDS, "plain": plain, "max": plain}, line, cell) is None
    assert said in capsys.readouterr().err
