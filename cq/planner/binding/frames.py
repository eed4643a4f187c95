"""ROWS and RANGE: which rows a call with OVER is about."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from cq.errors import NOWHERE, Span, compile_error
from cq.grammar import ast
from cq.lang.expressions import Literal
from cq.lang.schema import TimeAttribute
from cq.lang.types import Kind
from cq.planner.binding.expressions import ExprBinder
from cq.planner.operators import Frame
from cq.planner.plan.calls import AggregateCall
from cq.planner.plan.fold import folded

RUNNING_FRAME = "ROWS UNBOUNDED PRECEDING"
TIME_FRAME = "RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW"
MOST_US = 2**62  # of an INTERVAL in a frame


@dataclass(frozen=True, slots=True)
class Bounds:
    """A frame as it is written: rows, or a range of what OVER orders by; None: no bound. Below 0 before the row.

    by_interval: a bound is an INTERVAL.
    """

    rows: bool
    start: int | None
    end: int | None
    by_interval: bool
    span: Span = field(default=NOWHERE, compare=False)

    def frame(self, time: TimeAttribute | None) -> Frame:
        """The rows around a row that is in the order of this time, or of something else. CQ0501 for what none are."""
        if self.end is None or (self.rows and self.end > 0):
            raise compile_error(
                "CQ0501",
                "a frame of rows that come later is not supported yet",
                self.span,
                label="ends behind the row",
                help=(
                    "end it at the CURRENT ROW",
                    "or join the rows with those that come later: b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' MINUTE",
                ),
            )
        if not self.rows and time is None:
            raise compile_error(
                "CQ0501",
                "RANGE is supported over the event time only",
                self.span,
                label="not in the order of the event time",
                help=(
                    "order by the event time, ascending, and by nothing else",
                    f"or count rows: {RUNNING_FRAME}, ROWS 5 PRECEDING",
                ),
            )
        return Frame(self.start, self.end, not self.rows)


def is_whole(spec: ast.WindowSpec) -> bool:
    """Whether the frame is all rows of the partition, of which no order matters."""
    if spec.order_by:
        return False
    frame, first, last = spec.frame, {"UNBOUNDED PRECEDING"}, {"UNBOUNDED FOLLOWING"}
    if frame is not None and frame.unit == "RANGE":  # without an order all rows are peers
        first, last = first | {"CURRENT ROW"}, last | {"CURRENT ROW"}
    return frame is None or (frame.start.kind in first and frame.end.kind in last)


def frame_of(node: ast.Call, spec: ast.WindowSpec, inside: ExprBinder) -> Bounds | None:
    """The frame of an aggregate; None where it is the rows up to this one. Without a frame it ends behind the peers."""
    frame = spec.frame
    if frame is None:
        return Bounds(False, None, 0, False, node.span)
    if frame.unit == "GROUPS":
        raise compile_error(
            "CQ0501",
            "GROUPS is not supported yet",
            frame.span,
            help="a range of the order's values: RANGE BETWEEN … AND CURRENT ROW; or count rows: ROWS 5 PRECEDING",
        )
    start, by_start = _bound(frame, frame.start, inside)
    end, by_end = _bound(frame, frame.end, inside)
    backwards = frame.start.kind == "UNBOUNDED FOLLOWING" or frame.end.kind == "UNBOUNDED PRECEDING"
    if backwards or (start is not None and end is not None and start > end):
        raise compile_error(
            "CQ0302", "the frame ends before it begins", frame.span, help="the bound that comes first stands first"
        )
    if frame.unit == "ROWS" and start is None and end == 0:
        return None
    return Bounds(frame.unit == "ROWS", start, end, by_start or by_end, frame.span)


def _bound(frame: ast.Frame, bound: ast.FrameBound, inside: ExprBinder) -> tuple[int | None, bool]:
    """A bound as a distance from the row, None where there is none, and whether it is an INTERVAL."""
    if bound.offset is None:
        return (0 if bound.kind == "CURRENT ROW" else None), False
    value = folded(inside.bind(bound.offset))
    wanted = "a whole number of rows" if frame.unit == "ROWS" else "an INTERVAL of days to seconds"
    is_constant = isinstance(value, Literal) and value.value is not None
    fits = is_constant and (value.type.is_integer if frame.unit == "ROWS" else value.type.kind is Kind.INTERVAL)
    if not (isinstance(value, Literal) and fits and 0 <= value.value <= MOST_US):
        raise compile_error(
            "CQ0302",
            f"{frame.unit} takes {wanted} before {bound.kind}, as a constant that is not below 0",
            bound.offset.span,
            help="ROWS BETWEEN 5 PRECEDING AND CURRENT ROW" if frame.unit == "ROWS" else TIME_FRAME,
        )
    distance = int(value.value)
    return (-distance if bound.kind == "PRECEDING" else distance), value.type.kind is Kind.INTERVAL


def within(call: AggregateCall, bounds: Bounds) -> AggregateCall:
    """An aggregate of the rows in a frame, which may be none. CQ0501 for one whose state is large."""
    if not call.function.slides:
        raise compile_error(
            "CQ0501",
            f"{call.function.name.upper()} of the rows of a frame is not supported yet",
            call.span,
            help=(f"it works up to the row: {RUNNING_FRAME}", "and in windows: GROUP BY window_start, window_end"),
        )
    empty = (bounds.end is not None and bounds.end < 0) or (bounds.start is not None and bounds.start > 0)
    return replace(call, nullable=True) if empty and not call.function.never_null else call
