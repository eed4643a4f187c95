"""Sub-queries of a statement whose key or condition is over columns of the row that the statement names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cq.lang.expressions import Expr, columns_of
from cq.planner.plan.transactions import Each, Read, Set, Step, every, own_expressions


def in_order(
    steps: Sequence[Step], row: range, key: Callable[[int], Sequence[Expr]], columns: Callable[[int], range]
) -> tuple[list[Step], list[Step], set[int]]:
    """The reads of a statement in two parts: those that need no column of its row, and those that do, directly or
    through such a read; and the columns of the frame known only after the latter, including the row's own.

    key: of the access with this number.  columns: those of the access or local with this number, in the frame.
    """
    late = {*row}
    before: list[Step] = []
    behind: list[Step] = []
    for step in steps:
        inside = tuple(every((step,)))
        if late & columns_of(*(e for s in inside for e in _expressions(s, key))):
            behind.append(step)
            late.update(c for s in inside for n in _given(s) for c in columns(n))
        else:
            before.append(step)
    return before, behind, late


def _expressions(step: Step, key: Callable[[int], Sequence[Expr]]) -> Iterator[Expr]:
    yield from own_expressions(step)
    if isinstance(step, Read):
        yield from key(step.access)


def _given(step: Step) -> Iterator[int]:
    """The accesses and locals that a step sets."""
    match step:
        case Read(access=number) | Set(local=number):
            yield number
        case Each():
            yield from step.locals
        case _:
            pass
