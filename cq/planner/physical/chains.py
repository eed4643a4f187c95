"""Chains: whether the transactions of a plan can be evaluated by several workers, each in the order of its rows.

They can if all rows that a transaction names are known from its event, and if its outcome needs nothing but these rows
and the event. Then a transaction depends on those before it that name one of its rows, and on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cq.lang.expressions import Expr, can_fail, columns_of
from cq.lang.schema import Schema
from cq.lang.types import Physical
from cq.planner.operators import Trigger
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.transactions import Each, Program, Read, every

Alone = Callable[[Schema, Expr], bool]
"""Whether a kernel can compute this expression over these columns without memory of its own."""


def accesses_of(program: Program) -> tuple[int, ...]:
    """The accesses of a program, in the order in which it reads them first."""
    return tuple(dict.fromkeys(s.access for s in every(program.steps) if isinstance(s, Read)))


def transactions_of(plan: LogicalPlan) -> tuple[Trigger, ...]:
    """The operators of a plan that run transactions."""
    return tuple(n for n in plan.nodes() if isinstance(n, Trigger))


def why_serial(node: Trigger, alone: Alone) -> str | None:
    """Why the transactions of an operator have to run one after the other, in words; None: they need not."""
    return next(_obstacles(node, alone), None)


def _obstacles(node: Trigger, alone: Alone) -> Iterator[str]:
    for table in node.tables:
        for f in table.fields:
            if f.type.physical is Physical.BYTES:
                yield f"{table.name}.{f.name} is a {f.type}, and such columns are kept by one worker"
    for program in node.programs:
        if program.strict:
            yield f"an event that {program.name} rejects ends the run"
        if any(isinstance(s, Each) for s in every(program.steps)):
            yield f"{program.name} takes rows that an array names"
        accesses = accesses_of(program)
        if not accesses:
            yield f"{program.name} names no row"
        for access in map(node.access, accesses):
            name = node.tables[access.table].name
            if any(c >= node.width for c in columns_of(*access.key)):
                yield f"which row of {name} {program.name} means is not known from the event alone"
            if any(can_fail(k) for k in access.key):
                yield f"the key of {name} in {program.name} may have no value"
    schema = Schema(node.frame)
    if not all(alone(schema, e) for e, _ in node.expressions()):
        yield "an expression needs memory for a text, a user's function or an array"
