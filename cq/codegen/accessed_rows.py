"""The rows that a transaction names, in locals; see cq/codegen/operators/trigger.py."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial

from cq.codegen.flow import Flow
from cq.codegen.matching import assign_all
from cq.codegen.values import Scope, Val
from cq.codegen.writer import expr
from cq.lang.expressions import Literal, columns_of
from cq.lang.types import BOOLEAN, Physical
from cq.planner.operators import Trigger
from cq.planner.plan.fold import folded
from cq.planner.plan.logical import at_leaf
from cq.planner.plan.transactions import (
    Access,
    Delete,
    Each,
    Insert,
    KeyedTable,
    Program,
    Read,
    Step,
    Update,
    every,
    frame_starts,
    inner,
)
from cq.records import dataclass, replace


@dataclass(slots=True)
class Accessed:
    """The locals of an access. live: whether they hold the row of its key, as the transaction has left it.

    entry: in the table, 0 if it has no such row.  dirty: whether the row differs from the table's.
    source: for a row named by an element of an array, 1 + the access outside that it was taken from; else 0.
    """

    number: int
    access: Access
    table: KeyedTable
    live: str
    found: str
    entry: str
    dirty: str
    source: str
    key: list[Val]
    others: list[Val]

    @staticmethod
    def declare(scope: Scope, number: int, access: Access, table: KeyedTable) -> Accessed:
        let = scope.writer.let
        flags = (let(ast.Constant(0), "live"), let(ast.Constant(False), "found"))
        entry, dirty, source = (let(ast.Constant(0), hint) for hint in ("entry", "dirty", "source"))
        key = [scope.variables(table.fields[c].type, False, "key") for c in table.key]
        others = [scope.variables(table.fields[c].type, True, "column") for c in table.others]
        return Accessed(number, access, table, *flags, entry, dirty, source, key, others)

    def columns(self, scope: Scope) -> list[Callable[[], Val]]:
        """`found` and the columns, as expressions find them in the frame."""

        def of_key(value: Val) -> Val:
            return Val(value.type, value.parts, scope.let(expr("not F", F=self.found), "missing"))

        key = dict(zip(self.table.key, self.key, strict=True))
        others = dict(zip(self.table.others, self.others, strict=True))
        found = Val(BOOLEAN, (ast.Name(self.found, ast.Load()),))
        columns = range(len(self.table.fields))
        return [
            lambda: found,
            *(partial(of_key, key[c]) if c in key else partial(others.__getitem__, c) for c in columns),
        ]


def take_over(flow: Flow, at: Accessed, other: Accessed, passing: frozenset[int]) -> None:
    """If the other access is live and has the same key, move its row here."""
    writer = flow.writer
    same: ast.expr = expr("L == 1", L=other.live)
    for a, b in zip(at.key, other.key, strict=True):
        same = expr("S and T", S=same, T=_equal(a, b))
    with flow.scope.when(same):
        for mine, theirs in ((at.found, other.found), (at.entry, other.entry), (at.dirty, other.dirty)):
            writer.set(mine, theirs)
        assign_all(flow, at.others, other.others)
        if at.number in passing:
            outside = other.number not in passing
            writer.set(at.source, ast.Constant(1 + other.number) if outside else expr("S", S=other.source))
        writer.set(other.live, 0)
        writer.set(other.dirty, 0)


def hand_over(flow: Flow, at: Accessed, other: Accessed) -> None:
    """Move the first access's row to the other one."""
    writer = flow.writer
    for mine, theirs in ((at.found, other.found), (at.entry, other.entry), (at.dirty, other.dirty)):
        writer.set(theirs, ast.Name(mine, ast.Load()))
    assign_all(flow, other.others, at.others)
    writer.set(other.live, 1)
    writer.set(at.live, 0)
    writer.set(at.dirty, 0)


def _equal(a: Val, b: Val) -> ast.expr:
    """Whether two values of one type that are not NULL are equal; no DOUBLEs."""
    if a.type.physical is Physical.BYTES:
        return expr(
            "N == M and mem_eq(A, B, N)", N=a.parts[1], M=b.parts[1], A=a.parts[0], B=b.parts[0]
        )  # fmt: skip
    same = [expr("X == Y", X=x, Y=y) for x, y in zip(a.parts, b.parts, strict=True)]
    return same[0] if len(same) == 1 else ast.BoolOp(ast.And(), list(same))


def for_leaf(flow: Flow, node: Trigger, program: Program) -> Program | None:
    """The program for rows of the current leaf; None if it takes none of them.

    Triggers on several streams are one operator, whose WHEN tests which stream the event is from: constant in a leaf.
    """
    found = at_leaf(node.input, (program.when,), flow.leaf) if program.when is not None else None
    if found is None:
        return program
    (when,) = map(folded, found[1])
    if not isinstance(when, Literal):
        return program
    return replace(program, when=None) if when.value is True else None


def passing(node: Trigger, steps: Sequence[Step]) -> frozenset[int]:
    """The accesses to a different row for each element of an array."""
    inside = (i for s in every(steps) if isinstance(s, Each) for i in every(s.steps))
    reads = (i.access for i in inside if isinstance(i, Read))
    return frozenset(n for n in reads if any(c >= node.width for c in columns_of(*node.access(n).key)))


def moving(node: Trigger, steps: Sequence[Step]) -> frozenset[int]:
    """The tables in which these steps insert or delete rows for elements of arrays, so that entries move meanwhile."""
    loops = [i for s in every(steps) if isinstance(s, Each) for i in every(s.steps)]
    moved = {i.access for i in loops if isinstance(i, Insert | Delete)}
    return frozenset(node.access(n).table for n in moved & passing(node, steps))


def undone(node: Trigger, program: Program) -> dict[int, bool]:
    """The loops over arrays, by their first local, after whose changes the program may reject an event; and whether it
    may even if their arrays are whole: of equal length, without NULL.

    A loop writes its rows to the tables before the event is accepted. So it needs no undo only if no step that may run
    after one of its changes can reject: neither one after the loop, on either side of a choice and where an INSERT
    finds its key, nor one inside, which runs again for the next element.
    """
    found: dict[int, bool] = {}
    _undone(node, program.steps, False, found)
    return found


def _undone(node: Trigger, steps: Sequence[Step], behind: bool, found: dict[int, bool]) -> bool:
    """Note the loops among these steps. Return whether the steps, or those after them, may reject an event."""
    for step in reversed(steps):
        if isinstance(step, Each):
            behind = _note_loop(node, step, behind, found)
        inside = [_undone(node, side, behind, found) for side in inner(step)]
        behind = behind or any(inside) or node.may_reject(step)
    return behind


def _note_loop(node: Trigger, each: Each, behind: bool, found: dict[int, bool]) -> bool:
    """Note the loop, if it changes rows. Return whether its steps, or those after them, may reject an event: the steps
    that follow a step include those of the next element."""
    inside = tuple(every(each.steps))
    whole, anyhow = (any(node.may_reject(s, known) for s in inside) for known in (_elements(node, each), ()))
    if (behind or anyhow) and any(isinstance(s, Update | Insert | Delete) for s in inside):
        found[each.local] = behind or whole
    return behind or anyhow


def _elements(node: Trigger, each: Each) -> range:
    """Where in the frame the elements of its arrays are."""
    first = frame_starts(node.width, node.tables, node.accesses)[each.local]
    return range(first, first + len(each.arrays))
