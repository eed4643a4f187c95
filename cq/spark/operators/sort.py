"""Sort: rows numbered in each partition by the order, ties by position; they come where their partition is emitted."""

from __future__ import annotations

from cq.planner.operators import Sort
from cq.spark.context import Context, lowers, timed
from cq.spark.position import END, CteRows, Lowered, plus


@lowers("sort")
def lower_sort(node: Sort, inputs: tuple[CteRows, ...], context: Context) -> Lowered:
    (rows,) = inputs
    columns = rows.columns
    keys = [f"{context.text(k, columns)} as _k{i}" for i, k in enumerate(node.partition)]
    order = [f"{context.text(k.expr, columns)} as _r{i}" for i, k in enumerate(node.order)]
    below = timed(rows, node.times[0], context) if node.times else rows.name
    leaves = f"{plus('_u', node.times[0].lag_us + 1)} as _due" if node.times else f"{END} as _due"
    more = ",\n         ".join(", ".join(part) for part in (columns, keys, order) if part)
    step = context.step("keyed", f"select {more},\n         {leaves}, _w, _s, _o\n  from {below}")
    by = [f"_r{i} {_direction(k.descending, k.nulls_first)}" for i, k in enumerate(node.order)]
    names = ", ".join(("_due", *(f"_k{i}" for i in range(len(keys)))))
    rank = f"row_number() over (partition by {names} order by {', '.join(by)}, _w, _s, _o) as _rank"
    first = f"min(struct(_w, _s, _o)) over (partition by {names}) as _first"
    ranked = context.step("ranked", f"select *,\n         {rank},\n         {first}\n  from {step}")
    kept = [f"_rank > {node.offset}"] if node.offset else []
    kept += [f"_rank <= {node.keep}"] if node.keep is not None else []
    where = f"\n  where {' and '.join(kept)}" if kept else ""
    serial = "-1L" if node.times else END
    place = "concat(array(_first._w, _first._s), _first._o, array(cast(_rank as BIGINT)))"
    return Lowered(
        f"select {', '.join(columns)},\n         _due as _w, {serial} as _s, {place} as _o\n  from {ranked}{where}"
    )


def _direction(descending: bool, nulls_first: bool) -> str:
    return f"{'desc' if descending else 'asc'} nulls {'first' if nulls_first else 'last'}"
