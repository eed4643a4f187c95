"""How many cases of tests/slt have each operator in their plan: `python -m tests.slt_coverage` prints the table."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))

from cases import Prepared
from paths import SLT
from slt_format import SltCase, read_cases

from cq.planner import operators
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.registration import OPERATORS


def all_cases() -> list[SltCase]:
    """Those of every file; of one only where CQ_SLT_FILE names it, without its suffix."""
    only = os.environ.get("CQ_SLT_FILE", "*")
    return [case for path in sorted(SLT.rglob(f"{only}.slt")) for case in read_cases(path)]


def cases_of_operators(plans: Iterable[LogicalPlan]) -> Counter[str]:
    """In how many of the plans each operator of a query is."""
    home = operators.__name__ + "."
    counts = Counter({name: 0 for name, node in OPERATORS.items() if node.__module__.startswith(home)})
    for plan in plans:
        counts.update({node.operator for node in plan.nodes()})
    return counts


if __name__ == "__main__":
    cases = all_cases()
    print(f"{len(cases)} cases")
    plans = [Prepared(c.text).compiled.plan for c in cases if not c.error or c.error.startswith("CQ07")]
    for name, count in cases_of_operators(plans).most_common():
        print(f"{count:5} {name}")
