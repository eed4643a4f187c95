"""Looking ahead: the table entry a later row will need is fetched while this one is computed.

Only for keys that are plain columns of the source, or of the stage before: then the key of a row some turns later costs
a load and a hash. What is fetched in vain does no harm.
"""

from __future__ import annotations

from collections.abc import Sequence

from cq.codegen.expressions import emit
from cq.codegen.flow import Flow
from cq.codegen.probe import Keys, TableLocals
from cq.expressions import Column, Expr, substitute
from cq.planner.logical import LogicalNode
from cq.planner.operators import Filter, Project


def prefetch(flow: Flow, input: LogicalNode, keys: Keys, table: TableLocals, exprs: Sequence[Expr]) -> None:
    """Write a prefetch for the key `exprs` over rows of `input`, if it is cheap to know ahead."""
    ahead = flow.ahead
    below = source_columns(input, exprs)
    if ahead is None or not below:
        return
    keys.prefetch(table, lambda: [emit(flow.scope, ahead, e) for e in below])


def source_columns(node: LogicalNode, exprs: Sequence[Expr]) -> tuple[Expr, ...]:
    """The expressions over the scan below a chain of filters and projections, if all are plain columns there."""
    below = tuple(exprs)
    while node.inputs:
        match node:
            case Filter(input=lower):
                node = lower
            case Project(input=lower, exprs=made):
                below = tuple(substitute(e, made) for e in below)
                node = lower
            case _:
                return ()
    return below if all(isinstance(e, Column) for e in below) else ()
