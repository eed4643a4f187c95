"""How many cases of tests/slt have each operator in their plan: `python -m tests.slt_coverage` prints the table."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))

from cases import Prepared
from paths import SLT
from slt_format import read_cases


def main() -> None:
    cases = [c for path in sorted(SLT.rglob("*.slt")) for c in read_cases(path)]
    counts: Counter[str] = Counter()
    for case in cases:
        if not case.error or case.error.startswith("CQ07"):
            counts.update({n.operator for n in Prepared(case.text).compiled.plan.nodes()})
    print(f"{len(cases)} cases")
    for name, count in counts.most_common():
        print(f"{count:5} {name}")


if __name__ == "__main__":
    main()
