"""The results of transactions: the rows that they emit and the events that they reject, delivered in order."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from cq.codegen.flow import Flow
from cq.codegen.matching import assign_all
from cq.codegen.values import Row, Scope, Val, kept_parts, null_of, value_words
from cq.codegen.writer import expr
from cq.errors import NOWHERE
from cq.lang.expressions import Call, Column, Expr, Literal, conjuncts
from cq.lang.functions import Compares
from cq.lang.types import BIGINT, VARCHAR, DataType
from cq.planner.operators import Filter, Trigger
from cq.planner.plan.transactions import Emit, Step, every, turns_of_emits
from cq.records import dataclass, replace
from cq.runtime.layout.abi import ErrorCode
from cq.runtime.layout.pipeline import Rejections, Slot

WORDS_A_VALUE = 3  # a value in memory: whether it is NULL, then its parts, for a text address and length
NEXT, FIRST_VALUE = range(2)  # words of a record of an emitted row
REJECTED, ACCEPTED = 2, 1  # a program's outcome; 0 while it has none, or if its WHEN is not TRUE


@dataclass(frozen=True, slots=True)
class Emitted:
    """A row that a program may have emitted: whether it has, and its columns, from the program's first on."""

    there: ast.expr
    first: int
    values: tuple[Val, ...]


@dataclass(frozen=True, slots=True)
class Made:
    """A row that an event may have caused: whether it has, which it is, the reason, its columns from the first on.

    record: if there are several, a local that leads to the next one, 0 after the last; None for a single row.
    """

    there: ast.expr
    which: ast.expr
    reason: Val
    first: int
    values: tuple[Val, ...]
    record: str | None = None


@dataclass(frozen=True, slots=True)
class Records:
    """What a program that emits rows for elements of arrays emits: records that live for the step, each with the next.

    head, tail: locals, where the first and the last are; 0 while there is none.
    """

    scope: Scope
    head: str
    tail: str

    @staticmethod
    def none(scope: Scope) -> Records:
        """With locals of its own."""
        head, tail = (scope.writer.let(ast.Constant(0), hint) for hint in ("records", "record"))
        return Records(scope, head, tail)

    def add(self, values: Sequence[Val]) -> None:
        """Append a record with these values."""
        scope, writer = self.scope, self.scope.writer
        size = 8 * (FIRST_VALUE + len(values) * WORDS_A_VALUE)
        record = scope.let(expr("step_bytes(state, SIZE)", SIZE=size), "made")
        with scope.when(expr("R == 0", R=record)):
            scope.fail(ErrorCode.NO_MEMORY, "rows of an event", NOWHERE)
        writer.code("st_i64(R, W, 0)", R=record, W=NEXT)
        for word, value in zip(_words_of(values), values, strict=True):
            keep_value(scope, record, word, value)
        with scope.when(expr("T == 0", T=self.tail)):
            writer.set(self.head, record)
        with scope.otherwise():
            writer.code("st_i64(T, W, R)", T=self.tail, W=NEXT, R=record)
        writer.set(self.tail, record)


def _words_of(values: Sequence[object]) -> range:
    """Where values are in a record."""
    return range(FIRST_VALUE, FIRST_VALUE + len(values) * WORDS_A_VALUE, WORDS_A_VALUE)


def keep_value(scope: Scope, at: ast.expr, word: int, value: Val) -> None:
    """Store the value in memory from a word on."""
    null = ast.Constant(0) if value.null is None else expr("pick(N, 1, 0)", N=value.null)
    scope.writer.code("st_i64(A, W, N)", A=at, W=word, N=null)
    for n, part in enumerate(value_words(value)):
        scope.writer.code("st_i64(A, W, V)", A=at, W=word + 1 + n, V=part)


def kept_value(at: ast.expr, word: int, type_: DataType) -> Val:
    """The value that is in memory from a word on."""
    return Val(type_, tuple(kept_parts(at, word + 1, type_)), expr("ld_i64(A, W) != 0", A=at, W=word))


def rows_of_steps(scope: Scope, steps: Sequence[Step], first: int) -> tuple[list[int], list[Emitted]]:
    """The rows that the steps may emit, and the row of each step that emits one, in the order of `every`."""
    turns, most = turns_of_emits(steps)
    emits = [s.values for s in every(steps) if isinstance(s, Emit)]
    made = []
    for row in range(most):
        there = ast.Name(scope.writer.let(ast.Constant(False), "emitted"), ast.Load())
        columns = zip(*(e for e, turn in zip(emits, turns, strict=True) if turn == row), strict=True)
        values = tuple(scope.variables(c[0].type, any(v.nullable for v in c), "output") for c in columns)
        made.append(Emitted(there, first, values))
    return turns, made


def as_held(row: Emitted, values: Sequence[Val]) -> list[Val]:
    """The values as the row holds them, without a NULL test where the row's type is never NULL."""
    return [replace(v, null=None) if to.null is None else v for v, to in zip(values, row.values, strict=True)]


def relations_read(flow: Flow, node: Trigger) -> Collection[int]:
    """The kinds of rows of a trigger, by number, that are read."""
    readers = [reader for reader, _ in flow.stage.readers.get(id(node), ())]
    found = [_relation(r.predicate, node.width) if isinstance(r, Filter) else None for r in readers]
    if id(node) in flow.stage.outputs or None in found:
        return range(2 * len(node.programs))
    return {number for number in found if number is not None}


def _relation(predicate: Expr, which: int) -> int | None:
    """The only kind of rows, by the column that holds it, for which the condition can be TRUE; None if it is not
    evident that there is only one."""
    for condition in conjuncts(predicate):
        match condition:
            case Call(function=f, args=(Column(index=at), Literal(value=int(number)))):
                if at == which and f.compares is Compares.EQUAL:
                    return number
    return None


def count_rejection(flow: Flow, node: Trigger, number: int, outcome: str) -> None:
    """Count the event if the program with this number rejects it."""
    program = node.programs[number]
    if program.strict or not node.rejects:
        return
    name = f"rejected{number}"
    word = flow.stage.slot(node, name, lambda offset: Slot(name, offset, node=node.identity)).offset
    flow.stage.rejections[word] = Rejections(program.name, word)
    with flow.scope.when(expr("O == BAD", O=outcome, BAD=REJECTED)):
        flow.writer.code("st_i64(state, W, ld_i64(state, W) + 1)", W=word)


def made_of(outcome: str, number: int, emitted: Sequence[Emitted], reason: Val, read: Collection[int]) -> list[Made]:
    """What the program with this number may have made of the kinds that are read, in order. A rejection, with its
    reason, takes the place of the first row: a rejected event emits none.
    """
    own, refused = 2 * number, 2 * number + 1
    accepted = expr("O == DONE", O=outcome, DONE=ACCEPTED)
    rejected = expr("O == BAD", O=outcome, BAD=REJECTED)
    rows = [
        Made(expr("A and B", A=accepted, B=m.there), ast.Constant(own), null_of(VARCHAR), m.first, m.values)
        for m in emitted
        if own in read
    ]
    if refused not in read:
        return rows
    if not rows:
        return [Made(rejected, ast.Constant(refused), reason, 0, ())]
    first, *more = rows
    values = [Val(v.type, v.parts, expr("R or N", R=rejected, N=v.null or ast.Constant(False))) for v in first.values]
    there = expr("R or T", R=rejected, T=first.there)
    which = expr("pick(R, BAD, GOOD)", R=rejected, BAD=refused, GOOD=own)
    told = Val(VARCHAR, reason.parts, expr("not R or N", R=rejected, N=reason.null or ast.Constant(False)))
    return [Made(there, which, told, first.first, tuple(values)), *more]


def made_of_records(node: Trigger, number: int, outcome: str, head: ast.expr, reason: Val, scope: Scope) -> list[Made]:
    """What the program with this number may have made: its rejection, or the rows from the first record on."""
    first = sum(len(p.outputs) for p in node.programs[:number])
    types = [f.type for f in node.programs[number].outputs]
    accepted = expr("O == DONE", O=outcome, DONE=ACCEPTED)
    rejected = scope.let(expr("O == BAD", O=outcome, BAD=REJECTED), "rejected")
    record = scope.writer.let(expr("pick(A, H, 0)", A=accepted, H=head), "record")
    at = ast.Name(record, ast.Load())
    values = tuple(kept_value(at, word, t) for word, t in zip(_words_of(types), types, strict=True))
    told = Made(rejected, ast.Constant(2 * number + 1), reason, first, ())
    rows = Made(expr("R != 0", R=at), ast.Constant(2 * number), null_of(VARCHAR), first, values, record)
    return [told, rows]


def deliver_made(flow: Flow, node: Trigger, row: Row, made: Sequence[Made]) -> None:
    """Deliver the results, in order, from one place: downstream code is written once."""
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
    several = any(m.record is not None for m in made)
    turn = writer.let(ast.Constant(0), "made") if several else writer.fresh("made")
    loop = writer.while_(expr("T < N", T=turn, N=len(made))) if several else writer.for_(turn, 0, len(made))
    with loop, scope.block():
        there = writer.let(ast.Constant(False), "there")
        which = scope.variables(BIGINT, False, "which")
        reason = scope.variables(VARCHAR, True, "reason")
        outputs = [scope.variables(f.type, True, "output") for f in columns]
        onward = writer.let(ast.Constant(1), "onward") if several else ""
        for number, m in enumerate(made):
            with scope.when(expr("T == N and THERE", T=turn, N=number, THERE=m.there)):
                writer.set(there, True)
                scope.assign(which, Val(BIGINT, (m.which,)))
                scope.assign(reason, m.reason)
                assign_all(flow, outputs[m.first : m.first + len(m.values)], m.values)
                if m.record is not None:
                    writer.set(m.record, expr("ld_i64(R, W)", R=m.record, W=NEXT))
                    writer.set(onward, 0)
        if several:
            writer.code("T += O", T=turn, O=onward)
        with scope.when(expr("THERE", THERE=there)):
            flow.deliver(node, row.with_added(node.width, [which, reason, *outputs]))
