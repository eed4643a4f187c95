"""How much the code of a query is optimised: little where so few rows come that the time saved is worth more."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from cq.runtime.layout.pipeline import Pipeline

# Rows for each line of generated code below which it is optimised little. To optimise a line takes 0.8 ms, a seventh of
# that if little is done; then a row takes 20 to 100 ns longer in most operators, and 300 in an interval join
# (1,152 to 4,113 lines; benchmarks of 2 to 12 M rows; CPU seconds on an AMD EPYC). So no run takes longer for it.
ROWS_A_LINE = 1000


def is_brief(pipeline: Pipeline, about_rows: Iterable[int | None]) -> bool:
    """Whether a run over sources of about so many rows each takes less time with code that is optimised little.

    None: nobody knows how many rows a source has.
    """
    found: list[int] = []
    for rows in about_rows:
        if rows is None:
            return False
        found.append(rows)
    lines = sum(stage.module.count("\n") for stage in pipeline.stages)
    looked_at = prod(max(1, rows) for rows in found) if pipeline.pairs_all else sum(found)
    return looked_at <= lines * ROWS_A_LINE
