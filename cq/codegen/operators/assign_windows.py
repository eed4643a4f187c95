"""assign_windows: the bounds of a row's windows from its time, in a loop where they may be several."""

from __future__ import annotations

import ast

from cq.codegen.flow import Flow, consumes
from cq.codegen.values import Row, Val
from cq.codegen.writer import Fill, expr
from cq.lang.types import TIMESTAMP
from cq.planner.operators import AssignWindows
from cq.planner.plan.node import LogicalNode
from cq.runtime.layout.job import Grid


@consumes("assign_windows", copies_text=False)
def consume_assign_windows(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """The row beside the bounds of each window. Admission sends the ends, at which groups of such rows may close."""
    assert isinstance(node, AssignWindows)
    window, scope = node.window, flow.scope
    flow.stage.grids.append(Grid(window.slide_us, window.offset_us + window.size_us + window.time.lag_us))
    with flow.on_time(node):
        time: Fill = row.column(window.time.column).it
        if window.time.shift_us:
            time = scope.let(expr("T + S", T=time, S=window.time.shift_us), "t")
        into = expr("floormod(T - O, SLIDE)", T=time, O=window.offset_us, SLIDE=window.slide_us)
        into = scope.let(into, "into")
        if node.several:
            _each_window(flow, node, row, time, into)
        elif node.may_drop:
            with scope.when(expr("I < SIZE", I=into, SIZE=window.size_us)):
                _deliver(flow, node, row, scope.let(expr("T - I", T=time, I=into), "start"))
        else:
            _deliver(flow, node, row, scope.let(expr("T - I", T=time, I=into), "start"))


def _each_window(flow: Flow, node: AssignWindows, row: Row, time: Fill, into: ast.expr) -> None:
    """The windows from the first that is not over to the one that began last, `into` before the time."""
    scope, writer, window = flow.scope, flow.writer, node.window
    before = expr("floordiv(LAST - I, SLIDE)", LAST=window.size_us - 1, I=into, SLIDE=window.slide_us)
    before = scope.let(before, "before")
    first = scope.let(expr("T - I - B * SLIDE", T=time, I=into, B=before, SLIDE=window.slide_us), "first")
    number = writer.fresh("w")
    with writer.for_(number, 0, expr("B + 1", B=before)), scope.block():
        start = scope.let(expr("F + N * SLIDE", F=first, N=number, SLIDE=window.slide_us), "start")
        _deliver(flow, node, row, start)


def _deliver(flow: Flow, node: AssignWindows, row: Row, start: ast.expr) -> None:
    scope = flow.scope
    end = scope.let(expr("S + SIZE", S=start, SIZE=node.window.size_us), "end")
    times = (start, end, scope.let(expr("E - 1", E=end), "time"))
    flow.deliver(node, row.with_added(len(node.input.schema), [Val(TIMESTAMP, (t,)) for t in times]))
