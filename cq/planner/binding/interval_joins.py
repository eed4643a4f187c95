"""Joins of two streams: `a [LEFT] JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cq.errors import compile_error
from cq.grammar import ast
from cq.lang.expressions import Call, Column, Expr, Literal, columns_of, conjunction, conjuncts, remap
from cq.lang.schema import TimeAttribute
from cq.lang.types import Kind
from cq.planner.binding.joins import condition, equated, joined_relation, refuse_pending, side_by_side
from cq.planner.binding.literals import ParameterValue
from cq.planner.binding.scope import Relation
from cq.planner.operators import IntervalJoin

UNBOUNDED_US = 1 << 62  # beyond every difference of two times
NEAREST_FORM = "ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND"
_FLIPPED = {">=": "<=", "<=": ">=", ">": "<", "<": ">", "=": "="}


@dataclass(frozen=True, slots=True)
class _Instant:
    """The event time of one side, moved by a constant."""

    right: bool
    time: TimeAttribute
    offset_us: int


def interval_join(
    node: ast.Join, left: Relation, right: Relation, parameters: Mapping[str, ParameterValue]
) -> Relation:
    """The join by keys and by an interval of times. CQ0408 where a bound on the times is missing."""
    refuse_pending(left)
    refuse_pending(right)
    width = len(left.node.schema)
    both = side_by_side(left, right, width)
    parts = conjuncts(condition(node, both, left, right, parameters, NEAREST_FORM))
    left_keys, right_keys, rest = [], [], []
    lower, upper, times = -UNBOUNDED_US, UNBOUNDED_US, None
    for part in parts:
        bounds = _bounds(part, left, right, width)
        pair = None if bounds is not None else equated(part, width)
        if bounds is not None and times in {None, bounds[0]}:
            times = bounds[0]
            lower, upper = max(lower, bounds[1]), min(upper, bounds[2])
        elif pair is not None and columns_of(pair[0]):
            left_keys.append(pair[0])
            right_keys.append(remap(pair[1], {c: c - width for c in columns_of(pair[1])}))
        else:
            rest.append(part)
    if times is None or lower == -UNBOUNDED_US or upper == UNBOUNDED_US:
        missing = (
            "both bounds on" if times is None else "an upper bound on" if lower > -UNBOUNDED_US else "a lower bound on"
        )
        raise compile_error(
            "CQ0408",
            f"a join of two streams needs {missing} the distance of their event times",
            node.span,
            help=(
                f"write {NEAREST_FORM}",
                "or look up the latest result of a windowed view v: JOIN v FOR SYSTEM_TIME AS OF s.ts ON v.k = s.k",
            ),
        )
    if lower > upper:
        raise compile_error(
            "CQ0408", "no two rows can be this far apart: the bounds of the times exclude each other", node.span,
            help=f"write {NEAREST_FORM}",
        )  # fmt: skip
    made = IntervalJoin(
        left.node, right.node, times[0], tuple(left_keys), tuple(right_keys),
        conjunction(rest) if rest else None, node.kind == "LEFT",
        right_time=times[1], lower_us=lower, upper_us=upper, span=node.span,
    )  # fmt: skip
    return joined_relation(made, node, left, right, both)


def _bounds(
    part: Expr, left: Relation, right: Relation, width: int
) -> tuple[tuple[TimeAttribute, TimeAttribute], int, int] | None:
    """(left and right time, least, greatest right time - left time) that a comparison of two event times allows."""
    match part:
        case Call(function=f, args=(a, b)) if f.name in _FLIPPED:
            x, y = _instant(a, left, right, width), _instant(b, left, right, width)
            if x is None or y is None or x.right == y.right:
                return None
            sign, mine, other = (f.name, x, y) if x.right else (_FLIPPED[f.name], y, x)
        case _:
            return None
    # right + mine.offset SIGN left + other.offset, over columns; event times are columns moved by their shift
    distance = other.offset_us - mine.offset_us + mine.time.shift_us - other.time.shift_us
    least = distance + (sign == ">") if sign in {">", ">=", "="} else -UNBOUNDED_US
    greatest = distance - (sign == "<") if sign in {"<", "<=", "="} else UNBOUNDED_US
    return (other.time, mine.time), least, greatest


def _instant(e: Expr, left: Relation, right: Relation, width: int) -> _Instant | None:
    match e:
        case Column(index=index):
            schema, place = (right.node.schema, index - width) if index >= width else (left.node.schema, index)
            time = schema.time_of(place)
            return _Instant(index >= width, time, 0) if time is not None else None
        case Call(function=f, args=(a, b)) if f.name in {"+", "-"}:
            for moved, by in ((a, b), (b, a)) if f.name == "+" else ((a, b),):
                found = _instant(moved, left, right, width)
                if (
                    found is not None
                    and isinstance(by, Literal)
                    and by.type.kind is Kind.INTERVAL
                    and by.value is not None
                ):
                    offset = found.offset_us + (by.value if f.name == "+" else -by.value)
                    return _Instant(found.right, found.time, offset)
    return None
