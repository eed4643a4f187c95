"""Scan: the view of a source, as `cq.spark.ingest` wrote it: with its position and its lateness."""

from __future__ import annotations

from cq.planner.operators import Scan
from cq.spark.context import Context, lowers
from cq.spark.ingest import from_view
from cq.spark.position import NO_ORDINAL, CteRows, Lowered, column_names, select_list


@lowers("scan")
def lower_scan(node: Scan, inputs: tuple[CteRows, ...], context: Context) -> Lowered:
    late = node.source.event_time is not None
    columns = [from_view(c, t) for c, t in zip(column_names(len(node.schema)), node.schema.types, strict=True)]
    more = ", _late" if late else ""
    return Lowered(
        f"select {select_list(columns)}, _w, _s, {NO_ORDINAL} as _o{more}\n  from {context.view(node.source)}", late
    )
