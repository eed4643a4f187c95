"""The cost of transactions: how many rows their steps name, how many functions they call, and about how long that
takes.

`cq explain` shows it for each operator, and `transactions = 'auto'` uses it to choose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from cq.lang.expressions import Call, Cast, Column, Literal, conjuncts, walk
from cq.lang.functions import Compares
from cq.planner.plan.costs import LOOK_UP_NS
from cq.planner.plan.transactions import (
    Choose,
    Delete,
    Each,
    Emit,
    Insert,
    Program,
    Read,
    Reject,
    Set,
    Step,
    Update,
    own_expressions,
)
from cq.records import dataclass

CALL_NS = 1  # of a function in a body
# The assumed number of elements of an array. Both estimates grow with it: at 1 and at 100, Grep and Sum pays from 7 and
# 6 workers on, Online Bidding from 8. It only weighs a loop against the rest of its body.
ELEMENTS = 10


@dataclass(frozen=True, slots=True)
class Work:
    """Rows that are named and functions that are called for an event."""

    rows: int = 0
    calls: int = 0

    @property
    def ns(self) -> int:
        """About how long one worker takes."""
        return max(1, self.rows) * LOOK_UP_NS + self.calls * CALL_NS

    def plus(self, other: Work) -> Work:
        """The sum of both."""
        return Work(self.rows + other.rows, self.calls + other.calls)

    def either(self, other: Work) -> Work:
        """The larger of the two, in rows and in calls."""
        return Work(max(self.rows, other.rows), max(self.calls, other.calls))


def work_of(programs: Sequence[Program]) -> Work:
    """The work of an event in all programs; if they require different constants in a column, as those on several
    streams do, in the one that takes most."""
    total = Work()
    apart: dict[int, dict[object, Work]] = {}
    for program in programs:
        own = _weighed(program.steps, set(), 1)
        asked = _asked(program)
        if asked is None:
            total = total.plus(own)
        else:
            column, value = asked
            found = apart.setdefault(column, {})
            found[value] = found.get(value, Work()).plus(own)
    for values in apart.values():
        most = Work()
        for own in values.values():
            most = most.either(own)
        total = total.plus(most)
    return total


def _asked(program: Program) -> tuple[int, object] | None:
    """The column that must equal a constant for an event to fire the program, and that constant, by its first
    condition."""
    match conjuncts(program.when)[0] if program.when is not None else None:
        case Call(function=f, args=(Column(index=column), Literal(value=value))) if f.compares is Compares.EQUAL:
            return column, value
    return None


def _weighed(steps: Sequence[Step], read: set[int], times: int) -> Work:
    """The work of these steps, taken this often. read: accesses known before; updated in place."""
    total = Work()
    for step in steps:
        calls = sum(isinstance(x, Call | Cast) for e in own_expressions(step) for x in walk(e))
        more = Work()
        match step:
            case Read(access=number) if number not in read:
                read.add(number)
                more = Work(rows=times)
            case Choose(then=then, otherwise=otherwise):
                one, other = set(read), set(read)
                more = _weighed(then, one, times).either(_weighed(otherwise, other, times))
                read |= one & other
            case Each(steps=inside):
                more = _weighed(inside, set(read), times * ELEMENTS)
            case Insert(conflict=conflict) if conflict is not None:
                more = _weighed(conflict, read, times)
            case Read() | Insert() | Update() | Delete() | Set() | Reject() | Emit():
                pass
            case _:
                assert_never(step)
        total = total.plus(Work(calls=times * calls)).plus(more)
    return total
