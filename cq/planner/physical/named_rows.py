"""Named rows: which rows of tables a transaction names, in the order in which codegen writes their look-ups.

An access of a program names one row by a key over the event, or a row for each element of an array of the event.
"""

from __future__ import annotations

from collections.abc import Sequence

from cq.lang.expressions import Expr, can_fail, columns_of
from cq.planner.operators import Trigger
from cq.planner.plan.transactions import Each, Program, Read, every
from cq.records import dataclass


@dataclass(frozen=True, slots=True)
class ListedRows:
    """The rows that the elements of arrays name: `accesses` for each, in reading order."""

    each: Each
    accesses: tuple[int, ...]


def accesses_of(program: Program) -> tuple[int, ...]:
    """The accesses of a program, in the order in which it first reads them."""
    return tuple(dict.fromkeys(s.access for s in every(program.steps) if isinstance(s, Read)))


def lists_of(node: Trigger, program: Program) -> tuple[ListedRows, ...]:
    """What the program reads for each element of arrays, in order."""
    found = []
    for step in every(program.steps):
        if isinstance(step, Each):
            reads = dict.fromkeys(s.access for s in every(step.steps) if isinstance(s, Read))
            found.append(ListedRows(step, tuple(n for n in reads if not known_from_event(node, *node.access(n).key))))
    return tuple(found)


def homes_of(nodes: Sequence[Trigger]) -> dict[tuple[int, int], int]:
    """By operator and program, both numbered: the access whose row the transaction is assigned to.

    It is the one whose key names the most rows in all programs, so that transactions of an event stay together if they
    can: then what one of them waits for was done by the same worker just before. A program has none if arrays name all
    its rows.
    """
    named: dict[tuple[int, int], list[tuple[int, tuple[Expr, ...]]]] = {}
    for at, node in enumerate(nodes):
        for number, program in enumerate(node.programs):
            keys = ((n, node.access(n).key) for n in accesses_of(program))
            named[at, number] = [(n, key) for n, key in keys if known_from_event(node, *key)]
    often = [key for found in named.values() for _, key in found]
    return {place: max(found, key=lambda f: often.count(f[1]))[0] for place, found in named.items() if found}


def decided(node: Trigger, condition: Expr) -> bool:
    """Whether the event alone decides which side of a condition is taken."""
    return known_from_event(node, condition) and not can_fail(condition)


def known_from_event(node: Trigger, *exprs: Expr) -> bool:
    """Whether expressions are over the columns of the event alone."""
    return all(c < node.width for c in columns_of(*exprs))
