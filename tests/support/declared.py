"""Check operators against the declarations of their nodes while the reference runs: ports have room for no more
rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from cq.planner.plan.node import LogicalNode
from cq.reference import graph
from cq.reference.operator import Clock, RowOperator
from cq.reference.operators import operator_of


@contextmanager
def held_to_their_word() -> Iterator[None]:
    """Inside, a row that causes more rows than `fan_out` declares, or any in an input that `holds_back`, is an
    error."""
    with patch.object(graph, "operator_of", _watched):
        yield


def _watched(node: LogicalNode, clock: Clock) -> RowOperator:
    operator = operator_of(node, clock)
    take = operator.on_row

    def on_row(port: int, row: tuple[object, ...]) -> None:
        before = len(operator.out)
        take(port, row)
        made, most = len(operator.out) - before, node.fan_out
        assert most is None or made <= most, f"{node.operator} made {made} rows of one, and says {most}"
        assert not made or not node.holds_back(port), f"{node.operator} holds back input {port}, and emits its rows"

    operator.on_row = on_row  # type: ignore[method-assign]  # whichever class it is, and this one instance alone
    return operator
