"""Expressions and calls built from bound ones, for clauses that stand for them: they do not appear in any text."""

from __future__ import annotations

from cq.errors import NOWHERE, Span
from cq.grammar import ast
from cq.lang.aggregates import resolve
from cq.lang.expressions import Column, Expr, Literal
from cq.lang.functions import Refusal
from cq.lang.types import BIGINT
from cq.planner.binding.calls import SelectCalls
from cq.planner.binding.expressions import Clause, ExprBinder
from cq.planner.binding.scope import NOTHING
from cq.planner.plan.calls import AggregateCall
from cq.planner.plan.node import LogicalNode


def column(node: LogicalNode, index: int) -> Column:
    """A column of a node."""
    f = node.schema.fields[index]
    return Column(f.type, f.nullable, index, f.name)


def columns(node: LogicalNode) -> list[Expr]:
    """All columns of a node."""
    return [column(node, i) for i in range(len(node.schema))]


def integer(value: int) -> Literal:
    return Literal(BIGINT, False, value)


def compared(op: str, left: Expr, right: Expr, span: Span) -> Expr:
    """`left op right`, both of one type."""
    return _binder().compare(op, left, right, span)


def negated(condition: Expr, span: Span) -> Expr:
    """NOT condition."""
    return _binder().negated(condition, span)


def called(name: str, *args: Expr, span: Span) -> Expr:
    """The scalar function applied to these arguments."""
    return _binder().call(name, list(args), span, [ast.NullLiteral(span=span)] * len(args))


def differ(left: Expr, right: Expr, span: Span) -> Expr:
    """`left IS DISTINCT FROM right`, both of one type."""
    return negated(_binder().not_distinct(left, right, span), span)


def _binder() -> ExprBinder:
    return ExprBinder(NOTHING, {}, Clause("an expression that is made"), SelectCalls({}))


def aggregate_call(name: str, *args: Expr, condition: Expr | None = None, span: Span = NOWHERE) -> AggregateCall:
    """An aggregate of at least one row, or of those that `condition`, if given, selects."""
    found = resolve(name, [a.type for a in args])
    assert not isinstance(found, Refusal), f"no aggregate {name} of these arguments"
    entry, signature = found
    nullable = not entry.never_null and (condition is not None or any(a.nullable for a in args))
    return AggregateCall(entry, args, signature.returns, nullable, filter=condition, span=span)
