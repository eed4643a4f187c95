"""Calls with OVER expressed through other calls with OVER.

NTH_VALUE, LAG and LEAD with IGNORE NULLS, and, in frames that start at the first row, DISTINCT and all values.

Each is over the rows of the partition up to some row: a call over the frame finds that row, and a running one computes
the value there.

NTH_VALUE, LAG and LEAD with IGNORE NULLS, and in frames from the first row on DISTINCT and all values.

Each is of the rows of the partition up to some row: a call about the frame says which row that is, and a running one
what there is up to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from cq.errors import Span, compile_error
from cq.grammar import ast
from cq.lang.aggregates import lookup
from cq.planner.binding.frames import is_whole, leaves_out, refuse_frame
from cq.planner.binding.window_functions import demand_count, plain_arguments
from cq.records import replace

MOST_SKIPPED = 8  # values that LAG and LEAD skip over NULLs: each is one more pass over the rows


def nested(node: ast.Call, spec: ast.WindowSpec) -> ast.Expr | None:
    """The call rewritten to others, nested in the arguments of calls with OVER; None if it needs no rewriting."""
    if node.name == "nth_value":
        return _nth_value(node, spec)
    if node.name in {"lag", "lead"} and node.nulls == "IGNORE":
        return _next_value(node, spec)
    entry = lookup(node.name)
    if entry is None or node.order_by or node.within or is_whole(spec) or not _from_the_first(spec):
        return None
    if node.distinct and len(node.args) >= 1 and not isinstance(node.args[0], ast.NamedArgument):
        return _distinct(node, node.args[0], spec)
    if entry.slides or _is_running(spec):
        return None
    at = node.span
    running = replace(node, over=_running(spec, at))
    value: ast.Expr = ast.Call("last_value", (running,), over=spec, span=at, name_span=at, over_span=at)
    if not entry.never_null:
        return value
    return ast.Call("coalesce", (value, ast.NumberLiteral("0", span=at)), span=at, name_span=at)


def _distinct(node: ast.Call, value: ast.Expr, spec: ast.WindowSpec) -> ast.Expr:
    """The call over the first row of each value, among those that pass its filter."""
    at = node.span
    kinds = (value,) if node.filter is None else (value, node.filter)
    of_value = ast.WindowSpec((*spec.partition_by, *kinds), spec.order_by, None, None, span=at)
    number = ast.Call("row_number", over=of_value, span=at, name_span=at, over_span=at)
    first: ast.Expr = ast.Binary("=", number, ast.NumberLiteral("1", span=at), span=at, op_span=at)
    return replace(node, distinct=False, filter=_and(node.filter, first), over=spec)


def _nth_value(node: ast.Call, spec: ast.WindowSpec) -> ast.Expr:
    """NTH_VALUE(x, n): the x of the n-th row of the frame, with IGNORE NULLS among those where x is not NULL."""
    value, count = _arguments(node)
    at, skips = node.span, node.nulls == "IGNORE"
    if _from_the_first(spec):
        there = ast.IsTest(value, "NULL", True, span=at) if skips else None
        running = _running(spec, at)
        number = ast.Call("count", star=True, filter=there, over=running, span=at, name_span=at, over_span=at)
        found = _and(there, ast.Binary("=", number, count, span=at, op_span=at))
        return ast.Call("first_value", (value,), filter=found, over=spec, span=at, name_span=at, over_span=at)
    if skips or leaves_out(spec.frame):
        listed = ast.Call("array_agg", (value,), nulls=node.nulls, over=spec, span=at, name_span=at, over_span=at)
        return ast.Subscript(listed, count, span=at)
    ahead = ast.FrameBound("FOLLOWING", ast.NumberLiteral(str(int(count.text) - 1), span=at), span=at)
    later = replace(spec, frame=ast.Frame("ROWS", ahead, ahead, span=at))
    inner = ast.Call("first_value", (value,), over=later, span=at, name_span=at, over_span=at)
    outer = ast.Call("first_value", (inner,), over=spec, span=at, name_span=at, over_span=at)
    rows = ast.Call("count", star=True, over=spec, span=at, name_span=at, over_span=at)
    enough = ast.Binary(">=", rows, count, span=at, op_span=at)
    return ast.Case(None, (ast.When(enough, outer, span=at),), None, span=at)


def _next_value(node: ast.Call, spec: ast.WindowSpec) -> ast.Expr:
    """LAG(x, n, d) or LEAD with IGNORE NULLS: the n-th nearest x on that side that is not NULL.

    The nearest is the last, or first, of them. The n-th is the n-1-th of the nearest row with an x.
    """
    args = plain_arguments(node)
    refuse_frame(node, spec)
    at, name = node.span, node.name.upper()
    if not 1 <= len(args) <= 3:
        what = f"{name} takes a value, a number of rows and a default"
        raise compile_error("CQ0302", what, at, help=f"{name}(x, 1)")
    value, *more = args
    number = more[0] if more else ast.NumberLiteral("1", span=at)
    demand_count(node, number, least=1)
    assert isinstance(number, ast.NumberLiteral)
    if int(number.text) > MOST_SKIPPED:
        what = f"{name} with IGNORE NULLS looks at most {MOST_SKIPPED} values away"
        raise compile_error("CQ0302", what, number.span, help="filter the rows in a derived table first")
    far, near = ast.FrameBound("UNBOUNDED PRECEDING", span=at), _one(at, "PRECEDING")
    if node.name == "lead":
        far, near = _one(at, "FOLLOWING"), ast.FrameBound("UNBOUNDED FOLLOWING", span=at)
    there = replace(spec, frame=ast.Frame("ROWS", far, near, span=at))
    nearest = "last_value" if node.name == "lag" else "first_value"
    present = ast.IsTest(value, "NULL", True, span=at)
    found: ast.Expr = value
    for _ in range(int(number.text)):
        found = ast.Call(nearest, (found,), filter=present, over=there, span=at, name_span=at, over_span=at)
    if len(more) < 2:
        return found
    rows = ast.Call("count", (value,), over=there, span=at, name_span=at, over_span=at)
    enough = ast.Binary(">=", rows, number, span=at, op_span=at)
    return ast.Case(None, (ast.When(enough, found, span=at),), more[1], span=at)


def _one(at: Span, side: Literal["PRECEDING", "FOLLOWING"]) -> ast.FrameBound:
    return ast.FrameBound(side, ast.NumberLiteral("1", span=at), span=at)


def _arguments(node: ast.Call) -> tuple[ast.Expr, ast.NumberLiteral]:
    """The value and the number of the row. CQ0302 for other arguments."""
    match plain_arguments(node):
        case (value, ast.NumberLiteral(text) as count) if text.isdigit() and 1 <= int(text) <= 10_000:
            return value, count
    what = "NTH_VALUE takes a value and the number of a row, 1 to 10000, as a constant"
    raise compile_error("CQ0302", what, node.span, help="NTH_VALUE(x, 2)")


def _and(*conditions: ast.Expr | None) -> ast.Expr:
    there: Sequence[ast.Expr] = [c for c in conditions if c is not None]
    return there[0] if len(there) == 1 else ast.Logical("AND", tuple(there), span=there[0].span)


def _from_the_first(spec: ast.WindowSpec) -> bool:
    """Whether the frame starts at the first row of the partition and leaves out none after it."""
    return spec.frame is None or (spec.frame.start.kind == "UNBOUNDED PRECEDING" and not leaves_out(spec.frame))


def _is_running(spec: ast.WindowSpec) -> bool:
    frame = spec.frame
    return frame is not None and frame.unit == "ROWS" and frame.end.kind == "CURRENT ROW"


def _running(spec: ast.WindowSpec, at: Span) -> ast.WindowSpec:
    first, last = ast.FrameBound("UNBOUNDED PRECEDING", span=at), ast.FrameBound("CURRENT ROW", span=at)
    return replace(spec, frame=ast.Frame("ROWS", first, last, span=at))
