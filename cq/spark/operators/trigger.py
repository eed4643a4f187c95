"""Trigger: the view of its rows, which the serial loop makes (`cq.spark.replay`): SQL has no such loop."""

from __future__ import annotations

from cq.planner.operators import Trigger
from cq.spark.context import Context, lowers
from cq.spark.ingest import from_view
from cq.spark.position import CteRows, Lowered, column_names, select_list


@lowers("trigger")
def lower_trigger(node: Trigger, inputs: tuple[CteRows, ...], context: Context) -> Lowered:
    assert not inputs, "the text of a trigger reads its view"
    replayed = context.replayed[id(node)]
    columns = [from_view(c, t) for c, t in zip(column_names(len(node.schema)), node.schema.types, strict=True)]
    late = ", _late" if replayed.late else ""
    return Lowered(f"select {select_list(columns)}, _w, _s, _o{late}\n  from {replayed.view}", replayed.late)
