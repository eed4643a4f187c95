"""Aggregate calls inside operators: an aggregate with its arguments, DISTINCT and FILTER."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cq.errors import NOWHERE, Span
from cq.lang.aggregates import AggregateFunction
from cq.lang.expressions import Expr, can_fail, format_expr
from cq.lang.functions import Signature
from cq.lang.types import DataType
from cq.records import dataclass, field, replace

Change = Callable[[Expr], Expr]
"""An expression to another of the same type."""


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate over a group: its rows where `filter` is TRUE, each distinct argument once if `distinct`.

    options: the constants after the arguments of the aggregate.  said: for people, the call in the query that it
    computes, if that is another.
    """

    function: AggregateFunction
    args: tuple[Expr, ...]
    type: DataType
    nullable: bool
    distinct: bool = False
    filter: Expr | None = None
    options: tuple[Any, ...] = ()
    said: str = field(default="", compare=False)
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """Its arguments, then its FILTER if it has one."""
        return self.args if self.filter is None else (*self.args, self.filter)

    def map(self, change: Change) -> AggregateCall:
        """The call with `change` applied to its expressions."""
        condition = change(self.filter) if self.filter is not None else None
        return replace(self, args=tuple(change(a) for a in self.args), filter=condition)

    @property
    def fails_itself(self) -> bool:
        """Whether its own result may not fit its type."""
        return self.function.can_fail(self.signature)

    @property
    def can_fail(self) -> bool:
        """Whether it may end in a data error: in its expressions, or when its result does not fit."""
        return self.fails_itself or any(can_fail(e) for e in self.expressions)

    @property
    def signature(self) -> Signature:
        """The types of its arguments and of its result."""
        return Signature(tuple(a.type for a in self.args), self.type)

    @property
    def keeps_values(self) -> bool:
        """Whether a group keeps all values of its rows, rather than a few numbers."""
        return self.function.keeps_values

    @property
    def merges_exactly(self) -> bool:
        """Whether results over parts of a group can be merged into the result over the group, bit for bit."""
        return self.function.exact_merge(self.signature)

    def parameters(self, text: Callable[[Expr], str]) -> str:
        """What it computes, without names and positions of columns."""
        shown = ",".join((*(text(e) for e in self.args), *map(repr, self.options)))
        tail = f" filter {text(self.filter)}" if self.filter is not None else ""
        known = self.function.registry_key.removeprefix("agg:")
        return f"{known}({'distinct ' * self.distinct}{shown}){tail}"

    def __str__(self) -> str:
        if self.said:
            return f"{self.said}()"
        inside = ", ".join((*(format_expr(a) for a in self.args), *map(str, self.options))) or "*"
        tail = f" FILTER (WHERE {format_expr(self.filter)})" if self.filter else ""
        return f"{self.function.name}({'DISTINCT ' if self.distinct else ''}{inside}){tail}"
