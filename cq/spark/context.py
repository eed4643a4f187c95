"""What the operators need besides their node and their inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from string import ascii_lowercase
from typing import Any, TypeVar

from cq.entries import enter
from cq.lang.expressions import Expr
from cq.lang.schema import TimeAttribute
from cq.planner.plan.calls import AggregateCall
from cq.planner.plan.source import SourceDef
from cq.records import dataclass, field
from cq.spark.expressions import Expressions
from cq.spark.position import CteRows, Lowered, event_time, plus


def view_of(source: SourceDef, prefix: str) -> str:
    """The name of the view that holds the rows of a source."""
    return f"{prefix}source_{source.position}"


@dataclass(frozen=True, slots=True)
class Replayed:
    """The view of a trigger's rows: its columns and the positions. late, strict: as in `CteRows`."""

    view: str
    late: bool
    strict: bool


@dataclass(slots=True)
class Context:
    """One text being written. prefix: of view names.  replayed: the views of triggers, by id(node).

    name: the CTE of the operator being lowered.  waits: whether that operator may see a row before the watermark has
    reached the row's time.  steps: CTEs it needs below its own, by name.
    """

    prefix: str
    replayed: Mapping[int, Replayed]
    expressions: Expressions = field(default_factory=Expressions)
    name: str = ""
    waits: bool = True
    steps: dict[str, str] = field(default_factory=dict)

    def step(self, what: str, text: str) -> str:
        """The name of a new CTE below the operator's own."""
        name = f"{self.name}_{what}"
        self.steps[name] = text
        return name

    def text(self, expr: Expr, columns: Sequence[str]) -> str:
        """An expression over a row with these columns."""
        return self.expressions.text(expr, columns)

    def view(self, source: SourceDef) -> str:
        """The view that holds the rows of a source."""
        return view_of(source, self.prefix)


def timed(rows: CteRows, time: TimeAttribute, context: Context) -> str:
    """A step with the rows that are not late, and their event time in microseconds as `_u`."""
    return context.step("timed", f"select *, {event_time(time, rows.columns)} as _u\n  from {rows.name}{rows.on_time}")


def released(rows: CteRows, time: TimeAttribute, more: str, context: Context) -> str:
    """A SELECT of `more` (which may use `_u`) and, as its position, the point at which each row is emitted in
    event-time order.

    A row is emitted at once if the watermark has reached its time, else at the instant of its time, after the rows
    emitted there at once, by arrival. A time that lags is reached that much later. Without a delay, and with one
    source, no row waits for any other.
    """
    name, due = timed(rows, time, context), plus("_u", time.lag_us)
    if not context.waits:
        return f"select {more}, _w, _s, _o\n  from {name}"
    return (
        f"select {more},\n         greatest(_w, {due}) as _w, if({due} <= _w, _s, -1L) as _s,"
        f" if({due} <= _w, concat(array(0L), _o), concat(array(1L, _w, _s), _o)) as _o\n  from {name}"
    )


def argument(call: AggregateCall, columns: Sequence[str], context: Context) -> str:
    """The aggregate's input from a row: its argument, or several packed, `1` for COUNT(*); NULL (which it skips) unless
    FILTER is TRUE."""
    values = [context.text(a, columns) for a in call.args] or ["1"]
    condition = [context.text(call.filter, columns)] if call.filter is not None else []
    if not call.function.packs(call.signature):
        return when(condition, values[0])
    present = [] if call.function.keeps_null else [f"{v} is not null" for v in values]
    return when(condition + present, packed(values))


def packed(values: Sequence[str]) -> str:
    """Arguments as the struct that `Aggregate.spark_text` takes."""
    return f"struct({', '.join(f'{v} as {name}' for v, name in zip(values, ascii_lowercase, strict=False))})"


def when(conditions: Sequence[str], value: str) -> str:
    """The value where all the conditions are TRUE, else NULL."""
    return f"case when {' and '.join(conditions)} then {value} end" if conditions else value


def aggregate(call: AggregateCall, column: str, over: str = "", position: str = "") -> str:
    """The aggregate over the column that holds its argument. position: the text of a row's position."""
    text = f"DISTINCT {column}" if call.distinct else column
    return call.function.spark_text(call.signature, text, over, position, call.options)


Lower = Callable[[Any, tuple[CteRows, ...], Context], Lowered]
"""(node, the CTEs of its inputs, context) -> its SELECT; each takes its own class of node."""

OPERATORS: dict[str, Lower] = {}
L = TypeVar("L", bound=Lower)


def lowers(operator: str) -> Callable[[L], L]:
    """Register the function that lowers the nodes of this name."""

    def register(lower: L) -> L:
        enter(OPERATORS, operator, lower, "operator of Spark")
        return lower

    return register
