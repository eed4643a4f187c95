"""Arrays as keys: equal ones must have the same bytes."""

from __future__ import annotations

from cq.errors import NOWHERE, Span, compile_error
from cq.lang.expressions import Expr
from cq.planner.plan.logical import LogicalPlan


def demand_plain_keys(plan: LogicalPlan) -> None:
    """Check that all keys of a grouping or match are plain."""
    for node in plan.nodes():
        for keys in node.input_keys or ():
            for key in keys:
                demand_plain_key(key, node.span)


def demand_plain_key(key: Expr, at: Span = NOWHERE) -> None:
    """CQ0501 for a key that is an array of REAL or DOUBLE: 0.0 equals -0.0, and their bytes differ."""
    if key.type.element is not None and key.type.element.is_float:
        raise compile_error(
            "CQ0501",
            f"a key of type {key.type} is not supported yet",
            key.span if key.span != NOWHERE else at,
            label=str(key.type),
            help="CAST it to DECIMAL(18, 6)[], or take elements: a[1], a[2]",
        )
