"""The rows that a transaction names, in locals; see cq/codegen/operators/trigger.py."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial

from cq.codegen.flow import Flow
from cq.codegen.matching import assign_all
from cq.codegen.values import Scope, Val
from cq.codegen.writer import expr
from cq.lang.expressions import can_fail, columns_of
from cq.lang.types import BOOLEAN, Physical
from cq.planner.operators import Trigger
from cq.planner.plan.transactions import (
    Access,
    Each,
    Insert,
    KeyedTable,
    Program,
    Read,
    Reject,
    Step,
    Update,
    every,
    own_expressions,
)
from cq.records import dataclass


@dataclass(slots=True)
class Accessed:
    """The locals of an access. live: whether they are the row of its key, as the transaction has left it.

    entry: of the table, 0 where it has no such row.  dirty: whether the row is another than there.
    source: of a row that an element of an array names, 1 + the access outside that it was taken from; else 0.
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
    """If the other access is live and of the same key, what it holds is here now."""
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
    """What the first one holds is the other one's."""
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


def passing(node: Trigger, steps: Sequence[Step]) -> frozenset[int]:
    """The accesses that are of another row for each element of an array."""
    inside = (i for s in every(steps) if isinstance(s, Each) for i in every(s.steps))
    reads = (i.access for i in inside if isinstance(i, Read))
    return frozenset(n for n in reads if any(c >= node.width for c in columns_of(*node.access(n).key)))


def may_undo(node: Trigger, program: Program) -> bool:
    """Whether the program may reject an event after it has changed a row that an element of an array names."""
    steps = list(every(program.steps))
    if not any(isinstance(i, Update) for s in steps if isinstance(s, Each) for i in every(s.steps)):
        return False
    for s in steps:
        if isinstance(s, Reject | Insert) or any(can_fail(e) for e in own_expressions(s)):
            return True
        if isinstance(s, Read) and any(can_fail(e) for e in node.access(s.access).key):
            return True
        if isinstance(s, Update):
            table = node.tables[node.access(s.access).table]
            if table.conditions or any(
                v.nullable and not table.fields[c].nullable for c, v in zip(s.columns, s.values, strict=True)
            ):
                return True
    return False
