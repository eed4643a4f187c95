"""temporal_join: right rows replace their key's entry, left rows look it up."""

from __future__ import annotations

from functools import partial

from cq.codegen.flow import Flow, closes, consumes
from cq.codegen.matching import where_passes
from cq.codegen.row_versions import layout_of, look_up_version, replace_version
from cq.codegen.stage_draft import StageDraft
from cq.codegen.state.entry_moves import Held, entries, holds
from cq.codegen.values import Row
from cq.codegen.waiting_rows import close_buffer, when_due
from cq.planner.operators import TemporalJoin
from cq.planner.plan.node import LogicalNode

LEFT = 1  # port; right rows take effect first within an event


@consumes("temporal_join", copies_text=False)
def consume_temporal_join(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """A right row takes effect at once; with a delay a left row waits for the watermark."""
    assert isinstance(node, TemporalJoin)
    with flow.on_time(node):
        if port != LEFT:
            replace_version(flow, node, row)
        elif flow.stage.planned.waits:
            when_due(flow, node, LEFT, row, partial(_look_up, node=node))
        else:
            _look_up(flow, row, node)


@closes("temporal_join")
def close_temporal_join(stage: StageDraft, node: LogicalNode) -> None:
    """With a delay: a function that looks up the left rows that the watermark has reached."""
    assert isinstance(node, TemporalJoin)
    if stage.planned.waits:
        close_buffer(stage, node, LEFT, partial(_look_up, node=node))


@holds("temporal_join")
def held_temporal_join(node: LogicalNode) -> tuple[Held, ...]:
    """The latest right row of each key."""
    assert isinstance(node, TemporalJoin)
    return (entries("versions", layout_of(node).keys),)


def _look_up(flow: Flow, row: Row, node: TemporalJoin) -> None:
    look_up_version(flow, node, row, lambda joined: where_passes(flow, node.residual, joined))
