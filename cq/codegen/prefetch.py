"""Looking ahead: the table entry a later row will need is fetched while this one is computed.

Only for keys that are plain columns of the source, or of the stage before: then the key of a row some turns later costs
a load and a hash. What is fetched in vain does no harm.
"""

from __future__ import annotations

from collections.abc import Sequence

from cq.codegen.expressions.emit import emit
from cq.codegen.flow import Flow
from cq.codegen.state.hash_tables import Keys, TableLocals
from cq.lang.expressions import Column, Expr
from cq.planner.plan.logical import at_leaf
from cq.planner.plan.node import LogicalNode


def prefetch(flow: Flow, input: LogicalNode, keys: Keys, table: TableLocals, exprs: Sequence[Expr]) -> None:
    """Write a prefetch for the key `exprs` over rows of `input`, if it is cheap to know ahead."""
    ahead, soon = flow.ahead, flow.soon
    below = source_columns(input, exprs)
    if ahead is None or soon is None or not below:
        return
    keys.prefetch(
        table,
        lambda: [emit(flow.scope, ahead, e) for e in below],
        lambda: [emit(flow.scope, soon, e) for e in below],
    )


def source_columns(node: LogicalNode, exprs: Sequence[Expr]) -> tuple[Expr, ...]:
    """The expressions over the scan below a chain of filters and projections, if all are plain columns there."""
    found = at_leaf(node, exprs)
    below = found[1] if found is not None else ()
    return below if all(isinstance(e, Column) for e in below) else ()
