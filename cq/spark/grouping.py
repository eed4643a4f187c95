"""Grouped aggregates: what windows and aggregates of the whole input share.

Keys and arguments are computed in a separate SELECT, as _k0, _k1, … and _a0, _a1, …, so that each appears once.
"""

from __future__ import annotations

from collections.abc import Sequence

from cq.lang.expressions import Expr
from cq.planner.plan.calls import AggregateCall
from cq.spark.context import Context, aggregate, argument
from cq.spark.position import CteRows


class GroupTexts:
    """The texts of GROUP BY keys and aggregates over `rows`.

    inner: the columns of the SELECT below GROUP BY.  keys: the columns to group by.  results: keys, then aggregates,
    for the SELECT above.
    """

    def __init__(self, keys: Sequence[Expr], calls: Sequence[AggregateCall], rows: CteRows, context: Context) -> None:
        columns = rows.columns
        self.keys = tuple(f"_k{i}" for i in range(len(keys)))
        names = [f"_a{i}" for i in range(len(calls))]
        shown = [f"{context.text(k, columns)} as {name}" for k, name in zip(keys, self.keys, strict=True)]
        shown += [f"{argument(c, columns, context)} as {name}" for c, name in zip(calls, names, strict=True)]
        self.inner = ", ".join((*shown, "struct(_w, _s, _o) as _at"))
        self.results = [*self.keys, *(aggregate(c, name, position="_at") for c, name in zip(calls, names, strict=True))]


def place_of_group(before: str = "") -> str:
    """The place of a group among those emitted together: after `before`, by the position of its first row."""
    comma = f"{before}, " if before else ""
    return f"concat(array({comma}min(_at)._w, min(_at)._s), min(_at)._o)"
