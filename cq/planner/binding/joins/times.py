"""Event times in the condition of a join of two streams: which comparisons bound how far apart two rows may be."""

from __future__ import annotations

from cq.errors import NOWHERE, Span
from cq.lang.expressions import Call, Column, Expr, Literal, columns_of
from cq.lang.schema import TimeAttribute
from cq.lang.types import Kind
from cq.planner.binding.scope import Relation
from cq.planner.operators.joined import FARTHEST_US
from cq.planner.plan.fold import folded
from cq.planner.plan.node import OpClass, topological
from cq.records import dataclass, replace

UNBOUNDED_US = 1 << 62  # beyond every difference of two times
FLIPPED = {">=": "<=", "<=": ">=", ">": "<", "<": ">", "=": "="}


@dataclass(frozen=True, slots=True)
class Sides:
    """The two relations of a join, whose columns are side by side in its condition."""

    left: Relation
    right: Relation
    at_end: bool = False  # rows of bounded sides are matched at the end, if they have no event time

    def time_of(self, column: int) -> TimeAttribute | None:
        """The event time that a column of the condition is."""
        relation, index = self.of(column)
        schema = relation.node.schema
        if schema.times or not schema.fields[index].type.is_timestamp or not self.at_end:
            return schema.time_of(index)
        at_once = all(n.op_class is OpClass.STATELESS for n in topological((relation.node,)))
        return TimeAttribute(index, lag_us=FARTHEST_US) if at_once else None

    @property
    def width(self) -> int:
        """How many columns the left side has."""
        return len(self.left.node.schema)

    def of(self, column: int) -> tuple[Relation, int]:
        """The side a column of the condition belongs to, and its index there."""
        return (self.right, column - self.width) if column >= self.width else (self.left, column)

    def meet_in(self, expr: Expr) -> bool:
        """Whether the expression reads columns of both sides."""
        columns = columns_of(expr)
        return bool(columns) and min(columns) < self.width <= max(columns)


@dataclass(frozen=True, slots=True)
class Instant:
    """The event time of one side, moved by a constant."""

    right: bool
    time: TimeAttribute
    offset_us: int


@dataclass(frozen=True, slots=True)
class TimeBounds:
    """The bounds that comparisons set on right time - left time: the two times, and the least and greatest distance.

    span: of the last of them.
    """

    times: tuple[TimeAttribute, TimeAttribute] | None = None
    lower_us: int = -UNBOUNDED_US
    upper_us: int = UNBOUNDED_US
    span: Span = NOWHERE

    @property
    def complete(self) -> bool:
        """Whether it has both a least and a greatest distance."""
        return self.lower_us > -UNBOUNDED_US and self.upper_us < UNBOUNDED_US

    def and_(self, other: TimeBounds) -> TimeBounds:
        """Both bounds combined, on the same times."""
        lower, upper = max(self.lower_us, other.lower_us), min(self.upper_us, other.upper_us)
        return TimeBounds(other.times, lower, upper, other.span)


def bounds_of(part: Expr, sides: Sides) -> TimeBounds | None:
    """The bounds that a comparison of two event times sets; None for any other condition."""
    match part:
        case Call(function=f, args=(a, b)) if f.name in FLIPPED:
            compared = _instants(a, b, sides) or _moved_over(a, b, sides)
            if compared is None:
                return _whole_units(f.name, a, b, sides, part.span)
            if compared[0].right == compared[1].right:
                return None
            x, y = compared
            sign, mine, other = (f.name, x, y) if x.right else (FLIPPED[f.name], y, x)
        case _:
            return None
    # right + mine.offset SIGN left + other.offset, over columns; event times are columns shifted by a constant
    distance = other.offset_us - mine.offset_us + mine.time.shift_us - other.time.shift_us
    least = distance + (sign == ">") if sign in {">", ">=", "="} else -UNBOUNDED_US
    greatest = distance - (sign == "<") if sign in {"<", "<=", "="} else UNBOUNDED_US
    return TimeBounds((other.time, mine.time), least, greatest, part.span)


def _whole_units(sign: str, a: Expr, b: Expr, sides: Sides, span: Span) -> TimeBounds | None:
    """The bounds of `TIMESTAMPDIFF(SECOND, x, y) <= 60` on two event times: whole units between them, towards zero."""
    for difference, constant in ((a, b), (b, a)):
        found = _difference(difference, sides)
        value = folded(constant)
        if found is None or not isinstance(value, Literal) or not value.type.is_integer or value.value is None:
            continue
        later, earlier, unit_us = found
        count: int = value.value
        if difference is b:
            sign = FLIPPED[sign]
        if not later.right:  # left - right: the other way round
            later, earlier, count, sign = earlier, later, -count, FLIPPED[sign]
        moved = later.time.shift_us - earlier.time.shift_us
        least = count + (sign == ">") if sign in {"=", ">", ">="} else None
        most = count - (sign == "<") if sign in {"=", "<", "<="} else None
        lower = (
            -UNBOUNDED_US if least is None else moved + (least * unit_us if least > 0 else (least - 1) * unit_us + 1)
        )
        upper = UNBOUNDED_US if most is None else moved + (most * unit_us if most < 0 else (most + 1) * unit_us - 1)
        return TimeBounds((earlier.time, later.time), lower, upper, span)
    return None


def _difference(e: Expr, sides: Sides) -> tuple[Instant, Instant, int] | None:
    """The event times of the two sides whose difference is divided by a number of microseconds."""
    match e:
        case Call(
            function=over,
            args=(
                Call(
                    function=minus,
                    args=(Call(function=f, args=(Column() as x,)), Call(function=g, args=(Column() as y,))),
                ),
                Literal(value=int(unit_us)),
            ),
        ) if (over.name, minus.name, f.name, g.name) == ("/", "-", "unix_micros", "unix_micros"):
            found = _instants(x, y, sides)
            return (*found, unit_us) if found is not None and found[0].right != found[1].right else None
    return None


def _instants(a: Expr, b: Expr, sides: Sides) -> tuple[Instant, Instant] | None:
    """Two event times; None if one of the expressions is not one."""
    x, y = instant_of(a, sides), instant_of(b, sides)
    return (x, y) if x is not None and y is not None else None


def _moved_over(a: Expr, b: Expr, sides: Sides) -> tuple[Instant, Instant] | None:
    """The two sides to compare if one side is the difference of two event times, and the other a constant.

    x - y < c is x < y + c, and c < x - y is y + c < x.
    """
    for difference, constant in ((a, b), (b, a)):
        match difference:
            case Call(function=f, args=(x, y)) if f.name == "-":
                found, by_us = _instants(x, y, sides), constant_us(constant)
                if found is not None and by_us is not None:
                    first, second = found
                    second = replace(second, offset_us=second.offset_us + by_us)
                    return (first, second) if difference is a else (second, first)
    return None


def instant_of(e: Expr, sides: Sides) -> Instant | None:
    """The event time an expression is, if it is one plus or minus a constant."""
    match e:
        case Column(index=index):
            time = sides.time_of(index)
            return Instant(index >= sides.width, time, 0) if time is not None else None
        case Call(function=f, args=args) if f.name in {"+", "-"}:
            for moved, by in moves(f.name, args):
                found, offset_us = instant_of(moved, sides), constant_us(by)
                if found is not None and offset_us is not None:
                    moved_us = found.offset_us + (offset_us if f.name == "+" else -offset_us)
                    return Instant(found.right, found.time, moved_us)
    return None


def moves(sign: str, args: tuple[Expr, ...]) -> tuple[tuple[Expr, Expr], ...]:
    """The ways to read a sum or a difference as (a time, the amount it is moved by)."""
    a, b = args
    return ((a, b), (b, a)) if sign == "+" else ((a, b),)


def constant_us(e: Expr) -> int | None:
    """The length of a constant interval; None for everything else."""
    value = folded(e)
    if isinstance(value, Literal) and value.type.kind is Kind.INTERVAL and value.value is not None:
        length: int = value.value
        return length
    return None
