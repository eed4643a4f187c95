"""The benchmarks run, agree with one another and compute what they say; how fast anything is, no test asserts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

sys.path.insert(0, str(ROOT))

report = pytest.importorskip("benchmarks.report", reason="the extra [test] is not installed")

from benchmarks import __main__ as command  # noqa: E402
from benchmarks import costs  # noqa: E402
from benchmarks.cases import CASES  # noqa: E402
from benchmarks.end_to_end import IN_PYTHON, WHOLE  # noqa: E402
from benchmarks.measure import Race, Turn, run_race  # noqa: E402
from cq.planner.plan.costs import LOOK_UP_NS, SESSION_NS  # noqa: E402


def test_the_page_is_that_of_the_figures() -> None:
    found = json.loads(command.FIGURES.read_text(encoding="utf-8"))
    assert command.DOCUMENT.read_text(encoding="utf-8") == command.document(found), "python -m benchmarks --docs-only"


def test_a_ratio_is_the_median_of_the_ratios_within_rounds() -> None:
    turns = {"a": [Turn(1, 1), Turn(2, 1), Turn(9, 1)], "b": [Turn(2, 4), Turn(6, 1), Turn(9, 2)]}
    race = Race(10_000_000, turns)
    assert race.faster("a", "b") == 2  # of 2, 3, 1
    assert race.faster("a", "b", "cpu") == 2  # of 4, 1, 2
    assert race.rate("a") == 5
    assert race.spread("a") == pytest.approx((10 / 9, 10))
    assert race.faster("a", "absent") is None


def test_contenders_take_turns_and_begin_in_turn() -> None:
    seen: list[str] = []

    def contender(name: str) -> int:
        seen.append(name)
        return 7

    race = run_race(1, {n: lambda n=n: contender(n) for n in "ab"}, 3)  # type: ignore[misc]
    assert "".join(seen) == "ab" + "ab" + "ba" + "ab"
    assert len(race.turns["a"]) == len(race.turns["b"]) == 3


def test_contenders_that_disagree_about_the_result_are_refused() -> None:
    with pytest.raises(AssertionError, match="disagree"):
        run_race(1, {"a": lambda: 1, "b": lambda: 2, "c": lambda: None}, 1)


def test_a_missed_bar_is_shown_as_missed() -> None:
    def turns(seconds: float) -> dict[str, list[float]]:
        return {"wall_s": [seconds], "cpu_s": [seconds]}

    case = CASES["filter"]
    times = {"kernel": 2.0, "c++": 1.0, "-j 0": 2.0, "-j 1": 2.0, "-j 2": 1.0, "halves": 1.0, "duckdb": 3.0}
    record = {"units": 1_000_000, "turns": {name: turns(seconds) for name, seconds in times.items()}}
    missed = {t.title: t.missed for t in report.tables({"memory": {"filter": record}})}
    assert missed["Kernels and the same loops in C++"] == [case.title]  # half as fast
    assert missed["The engine and its kernel"] == []
    assert missed["Two workers and one"] == []
    assert missed["DuckDB and polars, from the same Arrow memory"] == []


def quick_figures(path: Path, *chosen: str) -> tuple[dict[str, Any], str]:
    """The figures that the quick form writes for these cases and suites, and what it prints."""
    command = [sys.executable, "-m", "benchmarks", "--quick", "--check", "--json", str(path), *chosen]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(path.read_text()), done.stdout


def test_the_quick_form_runs_a_contender_and_all_results_agree(tmp_path: Path) -> None:
    found, printed = quick_figures(tmp_path / "figures.json", "asof_join")
    assert {*found["memory"]} == {"asof_join"} and "Two workers and one" in printed
    assert found["machine"]["cores"] and found["commit"] and found["software"]["duckdb"]


@pytest.mark.long
def test_the_quick_form_runs_every_contender_and_all_results_agree(tmp_path: Path) -> None:
    names = ["filter_nulls", "asof_join", "sliding_1", "sliding_1000"]
    found, printed = quick_figures(tmp_path / "figures.json", *names, "parquet", "python")
    assert set(found["memory"]) == set(names)
    assert set(found["parquet"]) == {*names} - {"filter_nulls", "sliding_1"}
    assert len(found["python"]) == 2 * len(IN_PYTHON)
    for record in (*found["memory"].values(), *found["parquet"].values(), *found["python"].values()):
        assert record["units"] > 0
        assert all(s > 0 for t in record["turns"].values() for s in t["wall_s"])
    titles = ["Two workers and one", "From one Parquet file", "The engine and its kernel", "Windows many times"]
    for title in (*titles, "End to end in Python"):
        assert title in printed


@pytest.mark.long
def test_the_quick_form_measures_whole_processes(tmp_path: Path) -> None:
    found, printed = quick_figures(tmp_path / "figures.json", "whole")
    assert set(found["whole"]) == {case.name for case in WHOLE} and "Whole processes" in printed
    assert all(p > 2**20 for by in found["whole"].values() for times in by.values() for p in times["peak"])


def test_two_checkouts_are_measured_in_turn() -> None:
    command = [
        sys.executable,
        "-m",
        "benchmarks.against",
        str(ROOT),
        "filter",
        "--rounds",
        "1",
        "--pairs",
        "1",
        "--rows",
        "10000",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in {0, 1} and not done.stderr, done.stderr
    head, line = done.stdout.splitlines()
    assert head.split()[-1] == "0" and line.split()[0] == "filter" and line.count("(") == 4


def test_what_operators_add_to_a_row_is_measured_and_stands_beside_what_the_plan_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(costs, "ROWS", 2000)
    monkeypatch.setattr(costs, "ROUNDS", 1)
    costs.main(["session", "ASOF join"])
    _, session, asof = capsys.readouterr().out.splitlines()
    assert session.split()[0] == "session" and session.split()[-1] == str(SESSION_NS)
    assert asof.startswith("ASOF join") and asof.split()[-1] == str(2 * LOOK_UP_NS)
