"""What transactions have made: the rows that they emit and the events that they reject, handed on in order."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from cq.codegen.flow import Flow
from cq.codegen.matching import assign_all
from cq.codegen.values import Row, Val, null_of
from cq.codegen.writer import expr
from cq.lang.types import BIGINT, VARCHAR
from cq.planner.operators import Trigger
from cq.records import dataclass

REJECTED, ACCEPTED = 2, 1  # what a program has come to; 0 while it has not, or where its WHEN is not TRUE


@dataclass(frozen=True, slots=True)
class Emitted:
    """A row that a program may have emitted: whether it has, and its columns, from the first of the program on."""

    there: ast.expr
    first: int
    values: tuple[Val, ...]


@dataclass(frozen=True, slots=True)
class Made:
    """A row that an event may have caused: whether it has, which it is, the reason, its columns from the first on."""

    there: ast.expr
    which: ast.expr
    reason: Val
    first: int
    values: tuple[Val, ...]


def made_of(outcome: str, number: int, emitted: Sequence[Emitted], reason: Val) -> list[Made]:
    """What the program of this number may have made, in order. A rejection, with its reason, comes in the place of the
    first row: of an event that is rejected none is emitted.
    """
    accepted = expr("O == DONE", O=outcome, DONE=ACCEPTED)
    rejected = expr("O == BAD", O=outcome, BAD=REJECTED)
    made = []
    for turn, m in enumerate(emitted or [Emitted(ast.Constant(False), 0, ())]):
        if turn > 0:
            there = expr("A and B", A=accepted, B=m.there)
            made.append(Made(there, ast.Constant(2 * number), null_of(VARCHAR), m.first, m.values))
            continue
        values = [Val(v.type, v.parts, expr("R or N", R=rejected, N=v.null or ast.Constant(False))) for v in m.values]
        there = expr("R or A and B", R=rejected, A=accepted, B=m.there)
        which = expr("pick(R, BAD, GOOD)", R=rejected, BAD=2 * number + 1, GOOD=2 * number)
        told = Val(VARCHAR, reason.parts, expr("not R or N", R=rejected, N=reason.null or ast.Constant(False)))
        made.append(Made(there, which, told, m.first, tuple(values)))
    return made


def deliver_made(flow: Flow, node: Trigger, row: Row, made: Sequence[Made]) -> None:
    """Hand on what there is, in order, from one place: what reads it is written once."""
    scope, writer = flow.scope, flow.writer
    columns = [f for p in node.programs for f in p.outputs]
    if len(made) == 1:
        (only,) = made
        with scope.when(only.there):
            others = [null_of(f.type) for f in columns]
            others[only.first : only.first + len(only.values)] = only.values
            which = Val(BIGINT, (scope.let(only.which, "which"),))
            flow.deliver(node, row.with_added(node.width, [which, only.reason, *others]))
        return
    turn = writer.fresh("made")
    with writer.for_(turn, 0, len(made)), scope.block():
        there = writer.let(ast.Constant(False), "there")
        which = scope.variables(BIGINT, False, "which")
        reason = scope.variables(VARCHAR, True, "reason")
        outputs = [scope.variables(f.type, True, "output") for f in columns]
        for number, m in enumerate(made):
            with scope.when(expr("T == N and THERE", T=turn, N=number, THERE=m.there)):
                writer.set(there, True)
                scope.assign(which, Val(BIGINT, (m.which,)))
                scope.assign(reason, m.reason)
                assign_all(flow, outputs[m.first : m.first + len(m.values)], m.values)
        with scope.when(expr("THERE", THERE=there)):
            flow.deliver(node, row.with_added(node.width, [which, reason, *outputs]))
