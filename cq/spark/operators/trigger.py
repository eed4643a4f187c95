"""Trigger: not on Spark. Transactions are one after the other, and a batch has no such loop in SQL."""

from __future__ import annotations

from cq.errors import compile_error
from cq.planner.operators import Trigger
from cq.spark.context import Context, lowers
from cq.spark.position import Lowered, Rows


@lowers("trigger")
def lower_trigger(node: Trigger, inputs: tuple[Rows, ...], context: Context) -> Lowered:
    raise compile_error(
        "CQ0901",
        "triggers do not run on Spark yet: a transaction sees those before it",
        node.span,
        help="run it with --engine native or --engine reference, and compare these: cq diff --against reference",
    )
