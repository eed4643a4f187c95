"""SessionRows: rows numbered by session, as for the aggregate, and the bounds of each session beside its rows."""

from __future__ import annotations

from cq.planner.operators import SessionRows
from cq.spark.context import Context, lowers
from cq.spark.operators.session import numbered_sessions
from cq.spark.position import CteRows, Lowered, plus, select_list, timestamp


@lowers("session_rows")
def lower_session_rows(node: SessionRows, inputs: tuple[CteRows, ...], context: Context) -> Lowered:
    (rows,) = inputs
    names = tuple(f"_k{i}" for i in range(len(node.keys)))
    keys = ", ".join(f"{context.text(k, rows.columns)} as {name}" for k, name in zip(node.keys, names, strict=True))
    inner = ", ".join((*rows.columns, *([keys] if keys else []), "struct(_w, _s, _o) as _at"))
    numbered = numbered_sessions(node, names, inner, rows, context)
    session = f"over (partition by {', '.join((*names, '_session'))})"
    bounds = f"min(_u) {session} as _start, max(_u) {session} + {node.gap_us}L as _end, min(_at) {session} as _first"
    bounded = context.step("bounded", f"select *, {bounds}\n  from {numbered}")
    own = (*rows.columns, timestamp("_start"), timestamp("_end"), timestamp("_end - 1L"))
    first, at = "array(_start, _first._w, _first._s), _first._o", "array(_at._w, _at._s), _at._o"
    return Lowered(
        f"select {select_list(own)},\n"
        f"         {plus('_end', node.lag_us)} as _w, -1L as _s, concat({first}, {at}) as _o\n  from {bounded}"
    )
