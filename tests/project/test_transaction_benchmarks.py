"""The benchmarks of transactions run, and their page says what was measured; how fast anything is, no test asserts."""

from __future__ import annotations

import json
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from paths import ROOT

pytest.importorskip("benchmarks.report", reason="the extra [test] is not installed")
from benchmarks.transactions import __main__ as command
from benchmarks.transactions.applications import percentiles
from benchmarks.transactions.page import page, pictures
from benchmarks.transactions.parts import PARTS
from benchmarks.transactions.pictures import chart


def test_the_page_and_its_pictures_are_those_of_the_figures() -> None:
    found = json.loads(command.FIGURES.read_text(encoding="utf-8"))
    assert list(found) == [name for name in PARTS if name in found]
    assert command.DOCUMENT.read_text(encoding="utf-8") == page(found), "python -m benchmarks.transactions --docs-only"
    for name, text in pictures(found).items():
        assert (command.PICTURES / name).read_text(encoding="utf-8") == text


def test_a_part_runs_by_every_scheme_and_is_told() -> None:
    arguments = ["streaming_ledger", "--quick", "--workers", "2"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.transactions", *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = [line.split(":")[0].split()[-2:] for line in done.stdout.splitlines()]
    assert told == [[s, "2"] for s in ("serial", "chains", "lock", "lock_a", "mvlk", "pat", "nolock")]


@pytest.mark.long
@pytest.mark.parametrize("part", PARTS)
def test_every_part_runs(part: str) -> None:
    command.main([part, "--quick", "--workers", "2"])


def test_a_part_that_is_not_there_is_refused() -> None:
    with pytest.raises(SystemExit):
        command.main(["everything"])


def test_a_picture_has_a_line_for_each_scheme_with_a_point_for_each_place() -> None:
    drawn = ElementTree.fromstring(
        chart("t", "along", "up", ["0", "1", "2"], {"a": [1.0, 2.0, 4.5], "b": [0.0, 0.0, 3.0]})
    )
    lines = [e.attrib["points"].split() for e in drawn.iter() if e.tag.endswith("polyline")]
    assert [len(points) for points in lines] == [3, 3]
    heights = [float(p.split(",")[1]) for p in lines[0]]
    assert heights == sorted(heights, reverse=True), "more is higher up"


def test_the_99th_of_a_hundred_is_the_last_but_none() -> None:
    assert percentiles([float(n) for n in range(200)]) == (99.5, 198.0)
