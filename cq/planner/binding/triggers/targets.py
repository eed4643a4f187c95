"""Rows that programs emit besides their own: inserts into streams and sinks, and changes of tables.

The rows of a program have one set of columns. After its own outputs comes the number of the relation that a row is for,
NULL in its own rows, and then the columns of each such relation, NULL in rows for others.

The rows of a program have one set of columns. Behind its own outputs are the number of the relation that a row is for,
NULL in its own rows, and the columns of each such relation, NULL in rows of others.
"""

from __future__ import annotations

from collections.abc import Sequence

from cq.lang.expressions import Expr, Literal
from cq.lang.schema import Field
from cq.lang.types import BIGINT
from cq.planner.binding.built_expressions import integer
from cq.planner.binding.triggers.body import BoundTrigger
from cq.planner.binding.triggers.outputs import RowTarget
from cq.planner.plan.transactions import Emit, Step, every, rebuilt
from cq.records import replace


def targets_of(trigger: BoundTrigger, known: Sequence[RowTarget]) -> tuple[RowTarget, ...]:
    """Those of these relations for which the trigger emits rows besides its own, in their order."""
    names = {s.into for s in every(trigger.program.steps) if isinstance(s, Emit)}
    return tuple(t for t in known if t.name in names)


def widened(trigger: BoundTrigger, targets: Sequence[RowTarget]) -> BoundTrigger:
    """The trigger with all of its rows in the columns of one program; unchanged if it emits only its own.

    targets: the relations for which it emits others.
    """
    if not targets:
        return trigger
    program = trigger.program
    names = [t.name for t in targets]

    def one(step: Step) -> Step:
        if not isinstance(step, Emit):
            return step
        number = names.index(step.into) if step.into else None
        values: list[Expr] = [*step.values] if number is None else _nulls(program.outputs)
        values.append(Literal(BIGINT, True, None) if number is None else integer(number))
        for n, target in enumerate(targets):
            values += step.values if n == number else _nulls(target.fields)
        return Emit(tuple(values), step.condition)

    more = (replace(f, nullable=True) for t in targets for f in t.fields)
    outputs = (*program.outputs, Field("target", BIGINT, True), *more)
    return replace(trigger, program=replace(program, steps=rebuilt(program.steps, one), outputs=outputs))


def _nulls(fields: Sequence[Field]) -> list[Expr]:
    return [Literal(f.type, True, None) for f in fields]
