"""Over: window functions over the partition's rows up to this one, in the order in which they leave."""

from __future__ import annotations

from cq.planner.operators import Lag, Over
from cq.spark.context import Context, aggregate, argument, lowers, released
from cq.spark.position import CteRows, Lowered

POSITION = "struct(_w, _s, _o)"
RUNNING = "rows between unbounded preceding and current row"


@lowers("over")
def lower_over(node: Over, inputs: tuple[CteRows, ...], context: Context) -> Lowered:
    (rows,) = inputs
    columns = rows.columns
    keys = [f"{context.text(p, columns)} as _k{i}" for i, p in enumerate(node.partition)]
    partition = f"partition by {', '.join(f'_k{i}' for i in range(len(keys)))} " if keys else ""
    window = f"{partition}order by _w, _s, _o"
    arguments: list[str] = []
    calls: list[str] = []
    for i, call in enumerate(node.calls):
        if isinstance(call, Lag):
            arguments.append(f"{context.text(call.arg, columns)} as _a{i}")
            default = ""
            if call.default is not None:
                arguments.append(f"{context.text(call.default, columns)} as _d{i}")
                default = f", _d{i}"
            calls.append(f"lag(_a{i}, {call.offset}{default}) over ({window})")
        else:
            arguments.append(f"{argument(call, columns, context)} as _a{i}")
            calls.append(aggregate(call, f"_a{i}", f" over ({window} {RUNNING})", POSITION))
    more = ", ".join((*columns, *keys, *arguments))
    if node.order is None:
        late, below = rows.late, f"select {more}, {rows.position}\n  from {rows.name}"
    else:
        late, below = False, released(rows, node.order, more, context)
    added = ",\n         ".join(f"{text} as c{i}" for i, text in enumerate(calls, rows.width))
    position = "_w, _s, _o, _late" if late else "_w, _s, _o"
    own = "".join(f"{c}, " for c in columns)
    return Lowered(f"select {own}{position},\n         {added}\n  from {context.step('in_order', below)}", late)
