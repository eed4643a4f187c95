"""Bugs planted in semi and anti joins by time are seen by their cases in tests/slt, as those of test_mutants.py are."""

from __future__ import annotations

import pytest
from mutate import Mutant, in_turn

JOIN, MATCHING, WINDOW_JOINS = "codegen.operators.interval_join", "codegen.matching", "codegen.window_joins"


def by_time(module: str, old: str, new: str) -> Mutant:
    """A mutant that the cases should see."""
    return Mutant(f"cq.{module}", old, new, ("test_slt.py",), "interpreted and semi_joins_by_time:")


MUTANTS = {
    "a left row that leaves alone with a match also waits": by_time(
        JOIN, '"K == 1 and M == 0", K=kept, M=leave_if_matched', '"K == 1", K=kept, M=leave_if_matched'
    ),
    "a search for a match goes on behind it": by_time(MATCHING, '"MORE and M == 0"', '"MORE"'),
    "a left row without a match leaves although it waits": by_time(
        MATCHING, 'else "M == 0 and K == 0"', 'else "M == 0"'
    ),
    "a left row that has left alone is compared again": by_time(
        JOIN, "if node.kind.left_only and port == LEFT:\n        timed", "if False:\n        timed"
    ),
    "a join that leaves out matches lets them go": by_time(
        MATCHING,
        "                if node.kind is JoinKind.SEMI:\n                    flow.deliver",
        "                if True:\n                    flow.deliver",
    ),
    "a row of a window that leaves alone also waits": by_time(
        WINDOW_JOINS, '"K == 1 and M == 0", K=kept, M=leave_if_matched', '"K == 1", K=kept, M=leave_if_matched'
    ),
    "a row of a window leaves with each of its matches": by_time(
        WINDOW_JOINS, '"N == 0", N=length', '"N != -1", N=length'
    ),
    "a row behind a stretch that has grown is stepped over": by_time(
        WINDOW_JOINS,
        '"st_i64(F, W, A - F)", F=first',
        '"st_i64(F, W, A + SIZE - F)", SIZE=self.side.row_bytes, F=first',
    ),
    "a stretch goes on behind a row without a match": by_time(WINDOW_JOINS, '"P == B", P=row', '"B != P - P", P=row'),
    "the first right row of a key and window says all whatever else is tested": by_time(
        WINDOW_JOINS, "left_only or join.node.residual is not None:", "left_only:"
    ),
    "rows without an event time are tested first": Mutant(
        "cq.planner.binding.selects",
        "key=lambda match: not match.keeps_time",
        "key=lambda match: match.keeps_time",
        ("test_slt.py",),
        "expected_rows and semi_joins_by_time:",
    ),
}


@pytest.mark.mutants
@pytest.mark.parametrize("name", in_turn(MUTANTS))
def test_a_planted_bug_is_noticed(name: str, pytestconfig: pytest.Config) -> None:
    MUTANTS[name].demand_seen(name, pytestconfig.getoption("--update"))
