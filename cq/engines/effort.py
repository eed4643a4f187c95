"""How much the code of a query is optimised: as much as the rows that come are worth."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from cq.runtime.base.effort import Effort
from cq.runtime.layout.pipeline import Pipeline

# Rows for each line of generated code up to which an effort suits, so that no run takes longer for it. Between LITTLE
# and SOME compiling a line takes 0.2 ms longer, a row 20 to 100 ns less in most operators and 300 in an interval join;
# between SOME and FULL 0.4 ms, and 2 to 10 ns (queries of 645 to 4,113 lines, benchmarks of 2 to 12 M rows, CPU time on
# an AMD EPYC).
ROWS_A_LINE = {Effort.LITTLE: 1_000, Effort.SOME: 20_000}


def effort_for(pipeline: Pipeline, about_rows: Iterable[int | None]) -> Effort:
    """The effort that suits a run over sources of about so many rows each; None: nobody knows how many."""
    found: list[int] = []
    for rows in about_rows:
        if rows is None:
            return Effort.FULL
        found.append(rows)
    lines = sum(stage.module.count("\n") for stage in pipeline.stages)
    looked_at = prod(max(1, rows) for rows in found) if pipeline.pairs_all else sum(found)
    return next((e for e, rows in ROWS_A_LINE.items() if looked_at <= lines * rows), Effort.FULL)
