"""Shared by operators that look for a row's matches: NULL keys match nothing, a residual condition decides a pair."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from cq.codegen.expressions.emit import emit
from cq.codegen.flow import Flow, row_of
from cq.codegen.values import Row, Val, any_null, is_true
from cq.codegen.writer import expr
from cq.lang.expressions import Expr
from cq.planner.operators import JoinKind
from cq.planner.operators.joined import Joined
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass
from cq.runtime.layout import abi
from cq.runtime.layout.abi import ErrorCode

LEFT, RIGHT = 0, 1  # ports


@contextmanager
def where_not_null(flow: Flow, keys: Sequence[Val]) -> Iterator[list[Val]]:
    """Inside, none of the key values is NULL; yields them as values that cannot be NULL."""
    null = any_null(keys)
    if null is None:
        yield list(keys)
    else:
        with flow.scope.when(expr("not N", N=null)):
            yield [Val(k.type, k.parts) for k in keys]


@contextmanager
def where_passes(
    flow: Flow, residual: Expr | None, joined: Row, told: AbstractContextManager[None] | None = None
) -> Iterator[None]:
    """Inside, the pair passes the residual condition, if there is one. told: describes a failure in it."""
    if residual is None:
        yield
    else:
        with told or nullcontext():
            passes = is_true(emit(flow.scope, joined, residual))
        with flow.scope.when(passes):
            yield


def stops_when_asked(flow: Flow, node: Joined) -> None:
    """For loops over any number of rows: between two of them the run may be stopped."""
    with flow.scope.when(expr("at_load_acq(state + A) != 0", A=abi.STATE_STOPPING * 8)):
        flow.scope.fail(ErrorCode.STOPPED, "stopped", node.span)


def assign_all(flow: Flow, variables: Sequence[Val], values: Sequence[Val]) -> None:
    """Copy a row's values into variables."""
    for target, value in zip(variables, values, strict=True):
        flow.scope.assign(target, value)


@dataclass(frozen=True, slots=True)
class KeptMatch:
    """A kept row that may match. then: its event time.  has_match: writes code for when it does: the row notes that it
    has a match, or is taken off its list."""

    values: list[Val]
    then: ast.expr
    has_match: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Others:
    """The kept rows of the other side that a row may match, by arrival.

    side: its name.  more: whether there may be another row.  next: writes the step to it; inside, it is one.
    """

    side: str
    input: LogicalNode
    more: ast.expr
    next: Callable[[], AbstractContextManager[KeptMatch]]


def meet(flow: Flow, node: Joined, port: int, values: list[Val], others: Others) -> None:
    """Deliver the row of a port beside each of its matches."""
    with flow.writer.while_(others.more), flow.scope.block():
        stops_when_asked(flow, node)
        with others.next() as met:
            joined = row_of(flow.scope, [*values, *met.values] if port == LEFT else [*met.values, *values])
            with where_passes(flow, node.residual, joined, flow.beside(others.side, met.then)):
                met.has_match()
                flow.deliver(node, joined)


def meet_or_leave(flow: Flow, node: Joined, port: int, values: list[Val], others: Others, kept: str) -> str:
    """Deliver the row of a port beside each of its matches; without any, and if it is not kept, beside NULLs.

    One iteration for each match and one without, so that downstream code is written once. Returns a local: 1 if any.
    """
    scope, writer = flow.scope, flow.writer
    partner = [scope.variables(f.type, True) for f in others.input.schema.fields]
    matched = writer.let(ast.Constant(0), "matched")

    def beside(theirs: list[Val]) -> Row:
        return row_of(scope, [*values, *theirs] if port == LEFT else [*theirs, *values])

    found = writer.let(ast.Constant(1), "found")
    with writer.while_(expr("F == 1", F=found)), scope.block():
        writer.set(found, 0)
        with (
            writer.while_(expr("MORE and F == 0", MORE=others.more, F=found)),
            scope.block(),
            others.next() as met,
            where_passes(flow, node.residual, beside(met.values), flow.beside(others.side, met.then)),
        ):
            met.has_match()
            assign_all(flow, partner, met.values)
            writer.set(found, 1)
            writer.set(matched, 1)
        with scope.when(expr("F == 1 or (M == 0 and K == 0)", F=found, M=matched, K=kept)):
            flow.deliver(node, beside(partner))
    return matched


def leave_if_matched(flow: Flow, node: Joined, values: list[Val], others: Others, kept: str) -> str:
    """Deliver the left row of a SEMI join if it has a match, of an ANTI join if it has none and is not kept.

    The search ends at the first match. Returns a local: 1 if there is one.
    """
    scope, writer = flow.scope, flow.writer
    matched = writer.let(ast.Constant(0), "matched")
    with writer.while_(expr("MORE and M == 0", MORE=others.more, M=matched)), scope.block():
        stops_when_asked(flow, node)
        with others.next() as met:
            joined = row_of(scope, [*values, *met.values])
            with where_passes(flow, node.residual, joined, flow.beside(others.side, met.then)):
                writer.set(matched, 1)
    leaves = "M == 1" if node.kind is JoinKind.SEMI else "M == 0 and K == 0"
    with scope.when(expr(leaves, M=matched, K=kept)):
        flow.deliver(node, row_of(scope, values))
    return matched


def match_waiting(flow: Flow, node: Joined, values: list[Val], others: Others) -> None:
    """Find the kept left rows that match the right row: they wait no longer, and those of a SEMI join are delivered."""
    with flow.writer.while_(others.more), flow.scope.block():
        stops_when_asked(flow, node)
        with others.next() as met:
            joined = row_of(flow.scope, [*met.values, *values])
            with where_passes(flow, node.residual, joined, flow.beside(others.side, met.then)):
                met.has_match()
                if node.kind is JoinKind.SEMI:
                    flow.deliver(node, row_of(flow.scope, met.values))


Matches = Callable[[Row], AbstractContextManager[None]]
"""(a left row and the right row found for it) -> the code inside runs if they match."""


def deliver_match(
    flow: Flow, node: Joined, row: Row, found: ast.expr, load: Callable[[], list[Val]], matches: Matches
) -> None:
    """Deliver the left row beside the one right row that may match it, beside NULLs, or not at all.

    load: writes the values of that right row.
    """
    width = len(node.left.schema)
    fields = enumerate(node.right.schema.fields if node.kind.left_unmatched else ())
    right = [flow.scope.variables(f.type, True, f"right{n}_") for n, f in fields]
    with flow.scope.when(found):
        values = load()
        joined = row.with_added(width, values)
        with matches(joined):
            if node.kind.left_unmatched:
                assign_all(flow, right, values)
            else:
                flow.deliver(node, joined)
    if node.kind.left_unmatched:
        flow.deliver(node, row.with_added(width, right))
