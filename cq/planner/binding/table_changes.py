"""The rows that triggers insert, change and delete, as rows of a stream: what a table's changelog is made of.

Where a query reads NAME_changes, the programs that write the table emit its rows beside their own: in the order of
their steps, two for an UPDATE, before and after it, and none of a rejected event. Behind a program's own outputs are
the number of the table among those that are read so, NULL in its own rows; the op; and the columns of each such table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cq.errors import NOWHERE
from cq.lang.expressions import Column, Expr, Literal
from cq.lang.schema import Field
from cq.lang.types import BIGINT, BOOLEAN, VARCHAR
from cq.planner.binding.made import integer, negated
from cq.planner.binding.triggers import BoundTrigger
from cq.planner.plan.transactions import (
    Access,
    Choose,
    Delete,
    Each,
    Emit,
    Insert,
    KeyedTable,
    Step,
    Update,
    every,
    places,
)
from cq.records import dataclass, replace

INSERTED, BEFORE, AFTER, DELETED = "+I", "-U", "+U", "-D"
TIME, OP = "event_time", "op"


def changing(triggers: Sequence[BoundTrigger], name: str) -> tuple[BoundTrigger, ...]:
    """The triggers that write a table."""
    return tuple(t for t in triggers if not t.program.strict and any(_writes(t, name, t.program.steps)))


def with_changes(trigger: BoundTrigger, tables: Mapping[str, KeyedTable], read: Sequence[str]) -> BoundTrigger:
    """The trigger, which emits changes of these tables, too; itself where it makes none."""
    program = trigger.program
    if program.strict or not any(w for name in read for w in _writes(trigger, name, program.steps)):
        return trigger
    own = [tables[n] for n in trigger.tables]
    starts = places(len(trigger.stream.schema), own, trigger.accesses)
    noting = _Noting(trigger, [tables[n] for n in read], starts)
    fields = [replace(f, nullable=True) for n in read for f in tables[n].fields]
    outputs = (*program.outputs, Field("table", BIGINT, True), Field(OP, VARCHAR, True), *fields)
    return replace(trigger, program=replace(program, steps=noting.steps(program.steps), outputs=outputs))


def _writes(trigger: BoundTrigger, name: str, steps: Sequence[Step]) -> Iterator[bool]:
    """TRUE for each step that writes the table."""
    for step in every(steps):
        if isinstance(step, Update | Insert | Delete):
            access = trigger.accesses[step.access]
            if isinstance(access, Access) and trigger.tables[access.table] == name:
                yield True


@dataclass(frozen=True, slots=True)
class _Noting:
    """Adds to steps what emits their changes. starts: where the accesses of the trigger begin in its frame."""

    trigger: BoundTrigger
    read: Sequence[KeyedTable]
    starts: Sequence[int]

    def steps(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        return tuple(made for step in steps for made in self.step(step))

    def step(self, step: Step) -> tuple[Step, ...]:
        match step:
            case Emit(values=values):
                nothing = (Literal(f.type, True, None) for t in self.read for f in t.fields)
                none = (Literal(BIGINT, True, None), Literal(VARCHAR, True, None))
                return (replace(step, values=(*values, *none, *nothing)),)
            case Choose(then=then, otherwise=otherwise):
                return (replace(step, then=self.steps(then), otherwise=self.steps(otherwise)),)
            case Each(steps=inside):
                return (replace(step, steps=self.steps(inside)),)
            case Update(access=access, condition=condition) if self.table(access) is not None:
                row = self.row(access)
                done = self.emit(access, BEFORE, row), replace(step, condition=None), self.emit(access, AFTER, row)
                return (self.where(access, condition, done),)
            case Delete(access=access, condition=condition) if self.table(access) is not None:
                gone = self.emit(access, DELETED, self.row(access)), replace(step, condition=None)
                return (self.where(access, condition, gone),)
            case Insert(access=access, values=values, conflict=conflict):
                said = replace(step, conflict=None if conflict is None else self.steps(conflict))
                if self.table(access) is None:
                    return (said,)
                return (self.emit(access, INSERTED, values, negated(self.found(access), NOWHERE)), said)
            case _:
                return (step,)

    def table(self, number: int) -> int | None:
        """Of an access, the number of its table among those whose changes are read."""
        access = self.trigger.accesses[number]
        assert isinstance(access, Access), f"{number} is a local"
        names = [t.name for t in self.read]
        name = self.trigger.tables[access.table]
        return names.index(name) if name in names else None

    def found(self, access: int) -> Column:
        return Column(BOOLEAN, False, self.starts[access], "found")

    def row(self, access: int) -> tuple[Expr, ...]:
        """The row that the access has found, as it is then."""
        number = self.table(access)
        assert number is not None, "a table whose changes nobody reads"
        start = self.starts[access] + 1
        return tuple(Column(f.type, True, start + n, f.name) for n, f in enumerate(self.read[number].fields))

    def where(self, access: int, condition: Expr | None, steps: tuple[Step, ...]) -> Step:
        """The steps if the row is there and meets the condition, which is not asked of a row that is not."""
        inside = steps if condition is None else (Choose(condition, steps),)
        return Choose(self.found(access), inside)

    def emit(self, access: int, op: str, row: Sequence[Expr], condition: Expr | None = None) -> Step:
        number = self.table(access)
        assert number is not None, "a table whose changes nobody reads"
        values: list[Expr] = [Literal(f.type, True, None) for f in self.trigger.program.outputs]
        values += [integer(number), Literal(VARCHAR, False, op)]
        for n, table in enumerate(self.read):
            values += row if n == number else [Literal(f.type, True, None) for f in table.fields]
        return Emit(tuple(values), condition)
