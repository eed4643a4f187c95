"""Triggers and look-ups that share tables, as one operator: the positions of their events and rows in its columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cq.errors import NOWHERE
from cq.lang.expressions import Coalesce, Column, Expr, IsNull, Literal, Or, columns_of, conjunction, remap
from cq.lang.types import BIGINT, BOOLEAN, TIMESTAMP
from cq.planner.binding.built_expressions import column, compared, integer
from cq.planner.binding.triggers.body import BoundTrigger
from cq.planner.binding.triggers.changes import TIME
from cq.planner.binding.triggers.mistakes import REASON
from cq.planner.binding.triggers.outputs import RowTarget
from cq.planner.binding.triggers.targets import targets_of, widened
from cq.planner.operators import Filter, Project, Trigger, UnionAll
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.transactions import (
    Access,
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
    every,
    rebuilt,
    width_of,
)
from cq.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Joint:
    """Triggers as one operator. maps: for each of them, the positions of its stream's columns in the operator's events.

    loose: whether all event columns except times count as nullable, as they do with several streams.  targets: the
    relations for which each trigger emits rows besides its own.
    """

    triggers: tuple[BoundTrigger, ...]
    tables: tuple[str, ...]
    node: Trigger
    maps: tuple[tuple[int, ...], ...]
    loose: bool
    targets: tuple[tuple[RowTarget, ...], ...]

    @staticmethod
    def of(
        triggers: tuple[BoundTrigger, ...],
        tables: dict[str, KeyedTable],
        known: Sequence[RowTarget],
        contents: bool,
        loose: bool,
    ) -> Joint:
        """The operator. known: all relations for which a trigger may emit rows besides its own."""
        targets = tuple(targets_of(t, known) for t in triggers)
        streams = list({id(t.stream): t.stream for t in triggers}.values())
        events, maps = _events(streams, {id(t.stream) for t in triggers if t.program.strict})
        names = tuple(tables)
        accesses: list[Access | Local] = []
        programs: list[Program] = []
        end = len(events.schema)
        for t, emits in zip(triggers, targets, strict=True):
            own = len(t.stream.schema)
            moved = _mover(maps[id(t.stream)], own, end)
            programs.append(_renumbered(widened(t, emits).program.map(moved), len(accesses)))
            for a in t.accesses:
                if isinstance(a, Access):
                    accesses.append(Access(names.index(t.tables[a.table]), tuple(map(moved, a.key))))
                else:
                    accesses.append(a)
                end += width_of(accesses[-1], [*tables.values()])
            if len(streams) > 1:
                programs[-1] = _only_of(programs[-1], streams.index(t.stream))
        node = Trigger(
            events, tuple(tables.values()), tuple(accesses), tuple(programs), contents, span=triggers[0].span
        )  # fmt: skip
        return Joint(triggers, names, node, tuple(maps[id(t.stream)] for t in triggers), loose, targets)

    def emitted(self, trigger: BoundTrigger) -> Project:
        """The rows that the trigger emits; if it selects nothing, the events that it accepts."""
        number = self._number(trigger)
        node = self._own(number)
        if not trigger.program.outputs:
            return self._event(number, node, None)
        first = self._first_output(number)
        exprs = [self._plain(number, None, c) or column(node, first + c) for c in range(len(trigger.program.outputs))]
        names = tuple(f.name for f in trigger.program.outputs)
        return Project(node, tuple(exprs), names, span=trigger.span)

    def rejected(self, trigger: BoundTrigger) -> Project:
        """The events that the trigger rejects, with the reason."""
        number = self._number(trigger)
        node = self._rows(2 * number + 1)
        return self._event(number, node, column(node, self.node.width + 1))

    def found(self, look_up: BoundTrigger, width: int) -> Project:
        """The rows of a look-up, with this many columns, each beside the row that it finds."""
        number = self._number(look_up)
        node = self._rows(2 * number)
        indices = [*self.maps[number][:width], *range(self._first_output(number), len(node.schema))]
        kept = indices[: width + len(look_up.program.outputs)]
        names = (*look_up.stream.schema.names[:width], *(f.name for f in look_up.program.outputs))
        return Project(node, tuple(map(self._column, kept)), names, span=look_up.span)

    def inserted(self, name: str, by: Sequence[BoundTrigger]) -> Project:
        """The rows that these triggers insert into a stream; a column that is an event column in all of them stays
        one."""
        node, numbers = self._beside(name, by)
        fields = self.targets[numbers[0][0]][numbers[0][1]].fields
        exprs = []
        for index in range(len(fields)):
            plain = {self._plain(n, target, index) for n, target in numbers}
            (value, *more) = plain
            exprs.append(self._one_of(node, numbers, index) if more or value is None else value)
        return Project(node, tuple(exprs), tuple(f.name for f in fields), span=self.node.span)

    def changed(self, name: str, by: Sequence[BoundTrigger]) -> Project:
        """The changes that these triggers make to a table, after the event time if there is one."""
        node, numbers = self._beside(name, by)
        fields = self.targets[numbers[0][0]][numbers[0][1]].fields
        exprs: list[Expr] = [self._one_of(node, numbers, index) for index in range(len(fields))]
        names = [f.name for f in fields]
        if self.node.schema.times:
            exprs.insert(0, column(node, self.node.schema.times[0].column))
            names.insert(0, TIME)
        return Project(node, tuple(exprs), tuple(names), span=self.node.span)

    def _beside(self, name: str, by: Sequence[BoundTrigger]) -> tuple[LogicalNode, list[tuple[int, int]]]:
        """The rows that these triggers emit for a relation; given as the number of each trigger and of the relation in
        it."""
        numbers = []
        for n, trigger in enumerate(self.triggers):
            if any(trigger is b for b in by):
                numbers.append((n, [t.name for t in self.targets[n]].index(name)))
        here = tuple(compared("=", column(self.node, self._target(n)), integer(t), self.node.span) for n, t in numbers)
        return Filter(self.node, here[0] if len(here) == 1 else Or(BOOLEAN, True, here), span=self.node.span), numbers

    def _one_of(self, node: LogicalNode, numbers: Sequence[tuple[int, int]], index: int) -> Expr:
        """A column of such rows: a row has the columns of one program, and those of others are NULL."""
        found = tuple(column(node, self._for_target(n, t) + index) for n, t in numbers)
        return found[0] if len(found) == 1 else Coalesce(found[0].type, True, found)

    def kept(self, table: str) -> Project:
        """The rows of a table at the end."""
        number = self.tables.index(table)
        own = self.node.tables[number]
        start = 1 + sum(len(t.fields) for t in self.node.tables[:number])
        node = self._rows(number)
        exprs = tuple(column(node, start + n) for n in range(len(own.fields)))
        return Project(node, exprs, tuple(f.name for f in own.fields), span=own.span)

    def _number(self, trigger: BoundTrigger) -> int:
        return next(n for n, t in enumerate(self.triggers) if t is trigger)

    def _rows(self, which: int) -> LogicalNode:
        """The rows of one kind."""
        kind = column(self.node, 0 if self.node.contents else self.node.width)
        return Filter(self.node, compared("=", kind, integer(which), self.node.span), span=self.node.span)

    def _own(self, number: int) -> LogicalNode:
        """The rows that a program emits as its own."""
        node = self._rows(2 * number)
        if not self.targets[number]:
            return node
        return Filter(node, IsNull(BOOLEAN, False, column(node, self._target(number))), span=self.node.span)

    def _target(self, number: int) -> int:
        """The column that says which relation a row of a program is for."""
        return self._first_output(number) + len(self.triggers[number].program.outputs)

    def _for_target(self, number: int, target: int) -> int:
        """The start of the columns of rows that a program emits for a relation."""
        return self._target(number) + 1 + sum(len(t.fields) for t in self.targets[number][:target])

    def _event(self, number: int, node: LogicalNode, reason: Expr | None) -> Project:
        """The columns of the trigger's stream again, followed by the reason if there is one."""
        names = list(self.triggers[number].stream.schema.names)
        exprs: list[Expr] = [self._column(c) for c in self.maps[number]]
        if reason is not None:
            exprs.append(reason)
            names.append(REASON)
        return Project(node, tuple(exprs), tuple(names), span=node.span)

    def _first_output(self, number: int) -> int:
        """The start of the columns that a program emits."""
        before = sum(len(p.outputs) for p in self.node.programs[:number])
        return self.node.width + 2 + before

    def _plain(self, number: int, target: int | None, index: int) -> Expr | None:
        """The event column that a column equals in every row a program emits for a relation (None: for itself).

        None if it has any other value.
        """
        steps = every(self.node.programs[number].steps)
        own = len(self.triggers[number].program.outputs)
        output = index if target is None else self._for_target(number, target) - self._first_output(number) + index
        which = Literal(BIGINT, True, None) if target is None else integer(target)
        emits = [s.values for s in steps if isinstance(s, Emit)]
        (value, *more) = {v[output] for v in emits if not self.targets[number] or v[own] == which}
        if more or not isinstance(value, Column) or value.index >= self.node.width:
            return None
        return self._column(value.index)

    def _column(self, index: int) -> Column:
        """A column of the operator."""
        found = column(self.node, index)
        may_be_null = self.loose and self.node.schema.time_of(index) is None
        return replace(found, nullable=True) if may_be_null else found


def _events(streams: Sequence[LogicalNode], filling: set[int]) -> tuple[LogicalNode, dict[int, tuple[int, ...]]]:
    """The rows of all streams as one: unchanged for a single stream; else the number of the stream, the time if all
    have one, and the columns of all streams, NULL for the others.

    filling: by id, the sources that fill tables: they have no time, and their rows cause none whose time anybody could
    ask for.
    """
    if len(streams) == 1:
        (only,) = streams
        return only, {id(only): tuple(range(len(only.schema)))}
    timed = all(s.schema.times for s in streams if id(s) not in filling)
    first = 2 if timed else 1
    branches, maps = [], {}
    start = first
    for number, stream in enumerate(streams):
        own = timed and id(stream) not in filling
        time = stream.schema.times[0].column if own else -1
        exprs: list[Expr] = [Literal(BIGINT, False, number)]
        exprs += [column(stream, time) if own else Literal(TIMESTAMP, False, 0)] if timed else []
        names = ["stream", "time"][:first]
        for n, other in enumerate(streams):
            for c, f in enumerate(other.schema.fields):
                exprs.append(column(stream, c) if n == number else Literal(f.type, True, None))
                names.append(f"{f.name}{n}")
        indices = [start + c for c in range(len(stream.schema))]
        if own:
            indices[time] = 1
        maps[id(stream)] = tuple(indices)
        at = 1 if timed and not own else None
        branches.append(Project(stream, tuple(exprs), tuple(names), at, span=stream.span))
        start += len(stream.schema)
    return UnionAll(tuple(branches)), maps


def _mover(indices: tuple[int, ...], own: int, end: int) -> Callable[[Expr], Expr]:
    """Maps from the frame of one trigger to that of all."""

    def moved(e: Expr) -> Expr:
        return remap(e, {c: indices[c] if c < own else end + c - own for c in columns_of(e)})

    return moved


def _renumbered(program: Program, first: int) -> Program:
    """The program with its accesses and locals numbered from an offset."""

    def one(step: Step) -> Step:
        if isinstance(step, Read | Insert | Update | Delete):
            return replace(step, access=step.access + first)
        if isinstance(step, Set | Each):
            return replace(step, local=step.local + first)
        return step

    return replace(program, steps=rebuilt(program.steps, one))


def _only_of(program: Program, stream: int) -> Program:
    """The program restricted to events of one stream."""
    of = compared("=", Column(BIGINT, False, 0, "stream"), integer(stream), NOWHERE)
    return replace(program, when=of if program.when is None else conjunction((of, program.when)))
