"""filter, project, union: operators that keep nothing."""

from __future__ import annotations

from cq.codegen.expressions import emit
from cq.codegen.flow import Flow, computed, consumes
from cq.codegen.values import Row, is_true
from cq.planner.logical import LogicalNode
from cq.planner.operators import Filter, Project, UnionAll


@consumes("filter")
def consume_filter(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """What is written downstream happens when the predicate is TRUE."""
    assert isinstance(node, Filter)
    with flow.scope.when(is_true(emit(flow.scope, row, node.predicate))):
        flow.deliver(node, row)


@consumes("project")
def consume_project(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """Columns are computed where they are first needed; what can fail, here and in order."""
    assert isinstance(node, Project)
    flow.deliver(node, computed(flow, node.exprs, row))


@consumes("union")
def consume_union(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """A row of any branch goes on as it is."""
    assert isinstance(node, UnionAll)
    flow.deliver(node, row)
