"""The operators in kernels, by the names of `cq.planner.operators`. A file registers what it defines.

An operator whose node says that it emits by itself must register the writer of that here: otherwise importing this
fails with the names of what is missing.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from cq.codegen.flow import CHAINED, CLOSE, CONSUME, DUE_BY_DATA, DUE_ON_GRID, FINISH
from cq.codegen.state.entry_moves import HOLDS
from cq.entries import BadEntry
from cq.planner import __name__ as _PLANNER
from cq.planner.plan.node import Leaf, LogicalNode, Stateless
from cq.planner.plan.registration import OPERATORS

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")


def problems(operators: dict[str, type[LogicalNode]]) -> Iterator[str]:
    """What these operators lack in kernels, according to their nodes."""
    for name, node in operators.items():
        closes, emits_at_end = (_said(node, what) is not False for what in ("closes", "emits_at_end"))
        if name not in CONSUME and not issubclass(node, Leaf):
            yield f"operator {name}: nothing writes what it does with a row (@consumes)"
        if closes and name not in CLOSE:
            yield f"operator {name}: it closes, and nothing writes that (@closes)"
        if not closes and _may_wait(node) and name not in CLOSE:
            yield f"operator {name}: rows wait for a time, and nothing writes what happens then (@closes)"
        if closes and (name in DUE_BY_DATA) + (name in DUE_ON_GRID) != 1:
            yield f"operator {name}: it closes, by data or on a grid (@due_by_data or @due_on_grid)"
        if _said(node, "input_keys") is not None and name not in HOLDS:
            yield f"operator {name}: it keeps state, and nothing says what (@holds)"
        if emits_at_end and name not in FINISH:
            yield f"operator {name}: it emits at the end, and nothing writes that (@finishes)"


def _said(node: type[LogicalNode], what: str) -> object:
    """What a class declares: a value, or a property if it depends on the node."""
    return getattr(node, what)


def _may_wait(node: type[LogicalNode]) -> bool:
    """Whether its rows may wait for a time: known only for a node, not for the class."""
    return not issubclass(node, Stateless) and isinstance(_said(node, "waits_on"), property)


def _complete() -> None:
    found = list(problems({n: c for n, c in OPERATORS.items() if c.__module__.startswith(f"{_PLANNER}.")}))
    if CHAINED not in CONSUME:
        found.append(
            f"nothing writes what takes the events of transactions that are run together (@consumes {CHAINED})"
        )
    if found:
        raise BadEntry("; ".join(found))


_complete()
