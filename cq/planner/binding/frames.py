"""ROWS, RANGE and GROUPS: which rows a call with OVER covers."""

from __future__ import annotations

from typing import Literal as Choice

from cq.errors import NOWHERE, CompileError, Span, compile_error
from cq.grammar import ast
from cq.lang.expressions import Column, Expr, Literal
from cq.lang.schema import TimeAttribute
from cq.lang.types import BIGINT, DataType, Kind, Physical, common_type
from cq.planner.binding.conversion import convert
from cq.planner.binding.expressions import ExprBinder
from cq.planner.operators import Frame, OrderKey, Unit, Without
from cq.planner.plan.calls import AggregateCall
from cq.planner.plan.fold import folded
from cq.records import dataclass, field, replace

RUNNING_FRAME = "ROWS UNBOUNDED PRECEDING"
TIME_FRAME = "RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW"
MOST = 2**62  # rows, or microseconds, in a frame
DAY_US = 86_400_000_000
ONE = Literal(BIGINT, False, 1)
WITHOUT = {"CURRENT ROW": Without.ROW, "GROUP": Without.GROUP, "TIES": Without.TIES}
RANGED = {Kind.DECIMAL, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ}  # besides integers, the types a range can have


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound of a frame. offset: the distance from the row; None: the row itself, or `unbounded`.  before: on which
    side."""

    offset: Literal | None
    before: bool
    unbounded: bool
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def is_the_row(self) -> bool:
        return self.offset is None and not self.unbounded

    def distance(self, fits: DataType | None) -> int | None:
        """The distance from the row, negative before it, None without a bound. fits: the type of a range's key."""
        if self.unbounded:
            return None
        if self.offset is None:
            return 0
        if fits is not None and self.offset.type.kind is Kind.INTERVAL_MONTH:
            raise compile_error(
                "CQ0501",
                "a RANGE frame takes no months and years, which differ in length",
                self.span,
                help=(
                    "write days: INTERVAL '30' DAY PRECEDING",
                    "or join the rows: ON b.ts BETWEEN a.ts - INTERVAL '1' MONTH AND a.ts, and group by those of a",
                ),
            )
        value = _amount(self.offset, fits)
        if value is None or not 0 <= value <= MOST:
            what = "a whole number of rows, as a constant" if fits is None else f"a distance of {fits} values"
            raise compile_error(
                "CQ0302",
                f"this bound of the frame takes {what}, 0 or more",
                self.span,
                label=str(self.offset.type),
                help=TIME_FRAME
                if fits is not None and fits.is_timestamp
                else "INTERVAL '7' DAY PRECEDING"
                if fits is not None and fits.kind is Kind.DATE
                else "ROWS 5 PRECEDING",
            )
        return -value if self.before else value


@dataclass(frozen=True, slots=True)
class WrittenFrame:
    """A frame as written."""

    unit: Choice["ROWS", "RANGE", "GROUPS"]
    start: Bound
    end: Bound
    without: Without | None = None
    walks: bool = False  # as in Frames
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def rows(self) -> bool:
        """Whether the bounds count rows."""
        return self.unit == "ROWS"

    @property
    def without_peers(self) -> bool:
        """Whether peers of the row are left out."""
        return self.without in {Without.GROUP, Without.TIES}

    @property
    def of_peers(self) -> bool:
        """Whether only ties in the order matter: a range without distances, or GROUPS."""
        return self.unit == "GROUPS" or (not self.rows and self.start.offset is None and self.end.offset is None)

    @property
    def ends_by_the_row(self) -> bool:
        """Whether no later row can be in the frame."""
        if self.end.offset is None:
            return self.rows and not self.end.unbounded
        return self.end.before and (self.rows or self.end.offset.value != 0)

    def is_of_time(self, time: TimeAttribute | None) -> bool:
        """Whether it is a range over the event time by which the rows are ordered."""
        return self.unit == "RANGE" and time is not None

    def frame(self, unit: Unit, fits: DataType | None) -> Frame:
        """The frame. fits: the type of a range's key."""
        start, end = self.start.distance(fits), self.end.distance(fits)
        if start is not None and end is not None and start > end:
            raise _backwards(self.span)
        return Frame(start, end, unit, self.without)

    def key(self, order: tuple[OrderKey, ...]) -> OrderKey:
        """The key of a range with distances. CQ0302 for an order that has none."""
        fits = len(order) == 1 and is_ranged(order[0].expr)
        if not fits:
            raise compile_error(
                "CQ0302",
                "RANGE with a distance takes one key to order by: a whole number, a DECIMAL to 18 digits, a DATE or a "
                "TIMESTAMP",
                self.span,
                label=", ".join(str(k.expr.type) for k in order) or "no ORDER BY",
                help=(
                    "count rows: ROWS 5 PRECEDING",
                    "or count different values: GROUPS 5 PRECEDING",
                    *_as_decimal(order),
                ),
            )
        return order[0]


def _as_decimal(order: tuple[OrderKey, ...]) -> tuple[str, ...]:
    """One more suggestion for a number that cannot be the key of a range."""
    if len(order) != 1 or not (order[0].expr.type.is_float or order[0].expr.type.kind is Kind.DECIMAL):
        return ()
    name = order[0].expr.name if isinstance(order[0].expr, Column) else "x"
    return (f"or order by a DECIMAL of 18 digits: CAST({name} AS DECIMAL(18, 6))",)


def is_ranged(expr: Expr) -> bool:
    """Whether a range can have such a key: a number of one word."""
    one_word = expr.type.physical is Physical.I64
    return one_word and (expr.type.is_integer or expr.type.kind in RANGED)


def _amount(offset: Literal, fits: DataType | None) -> int | None:
    """A distance as a number of rows, or of the units of this type; None if it is not one."""
    if fits is None:
        return int(offset.value) if offset.type.is_integer else None
    if fits.is_timestamp or fits.kind is Kind.DATE:
        unit = DAY_US if fits.kind is Kind.DATE else 1
        whole = offset.type.kind is Kind.INTERVAL and offset.value % unit == 0
        return int(offset.value) // unit if whole else None
    exact = offset.type.is_integer or (offset.type.kind is Kind.DECIMAL and common_type(offset.type, fits) == fits)
    if not exact:
        return None
    value = folded(convert(offset, fits))
    return int(value.value) if isinstance(value, Literal) else None


def is_whole(spec: ast.WindowSpec) -> bool:
    """Whether the frame is all rows of the partition, so that their order does not matter."""
    if spec.order_by:
        return False
    frame, first, last = spec.frame, {"UNBOUNDED PRECEDING"}, {"UNBOUNDED FOLLOWING"}
    if leaves_out(frame):
        return False
    if frame is not None and frame.unit != "ROWS":  # without an order all rows are peers
        first, last = first | {"CURRENT ROW"}, last | {"CURRENT ROW"}
    return frame is None or (frame.start.kind in first and frame.end.kind in last)


def leaves_out(frame: ast.Frame | None) -> bool:
    """Whether a frame has an EXCLUDE that excludes rows."""
    return frame is not None and frame.exclude not in {None, "NO OTHERS"}


def frame_of(node: ast.Call, spec: ast.WindowSpec, inside: ExprBinder) -> WrittenFrame | None:
    """The frame of an aggregate; None if it is the rows up to this one. By default it ends after the peers."""
    frame = spec.frame
    if frame is None:
        return WrittenFrame("RANGE", Bound(None, True, True), Bound(None, False, False), span=node.span)
    start, end = _bound(frame.start, inside), _bound(frame.end, inside)
    if frame.start.kind == "UNBOUNDED FOLLOWING" or frame.end.kind == "UNBOUNDED PRECEDING":
        raise _backwards(frame.span)
    without = WITHOUT.get(frame.exclude or "")
    if frame.unit == "ROWS" and start.unbounded and frame.end.kind == "CURRENT ROW" and without is None:
        return None
    bounds = WrittenFrame(frame.unit, start, end, without, span=frame.span)
    if bounds.without_peers and not spec.order_by:
        raise compile_error(
            "CQ0302",
            f"EXCLUDE {frame.exclude} needs an ORDER BY in OVER: without one all rows are peers",
            frame.span,
            help=("write OVER (PARTITION BY … ORDER BY …)", "or leave out the row alone: EXCLUDE CURRENT ROW"),
        )
    return bounds if without is not Without.ROW else _beside_the_row(bounds)


def _beside_the_row(bounds: WrittenFrame) -> WrittenFrame:
    """A frame without its row: one that ends just before the row, or starts just after it, if the row is its end."""
    start, end = bounds.start, bounds.end
    if bounds.rows and end.is_the_row and start.before:
        return replace(bounds, end=Bound(ONE, True, False, end.span), without=None)
    if bounds.rows and start.is_the_row and not end.before:
        return replace(bounds, start=Bound(ONE, False, False, start.span), without=None)
    return bounds


def _bound(bound: ast.FrameBound, inside: ExprBinder) -> Bound:
    before, unbounded = "PRECEDING" in bound.kind, "UNBOUNDED" in bound.kind
    if bound.offset is None:
        return Bound(None, before, unbounded, bound.span)
    value = folded(inside.bind(bound.offset))
    if not isinstance(value, Literal) or value.value is None:
        raise compile_error("CQ0302", "a bound of a frame is a constant", bound.offset.span, help="ROWS 5 PRECEDING")
    return Bound(value, before, unbounded, bound.offset.span)


def _backwards(span: Span) -> CompileError:
    return compile_error("CQ0302", "the frame ends before it begins", span, help="write the earlier bound first")


def refuse_frame(node: ast.Call, spec: ast.WindowSpec) -> None:
    """CQ0501 for the frame of a function that refers to rows by number."""
    if spec.frame is not None:
        message = f"{node.name.upper()} takes no frame"
        raise compile_error("CQ0501", message, spec.frame.span, help="leave the frame out")


def within(call: AggregateCall, bounds: WrittenFrame) -> tuple[AggregateCall, WrittenFrame]:
    """An aggregate of the rows in a frame, which may be empty; and the frame, which knows whether it walks."""
    empty = (
        (bounds.end.offset is not None and bounds.end.before)
        or (bounds.start.offset is not None and not bounds.start.before)
        or bounds.without in {Without.ROW, Without.GROUP}
    )
    call = replace(call, nullable=True) if empty and not call.function.never_null else call
    return call, replace(bounds, walks=bounds.without is not None or walks(call))


def walks(call: AggregateCall) -> bool:
    """Whether it has no small states that can be merged."""
    return call.distinct or not call.function.slides
