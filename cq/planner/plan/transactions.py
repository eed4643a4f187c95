"""Transactions: what a trigger does to keyed tables for one event, as steps over typed expressions.

The expressions of a transaction are over its *frame*: the columns of the event, then for each access whether its row
exists and the columns of the row, NULL if it does not; each local is one column among them. `Read` brings a row into
the frame as earlier steps of the transaction left it. An event is either accepted, and everything that its steps wrote
is in the tables, or rejected with a reason, and nothing is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, assert_never

from cq.errors import NOWHERE, Span
from cq.lang.expressions import Column, Expr, Literal, columns_of, remap, transform
from cq.lang.schema import Field
from cq.lang.types import BOOLEAN, DataType
from cq.planner.plan.calls import Change
from cq.records import dataclass, field, fields, replace

FAILURES = {
    "CQ0705": "a number is out of range",
    "CQ0706": "division by zero",
    "CQ0707": "a value cannot be cast",
    "CQ0708": "a function has no value for its arguments",
    "CQ0802": "a value is too large",
}
"""The reason why an expression rejects an event, by the error code that stops a query elsewhere."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on every row of a table, which also passes if it is NULL. expr: over the columns of the table.

    text: its name in reasons: that of the constraint, or the condition in parentheses.
    """

    expr: Expr
    text: str


@dataclass(frozen=True, slots=True)
class KeyedTable:
    """A table whose rows have a primary key. key: its columns, none of them NULL.  rows: its initial rows."""

    name: str
    fields: tuple[Field, ...]
    key: tuple[int, ...]
    conditions: tuple[Condition, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def others(self) -> tuple[int, ...]:
        """The columns that are not part of the key."""
        return tuple(c for c in range(len(self.fields)) if c not in self.key)

    def conditions_on(self, columns: Iterable[int]) -> tuple[Condition, ...]:
        """The conditions that a row may violate when these columns change."""
        changed = set(columns)
        return tuple(c for c in self.conditions if columns_of(c.expr) & changed)

    def duplicate(self) -> str:
        """The reason for an INSERT whose key exists."""
        return f"{self.name} has a row with this key"

    def missing(self, column: int) -> str:
        """The reason if a NOT NULL column would be NULL."""
        return f"{self.name}.{self.fields[column].name} cannot be NULL"

    def broken(self, condition: Condition) -> str:
        """The reason if a row would violate a condition."""
        return f"CHECK {condition.text} of {self.name}"


@dataclass(frozen=True, slots=True)
class Access:
    """The row of a table with this key. key: over the frame; a NULL in it finds no row."""

    table: int
    key: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Local:
    """A value that steps set: an element of an array, or an aggregate over several rows. NULL at first."""

    type: DataType


@dataclass(frozen=True, slots=True)
class Read:
    """Bring the row of the access into the frame, as the transaction left it."""

    access: int
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Update:
    """If the row exists and the condition, if any, is TRUE, set its columns to these values, all computed before."""

    access: int
    columns: tuple[int, ...]
    values: tuple[Expr, ...]
    condition: Expr | None = None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Insert:
    """If there is no row, insert this one; else reject the event or, with `conflict`, take those steps."""

    access: int
    values: tuple[Expr, ...]
    conflict: tuple[Step, ...] | None = None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Delete:
    """If the row exists and the condition, if any, is TRUE, delete it."""

    access: int
    condition: Expr | None = None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Choose:
    """Take the steps of one side."""

    condition: Expr
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Set:
    """Set the local to this value. local: its number among accesses and locals."""

    local: int
    value: Expr
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Each:
    """Take the steps once for each index of the arrays, in order: the locals from `local` on are the elements there.

    If an array is shorter than another, its missing elements are NULL; a NULL array is empty.  numbered: the local
    after them counts the elements, from 1.
    """

    local: int
    arrays: tuple[Expr, ...]
    steps: tuple[Step, ...]
    numbered: bool = False
    line: int = field(default=0, compare=False)

    @property
    def locals(self) -> range:
        """The numbers of its locals."""
        return range(self.local, self.local + len(self.arrays) + self.numbered)


@dataclass(frozen=True, slots=True)
class Reject:
    """Reject the event with this reason, a VARCHAR."""

    reason: Expr
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Emit:
    """If the condition, if any, is TRUE, emit a row of these values for an accepted event.

    into: before triggers are joined, the relation that gets the row, "" for the trigger's own.
    """

    values: tuple[Expr, ...]
    condition: Expr | None = None
    into: str = ""
    line: int = field(default=0, compare=False)


# line: of the statement that a step is part of; 0 if there is none.
Step: TypeAlias = Read | Update | Insert | Delete | Choose | Set | Each | Reject | Emit


@dataclass(frozen=True, slots=True)
class Program:
    """A trigger: its steps for an event for which `when`, if any, is TRUE.

    outputs: the columns of the rows it emits.  strict: whether a rejected event ends the run instead, with an error at
    `span`.
    """

    name: str
    when: Expr | None
    steps: tuple[Step, ...]
    outputs: tuple[Field, ...]
    strict: bool = False
    span: Span = field(default=NOWHERE, compare=False)

    def map(self, change: Change) -> Program:
        """The program with `change` applied to its expressions."""
        when = None if self.when is None else change(self.when)
        return replace(self, when=when, steps=mapped(self.steps, change))


def frame(
    event: Sequence[Field], tables: Sequence[KeyedTable], accesses: Sequence[Access | Local]
) -> tuple[Field, ...]:
    """The columns of the frame."""
    fields = list(event)
    for access in accesses:
        if isinstance(access, Local):
            fields.append(Field("local", access.type, True))
            continue
        fields.append(Field("found", BOOLEAN, False))
        fields += (replace(f, nullable=True) for f in tables[access.table].fields)
    return tuple(fields)


def width_of(access: Access | Local, tables: Sequence[KeyedTable]) -> int:
    """How many columns of the frame it takes."""
    return 1 if isinstance(access, Local) else 1 + len(tables[access.table].fields)


def frame_starts(event: int, tables: Sequence[KeyedTable], accesses: Sequence[Access | Local]) -> tuple[int, ...]:
    """The start of each access and local in the frame of an event with this many columns."""
    starts = []
    for access in accesses:
        starts.append(event)
        event += width_of(access, tables)
    return tuple(starts)


def inner(step: Step) -> tuple[tuple[Step, ...], ...]:
    """The steps inside a step: for a choice those of both sides."""
    match step:
        case Choose(then=then, otherwise=otherwise):
            return then, otherwise
        case Each(steps=inside):
            return (inside,)
        case Insert(conflict=conflict):
            return () if conflict is None else (conflict,)
        case Read() | Update() | Delete() | Set() | Reject() | Emit():
            return ()


def every(steps: Sequence[Step]) -> Iterator[Step]:
    """The steps and those inside them, in order."""
    for step in steps:
        yield step
        for inside in inner(step):
            yield from every(inside)


def written_unread(steps: Sequence[Step], table_of: Callable[[int], int]) -> list[Step]:
    """The steps that write a row of a table of which another access has been read since theirs was: if both name one
    row, the other access holds it, and what is written to this one is lost.
    """
    found: list[Step] = []
    _note_unread(steps, table_of, {}, found)
    return found


def _note_unread(
    steps: Sequence[Step], table_of: Callable[[int], int], last: dict[int, int], found: list[Step]
) -> None:
    """last: for each table the access read last; -1 if unknown. Updated in place."""
    for step in steps:
        match step:
            case Read(access=access):
                last[table_of(access)] = access
            case Update(access=access) | Delete(access=access) | Insert(access=access):
                found += [step] if last.get(table_of(access)) != access else []
            case _:
                pass
        inside = inner(step)
        sides = [dict(last) for _ in inside]
        for side, then_last in zip(inside, sides, strict=True):
            _note_unread(side, table_of, then_last, found)
        for other in sides:
            last.update({t: -1 for t in other if other[t] != last.get(t)})


def turns_of_emits(steps: Sequence[Step], first: int = 0) -> tuple[list[int], int]:
    """For each step that emits, in the order of `every`, the number of its row among those of an event, counted from
    `first`; and the most rows there can be. Only one side of a choice is taken: both share numbers.
    """
    found: list[int] = []
    for step in steps:
        match step:
            case Emit():
                found.append(first)
                first += 1
            case Choose(then=then, otherwise=otherwise):
                one, behind = turns_of_emits(then, first)
                other, most = turns_of_emits(otherwise, first)
                found += one + other
                first = max(behind, most)
            case Each(steps=inside):
                turns, first = turns_of_emits(inside, first)
                found += turns
            case Insert(conflict=conflict) if conflict is not None:
                turns, first = turns_of_emits(conflict, first)
                found += turns
            case Insert() | Read() | Update() | Delete() | Set() | Reject():
                pass
            case _:
                assert_never(step)
    return found, first


def emits_for_elements(steps: Sequence[Step]) -> bool:
    """Whether rows are emitted for elements of arrays: then an event may cause any number of rows."""
    return any(isinstance(i, Emit) for s in every(steps) if isinstance(s, Each) for i in every(s.steps))


def own_expressions(step: Step) -> tuple[Expr, ...]:
    """The expressions of a step, without those of the steps inside it."""
    match step:
        case Update(values=values, condition=condition) | Emit(values=values, condition=condition):
            return values if condition is None else (condition, *values)
        case Insert(values=values):
            return values
        case Delete(condition=condition):
            return () if condition is None else (condition,)
        case Choose(condition=met):
            return (met,)
        case Set(value=value):
            return (value,)
        case Each(arrays=arrays):
            return arrays
        case Reject(reason=reason):
            return (reason,)
        case Read():
            return ()


def shape(value: object, text: Callable[[Expr], str]) -> object:
    """A step, or something in one, with texts in place of its expressions: equal for steps that do the same."""
    if isinstance(value, Expr):
        return text(value)
    if isinstance(value, tuple):
        return tuple(shape(v, text) for v in value)
    if isinstance(value, Step):
        return (type(value).__name__, *(shape(getattr(value, f.name), text) for f in fields(value) if f.compare))
    return value


def rebuilt(steps: Sequence[Step], change: Callable[[Step], Step]) -> tuple[Step, ...]:
    """The steps with `change` applied to each, those inside first."""

    def one(step: Step) -> Step:
        match step:
            case Insert(conflict=conflict) if conflict is not None:
                return change(replace(step, conflict=rebuilt(conflict, change)))
            case Choose(then=then, otherwise=otherwise):
                return change(replace(step, then=rebuilt(then, change), otherwise=rebuilt(otherwise, change)))
            case Each(steps=inside):
                return change(replace(step, steps=rebuilt(inside, change)))
            case Insert() | Read() | Update() | Delete() | Set() | Reject() | Emit():
                return change(step)

    return tuple(map(one, steps))


def of_line(steps: Sequence[Step], line: int) -> tuple[Step, ...]:
    """The steps as parts of the statement on this line, except those that already belong to one inside it."""
    return rebuilt(steps, lambda step: step if step.line else replace(step, line=line))


def mapped(steps: Sequence[Step], change: Change) -> tuple[Step, ...]:
    """The steps with `change` applied to their expressions."""

    def maybe(e: Expr | None) -> Expr | None:
        return None if e is None else change(e)

    def one(step: Step) -> Step:
        match step:
            case Update(values=values, condition=condition) | Emit(values=values, condition=condition):
                return replace(step, values=tuple(map(change, values)), condition=maybe(condition))
            case Insert(values=values):
                return replace(step, values=tuple(map(change, values)))
            case Delete(condition=condition):
                return replace(step, condition=maybe(condition))
            case Choose(condition=met):
                return replace(step, condition=change(met))
            case Set(value=value):
                return replace(step, value=change(value))
            case Each(arrays=arrays):
                return replace(step, arrays=tuple(map(change, arrays)))
            case Reject(reason=reason):
                return Reject(change(reason))
            case Read():
                return step

    return rebuilt(steps, one)


def moved(expr: Expr, width: int, positions: Mapping[int, int], by: int) -> Expr:
    """An expression over a frame whose event has other columns: it had `width`, and now has `by` more or fewer."""
    beyond = {c: c + by for c in columns_of(expr) if c >= width}
    return remap(expr, {**positions, **beyond})


def placeless(expr: Expr, width: int) -> Expr:
    """The expression with columns of accesses replaced by constants that name them: a text independent of positions."""

    def change(e: Expr) -> Expr:
        if isinstance(e, Column) and e.index >= width:
            return Literal(e.type, False, f"access {e.index - width}")
        return e

    return transform(expr, change)
