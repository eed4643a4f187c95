"""How many cases of tests/slt have each operator in their plan: `python -m tests.slt_coverage` prints the table."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))

from cases import Prepared
from paths import SLT
from slt_format import SltCase, read_cases

from cq.planner import operators
from cq.planner.plan.node import OPERATORS


def all_cases() -> list[SltCase]:
    return [case for path in sorted(SLT.rglob("*.slt")) for case in read_cases(path)]


def cases_of_operators(cases: list[SltCase]) -> Counter[str]:
    """How many of the cases have each operator of a query in their plan."""
    home = operators.__name__ + "."
    counts = Counter({name: 0 for name, node in OPERATORS.items() if node.__module__.startswith(home)})
    for case in cases:
        if not case.error or case.error.startswith("CQ07"):
            counts.update({node.operator for node in Prepared(case.text).compiled.plan.nodes()})
    return counts


if __name__ == "__main__":
    cases = all_cases()
    print(f"{len(cases)} cases")
    for name, count in cases_of_operators(cases).most_common():
        print(f"{count:5} {name}")
