"""Laws that the steps of every transaction obey, and which step breaks one: checked whenever a plan is verified.

Kernels, the reference and chains are written from the steps, so a step that does not fit its table would otherwise show
up as a wrong row.

Kernels, the reference and chains are written from the steps, so a step that does not fit its table would otherwise be
found as a wrong row.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import assert_never

from cq.lang.expressions import Expr, columns_of
from cq.lang.schema import Field
from cq.lang.types import BIGINT, BOOLEAN, VARCHAR, DataType, Kind
from cq.planner.plan.transactions import (
    Access,
    Choose,
    Delete,
    Each,
    Emit,
    Insert,
    KeyedTable,
    Local,
    Program,
    Read,
    Reject,
    Set,
    Step,
    Update,
    frame_starts,
    own_expressions,
)
from cq.records import dataclass


@dataclass(frozen=True, slots=True)
class StepLaws:
    """The laws of programs over one frame. width: the columns of the event."""

    width: int
    tables: tuple[KeyedTable, ...]
    accesses: tuple[Access | Local, ...]

    def broken(self, programs: Sequence[Program]) -> Iterator[str]:
        """The laws that the accesses and programs break, in words."""
        for access in self.accesses:
            if isinstance(access, Access):
                yield from self._broken_by_key(access)
        for program in programs:
            if program.when is not None:
                yield from _condition(program.when, "WHEN")
                if not all(c < self.width for c in columns_of(program.when)):
                    yield f"WHEN of {program.name} sees more than the event"
            for found in self._broken_by(program.steps, set(), program.outputs):
                yield f"{program.name}: {found}"

    def _broken_by_key(self, access: Access) -> Iterator[str]:
        if not 0 <= access.table < len(self.tables):
            yield "an access to a missing table"
            return
        table = self.tables[access.table]
        yield from _typed(access.key, [table.fields[c] for c in table.key], f"a key of {table.name}")

    def _broken_by(self, steps: Sequence[Step], read: set[int], outputs: Sequence[Field]) -> Iterator[str]:
        """The laws that steps break. read: the accesses read on every path to them; updated in place."""
        for step in steps:
            yield from self._unread(step, read)
            yield from self._misfit(step, outputs)
            match step:
                case Read(access=number):
                    read.add(number)
                case Choose(then=then, otherwise=otherwise):
                    one, other = set(read), set(read)
                    yield from self._broken_by(then, one, outputs)
                    yield from self._broken_by(otherwise, other, outputs)
                    read |= one & other
                case Each(steps=inside):
                    yield from self._broken_by(inside, set(read), outputs)
                case Insert(conflict=conflict) if conflict is not None:
                    yield from self._broken_by(conflict, set(read), outputs)
                case Insert() | Update() | Delete() | Set() | Reject() | Emit():
                    pass
                case _:
                    assert_never(step)

    def _unread(self, step: Step, read: set[int]) -> Iterator[str]:
        """Rows that the step uses although they are not read on every path to it."""
        match step:
            case Read(access=number):
                used = self._behind(self._key(number))
            case Update(access=number) | Insert(access=number) | Delete(access=number):
                used = {number, *self._behind(own_expressions(step))}
            case _:
                used = self._behind(own_expressions(step))
        for number in sorted(used - read):
            if isinstance(self._at(number), Access):
                yield f"{_named(step)} uses {self._row(number)}, which is not read on every way"

    def _misfit(self, step: Step, outputs: Sequence[Field]) -> Iterator[str]:
        """Numbers and types of values that do not fit the step's table, locals or outputs, and missing ones."""
        match step:
            case Read(access=number) | Delete(access=number):
                yield from self._no_row(number, step)
            case Update(access=number, columns=columns, values=values):
                yield from self._no_row(number, step)
                fields = self._fields(number)
                if any(not 0 <= c < len(fields) for c in columns):
                    yield f"an update of {self._row(number)} sets a missing column"
                    return
                yield from _typed(values, [fields[c] for c in columns], f"an update of {self._row(number)}")
            case Insert(access=number, values=values):
                yield from self._no_row(number, step)
                yield from _typed(values, self._fields(number), f"an insert of {self._row(number)}")
            case Set(local=number, value=value):
                yield from self._local(number, value.type, "a set")
            case Each(arrays=arrays, numbered=numbered):
                types = [a.type.element if a.type.kind is Kind.ARRAY else None for a in arrays]
                for number, type_ in zip(step.locals, [*types, *([BIGINT] if numbered else [])], strict=True):
                    yield from self._local(number, type_, "a loop")
            case Choose(condition=condition):
                yield from _condition(condition, "a choice")
            case Reject(reason=reason) if reason.type != VARCHAR:
                yield f"a rejection gives {reason.type} as its reason"
            case Emit(values=values):
                yield from _typed(values, outputs, "an emit")
            case _:
                pass
        if isinstance(step, Update | Delete | Emit) and step.condition is not None:
            yield from _condition(step.condition, _named(step))

    def _no_row(self, number: int, step: Step) -> Iterator[str]:
        if not isinstance(self._at(number), Access):
            yield f"{_named(step)} of {number}, which is no access"

    def _local(self, number: int, type_: DataType | None, what: str) -> Iterator[str]:
        local = self._at(number)
        if not isinstance(local, Local):
            yield f"{what} of {number}, which is no local"
        elif local.type != type_:
            yield f"{what} gives {type_} to a local of {local.type}"

    def _at(self, number: int) -> Access | Local | None:
        return self.accesses[number] if 0 <= number < len(self.accesses) else None

    def _key(self, number: int) -> tuple[Expr, ...]:
        access = self._at(number)
        return access.key if isinstance(access, Access) else ()

    def _fields(self, number: int) -> tuple[Field, ...]:
        access = self._at(number)
        return self.tables[access.table].fields if isinstance(access, Access) else ()

    def _row(self, number: int) -> str:
        access = self._at(number)
        return f"row {number} of {self.tables[access.table].name}" if isinstance(access, Access) else f"row {number}"

    def _behind(self, exprs: Sequence[Expr]) -> set[int]:
        """The accesses and locals whose columns these expressions use."""
        starts = frame_starts(self.width, self.tables, self.accesses)
        return {bisect_right(starts, c) - 1 for c in columns_of(*exprs) if c >= self.width}


def _typed(values: Sequence[Expr], fields: Sequence[Field], what: str) -> Iterator[str]:
    """Check for as many values as columns, each with its column's type."""
    if len(values) != len(fields):
        yield f"{what} has {len(values)} values for {len(fields)} columns"
        return
    for value, f in zip(values, fields, strict=True):
        if value.type != f.type:
            yield f"{what} gives {value.type} to {f.name}, which is {f.type}"


def _condition(expr: Expr, what: str) -> Iterator[str]:
    if expr.type != BOOLEAN:
        yield f"the condition of {what} is {expr.type}"


def _named(step: Step) -> str:
    name = type(step).__name__.lower()
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
