"""Inputs that have no more rows: then nothing needs to be kept for them.

A batch says which sources had ended before it (BATCH_ENDED). The rows of an operator's input have ended where they are
made, row by row, from sources that all have.
"""

from __future__ import annotations

import ast

from cq.codegen.flow import Flow, StagePlan
from cq.codegen.writer import expr
from cq.planner.operators import Join
from cq.planner.plan.node import LogicalNode
from cq.runtime.layout import abi

PORTS = 63  # that BATCH_ENDED has bits of


def has_ended(flow: Flow, node: LogicalNode, port: int) -> ast.expr | None:
    """1 where the input of the node has no more rows from this batch on, else 0; None where that is not known."""
    ports = _ports(flow.stage, node.inputs[port]) if flow.has_batch else None
    if ports is None:
        return None
    mask = sum(1 << p for p in ports)
    ended = expr("pick(ld_i64(batch, W) & MASK == MASK, 1, 0)", W=abi.BATCH_ENDED, MASK=mask)
    return ast.Name(flow.writer.hoist(ended, "ended"), ast.Load())


def _ports(stage: StagePlan, node: LogicalNode) -> set[int] | None:
    """The sources of the stage whose rows cause all rows of the node, none of them later than its cause; else None."""
    found: set[int] = set()
    pending = [node]
    while pending:
        at = pending.pop()
        if not at.inputs:
            port = stage.source_ports.get(id(at), PORTS)
            if port >= PORTS:
                return None
            found.add(port)
        elif at.closes or at.emits_at_end or (at.keeps_state and not isinstance(at, Join)):
            return None
        pending += at.inputs
    return found
