"""Inputs that have no more rows: then nothing needs to be kept for them.

A batch records which sources had ended before it (BATCH_ENDED). The rows of an operator's input have ended if they
are made, row by row, from sources that have all ended.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from cq.codegen.flow import Flow
from cq.codegen.writer import expr
from cq.planner.physical.complete import MOST_SOURCES, causes
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.source import SourceDef, sources_of
from cq.runtime.layout import abi


def has_ended(flow: Flow, node: LogicalNode, port: int) -> ast.expr | None:
    """1 if the input of the node has no more rows from this batch on, else 0; None if that is not known."""
    found = causes(node.inputs[port]) if flow.has_batch else None
    mask = ended_mask(flow.stage.plan, found) if found is not None else None
    if mask is None:
        return None
    ended = expr("pick(ld_i64(batch, W) & MASK == MASK, 1, 0)", W=abi.BATCH_ENDED, MASK=mask)
    return ast.Name(flow.writer.hoist(ended, "ended"), ast.Load())


def ended_mask(plan: LogicalPlan, sources: Collection[SourceDef]) -> int | None:
    """The bits of BATCH_ENDED of these sources of a stage, at least one; None if some source has no bit."""
    ports = [port for port, source in enumerate(sources_of(plan.nodes())) if source in sources]
    return sum(1 << port for port in ports) if max(ports) < MOST_SOURCES else None
