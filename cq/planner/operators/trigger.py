"""Trigger: transactions on keyed tables, one event after the other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from cq.lang.expressions import Column, Expr, can_fail, columns_of
from cq.lang.schema import Field, Schema
from cq.lang.types import BIGINT, VARCHAR
from cq.planner.operators.one_input import OneInput
from cq.planner.operators.pruning import unless_same
from cq.planner.plan.calls import Change
from cq.planner.plan.node import NO_STATE, Fields, Inputs, LogicalNode, OpClass, Pruned, Pulled, StateBound, Text
from cq.planner.plan.registration import operator
from cq.planner.plan.step_laws import StepLaws
from cq.planner.plan.step_text import StepText
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
    Set,
    Step,
    Update,
    emits_for_elements,
    every,
    frame,
    moved,
    own_expressions,
    placeless,
    shape,
    turns_of_emits,
    written_unread,
)
from cq.planner.plan.work import Work, work_of
from cq.records import dataclass, replace


@operator("trigger")
@dataclass(frozen=True, slots=True)
class Trigger(OneInput):
    """Each event, in order of arrival, goes through the programs in their order, each a transaction of its own.

    A row of the output is the event, then which: 2p for a row that program p emits, 2p + 1 for an event that it
    rejects; the reason of a rejection; and the columns of all programs' rows, those of other programs NULL. An event
    leaves its rejections and rows in the order of the programs and their steps. With `contents` the rows are those of
    the tables instead, when the input has ended: which table, and the columns of all tables.

    Transactions see each other's effects in order of arrival and none of a rejected one. Late events count.
    """

    tables: tuple[KeyedTable, ...]
    accesses: tuple[Access | Local, ...]
    programs: tuple[Program, ...]
    contents: bool = False

    op_class = OpClass.STATEFUL
    waits_on = (None,)  # events are processed as they arrive
    fails_itself = False
    closes = False
    may_drop = True
    uses_time = False
    late_alone = False
    begins_groups_when_due = False
    looks_up_after = ()
    groups = None
    merges_exactly = False
    merge_pays = False
    closes_one_pane = False
    vouched = ()

    def __post_init__(self) -> None:
        which = Field("which", BIGINT, False)
        if self.contents:
            kept = (replace(f, nullable=True) for t in self.tables for f in t.fields)
            self._set_schema(Schema((which, *kept)))
            return
        made = (replace(f, nullable=True) for p in self.programs for f in p.outputs)
        own = (which, Field("reason", VARCHAR, True), *made)
        self._set_schema(Schema((*self.input.schema.fields, *own), self.input.schema.times))

    @property
    def width(self) -> int:
        """How many columns an event has."""
        return len(self.input.schema)

    def access(self, number: int) -> Access:
        """The access with this number, which must not be a local."""
        found = self.accesses[number]
        assert isinstance(found, Access), f"{number} is a local"
        return found

    @property
    def frame(self) -> Fields:
        """The columns that expressions are over."""
        return frame(self.input.schema.fields, self.tables, self.accesses)

    def over(self, inputs: Inputs) -> Fields:
        return self.frame

    @property
    def input_keys(self) -> tuple[tuple[Expr, ...], ...] | None:
        return ((),)

    def expressions(self) -> Iterator[tuple[Expr, Inputs]]:
        for access in self.accesses:
            if isinstance(access, Access):
                yield from ((e, (0,)) for e in access.key)
        for program in self.programs:
            if program.when is not None:
                yield program.when, (0,)
            for step in every(program.steps):
                yield from ((e, (0,)) for e in own_expressions(step))

    def map_expressions(self, change: Change) -> LogicalNode:
        accesses = tuple(
            replace(a, key=tuple(map(change, a.key))) if isinstance(a, Access) else a for a in self.accesses
        )
        return replace(self, accesses=accesses, programs=tuple(p.map(change) for p in self.programs))

    def pull(self, expr: Expr) -> Pulled | None:
        within = all(c < self.width for c in columns_of(expr))
        return ((0, expr),) if within and not self.contents else None

    def columns_read(self, needed: set[int]) -> tuple[set[int], ...]:
        shown = set() if self.contents else needed
        used = columns_of(*(e for e, _ in self.expressions()))
        return ({c for c in shown | used if c < self.width},)

    def pruned(self, inputs: Sequence[Pruned], needed: set[int], read: Sequence[set[int]]) -> Pruned:
        ((below, indices),) = inputs
        by = len(below.schema) - self.width
        changed = self.map_expressions(lambda e: moved(e, self.width, indices, by))
        new = unless_same(self, changed.with_inputs((below,)))
        if self.contents:
            return Pruned(new, {c: c for c in range(len(self.schema))})
        return Pruned(new, {**indices, **{c: c + by for c in range(self.width, len(self.schema))}})

    def holds_back(self, port: int) -> bool:
        return self.contents

    @property
    def emits_at_end(self) -> bool:
        return self.contents

    @property
    def revises(self) -> bool:
        return self.contents

    @property
    def fan_out(self) -> int | None:
        """The rows that one event causes: a rejection, or the rows emitted by the steps of a program."""
        if self.contents:
            return 0
        if any(emits_for_elements(p.steps) for p in self.programs):
            return None
        return sum(max(1, turns_of_emits(p.steps)[1]) for p in self.programs)

    @property
    def state(self) -> StateBound:
        names = ", ".join(t.name for t in self.tables)
        if not names:
            return NO_STATE
        return StateBound(f"the rows of {names}", bounded=False, way="DELETE the rows that are needed no longer")

    @property
    def work(self) -> Work:
        """The work of the programs for one event."""
        return work_of(self.programs)

    @property
    def cost_ns(self) -> int:
        """About how long an event takes, including the functions in the bodies."""
        return self.work.ns

    def may_reject(self, step: Step, known: Collection[int] = ()) -> bool:
        """Whether a step, without those inside it, may reject an event; TRUE for any kind not handled here.

        known: columns of the frame that are not NULL.
        """
        if any(can_fail(e) for e in own_expressions(step)):
            return True
        match step:
            case Read(access=access):
                return any(can_fail(e) for e in self.access(access).key)
            case Update(access=access, columns=columns, values=values):
                table = self.tables[self.access(access).table]
                return bool(table.conditions_on(columns)) or _may_miss(table, columns, values, known)
            case Insert(access=access, values=values, conflict=conflict):
                table = self.tables[self.access(access).table]
                return conflict is None or bool(table.conditions) or _may_miss(table, range(len(values)), values, known)
            case Delete() | Choose() | Set() | Each() | Emit():
                return False
            case _:
                return True

    @property
    def rejects(self) -> bool:
        """Whether a program may reject an event."""
        return any(
            any(map(self.may_reject, every(p.steps))) or (p.when is not None and can_fail(p.when))
            for p in self.programs
            if not p.strict
        )

    def check(self) -> None:
        assert not self.contents or self.input.bounded, "the contents of tables that never end"
        broken = next(StepLaws(self.width, self.tables, self.accesses).broken(self.programs), None)
        assert broken is None, broken
        unread = [s for p in self.programs for s in written_unread(p.steps, lambda n: self.access(n).table)]
        assert not unread, f"{len(unread)} writes to rows that another access may hold"

    def parameters(self, text: Text) -> tuple[object, ...]:
        def told(e: Expr) -> str:
            return text((0,), placeless(e, self.width))

        tables = (
            (
                t.name,
                tuple((f.name, str(f.type), f.nullable) for f in t.fields),
                t.key,
                t.rows,
                tuple(c.text for c in t.conditions),
            )
            for t in self.tables
        )
        keys = tuple((a.table, *map(told, a.key)) if isinstance(a, Access) else (str(a.type),) for a in self.accesses)
        programs = tuple(
            ("" if p.when is None else told(p.when), shape(p.steps, told), p.strict) for p in self.programs
        )
        return (*tables, keys, programs, self.contents)

    def meaning(self, column: int, text: Text) -> str:
        return f"column {column - (0 if self.contents else self.width)}"

    def describe(self) -> str:
        names = ", ".join(p.name for p in self.programs)
        on = ", ".join(t.name for t in self.tables)
        return f"{names}{' on ' + on if on else ''}{', contents' if self.contents else ''}"

    def in_detail(self) -> tuple[str, ...]:
        """The steps of each program."""
        text = StepText.over(self.input.schema.fields, self.tables, self.accesses)
        return tuple(line for p in self.programs for line in text.program(p))


def _may_miss(table: KeyedTable, columns: Iterable[int], values: Sequence[Expr], known: Collection[int]) -> bool:
    """Whether one of these values may be NULL in a column that cannot be."""
    return any(
        v.nullable and not table.fields[c].nullable and not (isinstance(v, Column) and v.index in known)
        for c, v in zip(columns, values, strict=True)
    )
