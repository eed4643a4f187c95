"""The rows that triggers insert, change and delete, as rows of a stream: a table's changelog.

If a query reads NAME_changes, the programs that write the table emit its rows besides their own: in the order of their
steps, two for an UPDATE, before and after it, and none for a rejected event.

Where a query reads NAME_changes, the programs that write the table emit its rows beside their own: in the order of
their steps, two for an UPDATE, before and after it, and none of a rejected event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cq.errors import NOWHERE
from cq.lang.expressions import Column, Expr, Literal
from cq.lang.schema import Field
from cq.lang.types import BOOLEAN, VARCHAR
from cq.planner.binding.built_expressions import negated
from cq.planner.binding.triggers.body import BoundTrigger
from cq.planner.binding.triggers.outputs import RowTarget
from cq.planner.plan.transactions import (
    Access,
    Choose,
    Delete,
    Each,
    Emit,
    Insert,
    KeyedTable,
    Read,
    Reject,
    Set,
    Step,
    Update,
    every,
    frame_starts,
)
from cq.records import dataclass, replace

INSERTED, BEFORE, AFTER, DELETED = "+I", "-U", "+U", "-D"
TIME, OP = "event_time", "op"


def changing(triggers: Sequence[BoundTrigger], name: str) -> tuple[BoundTrigger, ...]:
    """The triggers that write a table."""
    return tuple(t for t in triggers if not t.program.strict and any(_writes(t, name, t.program.steps)))


def changes_of(table: KeyedTable) -> RowTarget:
    """The columns of a changelog: the op, then those of the table."""
    op = Field(OP, VARCHAR, False)
    return RowTarget(f"{table.name}_changes", (op, *(replace(f, nullable=True) for f in table.fields)))


def with_changes(trigger: BoundTrigger, tables: Mapping[str, KeyedTable], read: Sequence[str]) -> BoundTrigger:
    """The trigger, emitting the changes of these tables too; unchanged if it makes none."""
    program = trigger.program
    if program.strict or not any(w for name in read for w in _writes(trigger, name, program.steps)):
        return trigger
    own = [tables[n] for n in trigger.tables]
    starts = frame_starts(len(trigger.stream.schema), own, trigger.accesses)
    noting = _Noting(trigger, {n: tables[n] for n in read}, starts)
    return replace(trigger, program=replace(program, steps=noting.steps(program.steps)))


def _writes(trigger: BoundTrigger, name: str, steps: Sequence[Step]) -> Iterator[bool]:
    """TRUE for each step that writes the table."""
    for step in every(steps):
        if isinstance(step, Update | Insert | Delete):
            access = trigger.accesses[step.access]
            if isinstance(access, Access) and trigger.tables[access.table] == name:
                yield True


@dataclass(frozen=True, slots=True)
class _Noting:
    """Adds the steps that emit changes. starts: of the accesses of the trigger in its frame."""

    trigger: BoundTrigger
    read: Mapping[str, KeyedTable]
    starts: Sequence[int]

    def steps(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        return tuple(made for step in steps for made in self.step(step))

    def step(self, step: Step) -> tuple[Step, ...]:
        match step:
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
            case Update() | Delete() | Read() | Set() | Reject() | Emit():
                return (step,)

    def table(self, number: int) -> KeyedTable | None:
        """The table of an access, if its changes are read."""
        access = self.trigger.accesses[number]
        assert isinstance(access, Access), f"{number} is a local"
        return self.read.get(self.trigger.tables[access.table])

    def found(self, access: int) -> Column:
        return Column(BOOLEAN, False, self.starts[access], "found")

    def row(self, access: int) -> tuple[Expr, ...]:
        """The row that the access found, as it is at that point."""
        table = self.table(access)
        assert table is not None, "a table whose changes nobody reads"
        start = self.starts[access] + 1
        return tuple(Column(f.type, True, start + n, f.name) for n, f in enumerate(table.fields))

    def where(self, access: int, condition: Expr | None, steps: tuple[Step, ...]) -> Step:
        """The steps to run if the row exists and meets the condition, which is evaluated only then."""
        inside = steps if condition is None else (Choose(condition, steps),)
        return Choose(self.found(access), inside)

    def emit(self, access: int, op: str, row: Sequence[Expr], condition: Expr | None = None) -> Step:
        table = self.table(access)
        assert table is not None, "a table whose changes nobody reads"
        return Emit((Literal(VARCHAR, False, op), *row), condition, changes_of(table).name)
