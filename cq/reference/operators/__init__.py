"""The operators of the reference, by the names of `cq.planner.operators`. A file registers what it defines.

Importing this fails with the names of what is missing."""

from __future__ import annotations

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

from cq.planner.plan.node import LogicalNode  # noqa: E402  operators are there by now
from cq.planner.plan.registration import complete  # noqa: E402  operators are there by now
from cq.reference.operator import OPERATORS, Clock, RowOperator  # noqa: E402  they register themselves first

__all__ = ["OPERATORS", "operator_of"]


def operator_of(node: LogicalNode, clock: Clock) -> RowOperator:
    """The class that runs the node. It must define what the node declares."""
    made = OPERATORS[node.operator](node, clock)
    demanded = {
        "on_row": True,
        "next_instant": node.emits_when_due(waiting=True),
        "on_instant": node.emits_when_due(waiting=True),
        "on_end": node.emits_at_end,
        "place_of": node.groups is node,
    }
    missing = [method for method, declared in demanded.items() if declared and not made.defines(method)]
    assert not missing, f"operator {node.operator}: the reference does not define {', '.join(missing)}"
    return made


complete("the reference", OPERATORS)
