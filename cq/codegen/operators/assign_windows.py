"""assign_windows: the bounds of a row's windows from its time, in a loop if there may be several."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from cq.codegen.flow import Flow, consumes
from cq.codegen.operators.window import grid_of_ends
from cq.codegen.values import Row, Val
from cq.codegen.writer import expr
from cq.planner.operators import AssignWindows, WindowKind
from cq.planner.plan.node import LogicalNode


@consumes("assign_windows", copies_text=False)
def consume_assign_windows(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """The row beside the bounds of each window. Admission sends the ends, when groups of such rows may close."""
    assert isinstance(node, AssignWindows)
    window = node.window
    flow.stage.grids.append(grid_of_ends(window, window.time.lag_us))
    with flow.on_time(node):
        time = row.column(window.time.column).it
        if window.time.shift_us:
            time = flow.scope.let(expr("T + S", T=time, S=window.time.shift_us), "t")
        if window.by_calendar:
            time = flow.scope.let(expr("months_of_time(T - S)", T=time, S=window.shift_us), "month")
        _windows(flow, node, row, time)


def _windows(flow: Flow, node: AssignWindows, row: Row, step: ast.expr) -> None:
    window, scope = node.window, flow.scope
    last = _point(flow, step, window.offset, window.slide, "last")
    if window.kind is WindowKind.CUMULATE:
        start = _point(flow, step, window.offset, window.size, "start")
        ends = expr("floordiv(S + SIZE - LAST, SLIDE)", S=start, SIZE=window.size, LAST=last, SLIDE=window.slide)
        with _each(flow, ends) as number:
            end = expr("LAST + (N + 1) * SLIDE", LAST=last, N=number, SLIDE=window.slide)
            _deliver(flow, node, row, start, scope.let(end, "end"))
    elif node.several:
        starts = expr("floordiv(SIZE - 1 - T + LAST, SLIDE)", SIZE=window.size, T=step, LAST=last, SLIDE=window.slide)
        before = scope.let(starts, "before")
        with _each(flow, expr("B + 1", B=before)) as number:
            start = expr("LAST - (B - N) * SLIDE", LAST=last, B=before, N=number, SLIDE=window.slide)
            start = scope.let(start, "start")
            _deliver(flow, node, row, start, expr("S + SIZE", S=start, SIZE=window.size))
    else:
        inside = expr("T - LAST < SIZE", T=step, LAST=last, SIZE=window.size)
        with scope.when(inside) if node.may_drop else nullcontext():
            _deliver(flow, node, row, last, expr("S + SIZE", S=last, SIZE=window.size))


def _point(flow: Flow, step: ast.expr, offset: int, period: int, hint: str) -> ast.expr:
    """The last point of a grid at or before a row's time, recomputed only if it differs from the previous row's: a
    comparison costs less than a division by a constant."""
    writer = flow.writer
    point = writer.hoist(ast.Constant(offset), hint)
    with flow.scope.when(expr("not ult(wsub(T, L), P)", T=step, L=ast.Name(point, ast.Load()), P=period)):
        writer.set(point, expr("T - floormod(T - O, P)", T=step, O=offset, P=period))
    return ast.Name(point, ast.Load())


@contextmanager
def _each(flow: Flow, count: ast.expr) -> Iterator[str]:
    """Inside, the number of a window, from 0."""
    number = flow.writer.fresh("w")
    with flow.writer.for_(number, 0, count), flow.scope.block():
        yield number


def _deliver(flow: Flow, node: AssignWindows, row: Row, start: ast.expr, end: ast.expr) -> None:
    """The row beside a window's bounds. start, end: in steps of the window."""
    window, scope = node.window, flow.scope
    if window.by_calendar:
        start, end = (expr("time_of_months(N) + S", N=n, S=window.shift_us) for n in (start, end))
        start = scope.let(start, "start")
    end = scope.let(end, "end")
    times = (start, end, scope.let(expr("E - 1", E=end), "time"))
    type_ = node.schema.fields[node.width].type
    flow.deliver(node, row.with_added(node.width, [Val(type_, (t,)) for t in times]))
