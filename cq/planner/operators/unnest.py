"""Unnest: one row for each element of an array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cq.lang.expressions import Call, Expr, Literal, columns_of, format_expr, remap
from cq.lang.schema import Field, Schema
from cq.lang.types import BIGINT, Kind
from cq.planner.operators.one_input import AddsColumns
from cq.planner.operators.pruning import unless_same
from cq.planner.plan.calls import Change
from cq.planner.plan.node import Inputs, LogicalNode, Pruned, Stateless, Text, label
from cq.planner.plan.registration import operator
from cq.records import dataclass, replace


@operator("unnest")
@dataclass(frozen=True, slots=True)
class Unnest(AddsColumns, Stateless):
    """The input row once for each element of `array`, in order, with the element (and its number from 1) added.

    An empty or NULL array gives no row; if `outer`, one with NULLs.
    """

    array: Expr
    name: str = label()
    ordinality_name: str | None = label(default=None)
    outer: bool = False

    fan_out = None
    may_drop = True
    uses_time = False
    late_alone = False
    fails_itself = False
    cost_ns = 0
    vouched = ()

    def __post_init__(self) -> None:
        assert self.array.type.kind is Kind.ARRAY and self.array.type.element is not None
        added = [Field(self.name, self.array.type.element, self.outer or not _holds_no_null(self.array))]
        if self.ordinality_name is not None:
            added.append(Field(self.ordinality_name, BIGINT, self.outer))
        self._set_schema(Schema((*self.input.schema.fields, *added), self.input.schema.times))

    @property
    def groups(self) -> LogicalNode | None:
        return self.input.groups

    def expressions(self) -> Iterator[tuple[Expr, Inputs]]:
        yield self.array, (0,)

    def map_expressions(self, change: Change) -> LogicalNode:
        return replace(self, array=change(self.array))

    def columns_read(self, needed: set[int]) -> tuple[set[int], ...]:
        return (self.passed(needed) | columns_of(self.array),)

    def pruned(self, inputs: Sequence[Pruned], needed: set[int], read: Sequence[set[int]]) -> Pruned:
        (below,) = inputs
        new = replace(self, input=below.node, array=remap(self.array, below.indices))
        return Pruned(unless_same(self, new), self.indices_over(below))

    def check(self) -> None:
        """Nothing to add: it was checked when it was built."""

    def parameters(self, text: Text) -> tuple[object, ...]:
        return (text((0,), self.array), *(("outer",) if self.outer else ()))

    def meaning(self, column: int, text: Text) -> str:
        return "element" if column == self.width else "ordinality"

    def describe(self) -> str:
        return f"{format_expr(self.array, self.input.schema.names)} AS {self.name}{', or NULL' * self.outer}"


def _holds_no_null(array: Expr) -> bool:
    """Whether no element can be NULL."""
    if isinstance(array, Literal):
        return None not in (array.value or ())
    return isinstance(array, Call) and (array.function.no_null_inside or _lists_no_null(array))


def _lists_no_null(array: Call) -> bool:
    return array.function.lists and not any(e.nullable for e in array.args)
