"""VALUES: rows written in the query, computed at compile time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cq.errors import Span, compile_error, each
from cq.grammar import ast
from cq.lang.expressions import Expr, Literal
from cq.lang.functions import Failure
from cq.lang.schema import Field
from cq.lang.types import BIGINT, DATE, TIMESTAMP, Kind
from cq.planner.binding.calls import SelectCalls
from cq.planner.binding.conversion import settled
from cq.planner.binding.expressions import Clause, ExprBinder
from cq.planner.binding.parameters import ParameterValue
from cq.planner.binding.scope import NOTHING
from cq.planner.plan.fold import constant
from cq.planner.plan.node import LogicalNode

SERIES = frozenset(["generate_series", "range", "sequence"])
MOST_OF_A_SERIES = 100_000  # they are part of the plan
MakeRows = Callable[[tuple[Field, ...], tuple[tuple[object, ...], ...], Span], LogicalNode]


def bind_values(node: ast.Values, parameters: Mapping[str, ParameterValue], make: MakeRows) -> LogicalNode:
    """A source of the rows: columns col1, col2, … of the types that hold all their values."""
    width = len(node.rows[0].values)
    for number, row in enumerate(node.rows, 1):
        if len(row.values) != width:
            raise compile_error(
                "CQ0307",
                f"rows of VALUES differ in length: the first has {width}, but row {number} has {len(row.values)}",
                row.span,
                help="give every row the same number of values; write NULL for one that is missing",
            )
    clause = Clause("VALUES", advice="its values are constants: SELECT the aggregate FROM a stream")
    binder = ExprBinder(NOTHING, parameters, clause, SelectCalls({}))
    rows = each(lambda row: each(binder.bind, row.values), node.rows)
    written = zip(*(row.values for row in node.rows), strict=True)
    columns = each(
        lambda c: _column(binder, *c), zip(range(1, width + 1), zip(*rows, strict=True), written, strict=True)
    )
    fields = tuple(Field(f"col{n}", c[0].type, any(v.value is None for v in c)) for n, c in enumerate(columns, 1))
    return make(fields, tuple(zip(*([v.value for v in c] for c in columns), strict=True)), node.span)


def bind_series(node: ast.TableFunction, parameters: Mapping[str, ParameterValue], make: MakeRows) -> LogicalNode:
    """Whole numbers: GENERATE_SERIES(first, last[, step]), RANGE(first, end[, step]) without the end, RANGE(end)."""
    binder = ExprBinder(NOTHING, parameters, Clause(node.name.upper()), SelectCalls({}))
    given = [a for a in node.args if isinstance(a, ast.Expr)]
    values = [_value(settled(v)) for v in each(binder.bind, given)]
    if values and values[0].type.kind in (Kind.DATE, Kind.TIMESTAMP):
        return _times(node, values, binder, make)
    numbers = [v.value for v in values if v.type.is_integer and v.value is not None]
    if len(numbers) != len(node.args) or not 1 <= len(numbers) <= 3 or (len(numbers) == 3 and numbers[2] == 0):
        what = "takes whole numbers as constants: the first, the last and a step that is not 0"
        raise compile_error("CQ0302", f"{node.name.upper()} {what}", node.span, help="write GENERATE_SERIES(1, 10)")
    first, last, step = (0, *numbers, 1) if len(numbers) == 1 else (*numbers, 1)[:3]
    series = range(first, last + (node.name != "range") * (1 if step > 0 else -1), step)
    if len(series) > MOST_OF_A_SERIES:
        help = "read more from a file, or from a generator: cq gen"
        raise compile_error("CQ0103", f"this series has more than {MOST_OF_A_SERIES:,} numbers", node.span, help=help)
    return make((Field(node.name, BIGINT, False),), tuple((n,) for n in series), node.span)


def _times(node: ast.TableFunction, values: Sequence[Literal], binder: ExprBinder, make: MakeRows) -> LogicalNode:
    """GENERATE_SERIES(first, last, INTERVAL …) of times: TIMESTAMPs; SEQUENCE of DATEs gives DATEs."""
    alike = len(values) == 3 and len(node.args) == 3 and values[1].type.kind in (Kind.DATE, Kind.TIMESTAMP)
    if not alike or not values[2].type.is_interval or any(not v.value for v in values[2:]) or values[1].value is None:
        what = "takes two times and an INTERVAL that is not 0, as constants"
        way = "write GENERATE_SERIES(TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-02', INTERVAL '1' HOUR)"
        raise compile_error("CQ0302", f"{node.name.upper()} {what}", node.span, help=way)
    first, last = (binder.bind_cast(v, TIMESTAMP, v.span) for v in values[:2])
    step, found = values[2], list[tuple[object, ...]]()
    days = node.name == "sequence" and values[0].type == values[1].type == DATE
    end = _value(last).value
    while True:
        far = Literal(step.type, False, step.value * len(found), span=step.span)
        time = _value(binder.call("+", [first, far], node.span, [node.args[0], node.args[2]]))
        if time.value is None or (time.value - end) * (1 if step.value > 0 else -1) > 0:
            break
        if time.value == end and node.name == "range":
            break
        if len(found) >= MOST_OF_A_SERIES:
            help = "read more from a file, or from a generator: cq gen"
            raise compile_error("CQ0103", f"this series has more than {MOST_OF_A_SERIES:,} times", node.span, help=help)
        found.append((_value(binder.bind_cast(time, DATE, node.span)).value if days else time.value,))
    return make((Field(node.name, DATE if days else TIMESTAMP, False),), tuple(found), node.span)


def _column(binder: ExprBinder, number: int, values: tuple[Expr, ...], written: tuple[ast.Expr, ...]) -> list[Literal]:
    """The values of a column, computed, in their common type."""
    aligned = binder.aligned(values, f"the values of column {number}", written)
    return each(_value, [settled(v) for v in aligned])


def _value(expr: Expr) -> Literal:
    """The value of a constant expression. A data error in it is an error in the text, at its place."""
    try:
        return constant(expr)
    except Failure as failure:
        help = "change this value: it is computed when the query is compiled"
        raise compile_error("CQ0306", failure.message, failure.span, help=help) from None
