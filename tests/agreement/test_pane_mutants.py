"""Bugs planted where a row finds its pane are seen by cases of tests/slt, as those of test_mutants.py are."""

from __future__ import annotations

import pytest
from mutate import Mutant, in_turn

WINDOW = "cq.codegen.operators.window"


def in_windows(file: str, old: str, new: str) -> Mutant:
    """A mutant that cases of one file of tests/slt should see."""
    return Mutant(WINDOW, old, new, ("test_slt.py",), f"interpreted and {file}:")


MUTANTS = {
    "rows that come by two ways have two panes at hand": in_windows(
        "windows", "    if slot.offset not in flow.panes:", "    if slot.offset >= 0:"
    ),
    "the pane at hand is as it was though a session has closed": Mutant(
        WINDOW, "        flow.stale.append(pane.forget)\n", "", ("test_pane_tables.py",), "closes"
    ),
    "a row that ends with the last one's window is in it": in_windows(
        "sessions", '"END != E or START != S"', '"END != E or START == START + 1"'
    ),
    "a row that begins with the last one's window is in it": in_windows(
        "windows", '"END != E or START != S"', '"(E == NEVER or START != S) and END == END"'
    ),
}


@pytest.mark.mutants
@pytest.mark.parametrize("name", in_turn(MUTANTS))
def test_a_planted_bug_is_noticed(name: str, pytestconfig: pytest.Config) -> None:
    MUTANTS[name].demand_seen(name, pytestconfig.getoption("--update"))
