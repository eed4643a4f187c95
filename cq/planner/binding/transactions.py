"""The tables and triggers of a file: who shares tables with whom, and what their rows are for those who read them.

Triggers that share a table, directly or through others, become one operator: transactions of all of them are in order
of arrival. It is made when the first query reads one of its triggers or tables; no trigger may follow then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cq.errors import NOWHERE, CompileError, Diagnostic, Span, compile_error
from cq.grammar import ast
from cq.lang.expressions import Column, Expr, Literal, columns_of, conjunction, remap
from cq.lang.types import BIGINT, TIMESTAMP
from cq.planner.binding.catalog import Catalog, StreamBinder
from cq.planner.binding.made import column, compared, integer
from cq.planner.binding.parameters import ParameterValue
from cq.planner.binding.scope import Relation, relation_of
from cq.planner.binding.tables import LOADING, Declared, as_stream, bind_table, filled, is_filled
from cq.planner.binding.triggers import BoundTrigger, bind_trigger
from cq.planner.operators import Filter, OrderKey, Project, Sort, Trigger, UnionAll
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
from cq.records import dataclass, field, replace


@dataclass(slots=True)
class Transactions:
    """What a file says of tables and triggers so far. read: which of them a query reads."""

    catalog: Catalog
    tables: dict[str, Declared] = field(default_factory=dict)
    triggers: list[BoundTrigger] = field(default_factory=list)
    joint: dict[tuple[str, bool], Joint] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)

    @property
    def parameters(self) -> Mapping[str, ParameterValue]:
        return self.catalog.environment.parameters

    def is_broken(self, table: str) -> bool:
        """Whether the statement of the table could not be bound."""
        return table in self.catalog.broken

    def is_sink(self, name: str) -> bool:
        """Whether the name is a sink, or a relation that is no table."""
        return name in self.catalog.sinks or name in self.catalog.relations

    # ---------------------------------------------------------------------------------------------------- statements

    def create_table(self, node: ast.CreateRelation) -> None:
        """CREATE TABLE with a primary key: a query reads the rows that it has in the end."""
        if node.if_not_exists and node.name in self.tables:
            return
        self.catalog.check_free(node.name, node.name_span)
        try:
            declared = bind_table(node, self.parameters)
            if is_filled(node, self.catalog.environment.inputs):
                self.triggers.append(self.loader(node, declared.table))
            self.tables[node.name] = declared
        except CompileError:
            self.catalog.broken.add(node.name)
            raise
        self.catalog.made[node.name] = lambda span: self._contents(node.name, span)

    def loader(self, node: ast.CreateRelation, table: KeyedTable) -> BoundTrigger:
        """What writes the rows of a source into the table it fills, before any event."""
        stream = StreamBinder(self.catalog, as_stream(node), fills=True).bind().node
        if not stream.bounded:
            raise compile_error(
                "CQ0406", f'the source that fills table "{node.name}" has no end, and events come behind it',
                node.name_span, help=f"read it as a stream: {LOADING.format(node.name)}",
            )  # fmt: skip
        values = tuple(replace(column(stream, c), nullable=True) for c in range(len(table.fields)))
        steps = (Read(0), Insert(0, values))
        program = Program(f"rows of {node.name}", None, steps, (), strict=True, span=node.name_span)
        access = Access(0, tuple(values[c] for c in table.key))
        return BoundTrigger(program, (access,), (node.name,), stream, node.name, node.name_span)

    def fill(self, node: ast.Insert) -> None:
        """INSERT INTO a table: rows that are there before any event."""
        if node.target in self.read:
            raise _too_late(f'rows of "{node.target}"', node.span)
        declared = self.tables[node.target]
        self.tables[node.target] = filled(declared, node, self.parameters)

    def create_trigger(self, node: ast.CreateTrigger) -> None:
        """CREATE TRIGGER: `name` is what it emits, `name_rejected` the events that it rejects."""
        if node.if_not_exists and any(t.program.name == node.name for t in self.triggers):
            return
        rejected = f"{node.name}_rejected"
        for name in (node.name, rejected):
            self.catalog.check_free(name, node.name_span)
        try:
            stream = self.catalog.lookup(node.relation, node.relation_span)
            trigger = bind_trigger(node, stream, self)
            read = sorted(self.read & {*trigger.tables})
            if read:
                raise _too_late(f'a trigger on "{read[0]}"', node.span)
        except CompileError:
            self.catalog.broken.update((node.name, rejected))
            raise
        self.triggers.append(trigger)
        self.catalog.made[node.name] = lambda span: self._emitted(node.name, span)
        self.catalog.made[rejected] = lambda span: self._rejected(node.name, rejected, span)

    def unread(self) -> list[Diagnostic]:
        """Triggers that nothing reads, so that they do not run."""
        return [
            Diagnostic(
                "CQ0201",
                f'trigger "{t.program.name}" does not run: no query reads its rows or those of its tables',
                t.span,
                severity="warning",
                help=(f"SELECT * FROM {t.tables[0] if t.tables else t.program.name}",),
            )
            for t in self.triggers
            if not t.program.strict and not self.read & {t.program.name, *t.tables}
        ]

    # ----------------------------------------------------------------------------------------------------- relations

    def _emitted(self, name: str, span: Span) -> Relation:
        """What the trigger emits; where it selects nothing, the events that it accepts."""
        joint, number = self._joint_of(name, span)
        trigger = joint.triggers[number]
        node = joint.rows(2 * number)
        if not trigger.program.outputs:
            return relation_of(_shown(node, joint.event(trigger), trigger.stream, None), name, f'trigger "{name}"')
        first = joint.first_output(number)
        exprs = [joint.plain(number, c) or column(node, first + c) for c in range(len(trigger.program.outputs))]
        names = tuple(f.name for f in trigger.program.outputs)
        return relation_of(Project(node, tuple(exprs), names, span=trigger.span), name, f'trigger "{name}"')

    def _rejected(self, name: str, rejected: str, span: Span) -> Relation:
        """The events that the trigger rejects, with the reason."""
        joint, number = self._joint_of(name, span)
        trigger = joint.triggers[number]
        node = joint.rows(2 * number + 1)
        reason = column(node, joint.node.width + 1)
        shown = _shown(node, joint.event(trigger), trigger.stream, reason)
        return relation_of(shown, rejected, f'rejections of trigger "{name}"')

    def _contents(self, name: str, span: Span) -> Relation:
        """The rows of the table when all events have come, by key."""
        self.read.add(name)
        table = self.tables[name].table
        users = [t for t in self.triggers if name in t.tables]
        if not users:
            node = self.catalog.constant_rows(table.fields, table.rows, table.span)
        else:
            joint = self._joint(users[0], contents=True, span=span)
            number = joint.tables.index(name)
            start = 1 + sum(len(self.tables[n].table.fields) for n in joint.tables[:number])
            below = joint.rows(number)
            exprs = tuple(column(below, start + n) for n in range(len(table.fields)))
            node = Project(below, exprs, tuple(f.name for f in table.fields), span=table.span)
        keys = tuple(OrderKey(column(node, c), False, True) for c in table.key)
        return relation_of(Sort(node, (), keys, span=table.span), name, f'table "{name}"')

    # --------------------------------------------------------------------------------------------------------- joint

    def _joint_of(self, name: str, span: Span) -> tuple[Joint, int]:
        self.read.add(name)
        trigger = next(t for t in self.triggers if t.program.name == name)
        joint = self._joint(trigger, contents=False, span=span)
        return joint, joint.triggers.index(trigger)

    def _joint(self, trigger: BoundTrigger, contents: bool, span: Span) -> Joint:
        """The operator of all triggers that share tables with this one."""
        triggers = self._sharing(trigger)
        key = (triggers[0].program.name, contents)
        if key not in self.joint:
            for t in triggers:
                self.read.update((t.program.name, *t.tables))
            tables = tuple(dict.fromkeys(n for t in triggers for n in t.tables))
            if contents and not all(t.stream.bounded for t in triggers):
                endless = next(t for t in triggers if not t.stream.bounded)
                raise compile_error(
                    "CQ0406",
                    f'what the tables hold in the end is never known: stream "{endless.relation}" has no end',
                    span,
                    help=f"SELECT rows in the body of the trigger, and read them FROM {endless.program.name}",
                )
            self.joint[key] = Joint.of(triggers, {n: self.tables[n].table for n in tables}, contents)
        return self.joint[key]

    def _sharing(self, trigger: BoundTrigger) -> tuple[BoundTrigger, ...]:
        """The triggers that share tables with it, themselves or through others, in order of the file."""
        tables, size = {*trigger.tables}, -1
        while size != len(tables):
            size = len(tables)
            for t in self.triggers:
                if tables & {*t.tables}:
                    tables |= {*t.tables}
        return tuple(t for t in self.triggers if t is trigger or tables & {*t.tables})


@dataclass(frozen=True, slots=True)
class Joint:
    """Triggers as one operator. maps: for each stream where its columns are in the operator's events."""

    triggers: tuple[BoundTrigger, ...]
    tables: tuple[str, ...]
    node: Trigger
    maps: dict[int, tuple[int, ...]]

    @staticmethod
    def of(triggers: tuple[BoundTrigger, ...], tables: dict[str, KeyedTable], contents: bool) -> Joint:
        streams = list({id(t.stream): t.stream for t in triggers}.values())
        events, maps = _events(streams, {id(t.stream) for t in triggers if t.program.strict})
        names = tuple(tables)
        accesses: list[Access | Local] = []
        programs: list[Program] = []
        end = len(events.schema)
        for t in triggers:
            own = len(t.stream.schema)
            place = _mover(maps[id(t.stream)], own, end)
            programs.append(_renumbered(t.program.map(place), len(accesses)))
            for a in t.accesses:
                if isinstance(a, Access):
                    accesses.append(Access(names.index(t.tables[a.table]), tuple(map(place, a.key))))
                else:
                    accesses.append(a)
                end += width_of(accesses[-1], [*tables.values()])
            if len(streams) > 1:
                programs[-1] = _only_of(programs[-1], streams.index(t.stream))
        node = Trigger(
            events, tuple(tables.values()), tuple(accesses), tuple(programs), contents, span=triggers[0].span
        )  # fmt: skip
        return Joint(triggers, names, node, maps)

    def rows(self, which: int) -> LogicalNode:
        """The rows of one kind."""
        kind = column(self.node, 0 if self.node.contents else self.node.width)
        return Filter(self.node, compared("=", kind, integer(which), self.node.span), span=self.node.span)

    def event(self, trigger: BoundTrigger) -> list[int]:
        """Where the columns of the trigger's stream are."""
        return list(self.maps[id(trigger.stream)])

    def first_output(self, number: int) -> int:
        """Where the columns that a program emits begin."""
        before = sum(len(p.outputs) for p in self.node.programs[:number])
        return self.node.width + 2 + before

    def plain(self, number: int, output: int) -> Expr | None:
        """The column of the event that an output is in every row; None for any other value."""
        steps = every(self.node.programs[number].steps)
        values = {s.values[output] for s in steps if isinstance(s, Emit)}
        (value, *more) = values
        if more or not isinstance(value, Column) or value.index >= self.node.width:
            return None
        return column(self.node, value.index)


def _events(streams: Sequence[LogicalNode], filling: set[int]) -> tuple[LogicalNode, dict[int, tuple[int, ...]]]:
    """The rows of all streams as one: that of a single stream; else which it is from, the time if all have one, and the
    columns of all streams, those of others NULL.

    filling: by id, what fills tables: it has no time, and its rows leave none that somebody could ask for it.
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
        places = [start + c for c in range(len(stream.schema))]
        if own:
            places[time] = 1
        maps[id(stream)] = tuple(places)
        at = 1 if timed and not own else None
        branches.append(Project(stream, tuple(exprs), tuple(names), at, span=stream.span))
        start += len(stream.schema)
    return UnionAll(tuple(branches)), maps


def _mover(places: tuple[int, ...], own: int, end: int) -> Callable[[Expr], Expr]:
    """From the frame of a trigger of its own to that of all."""

    def place(e: Expr) -> Expr:
        return remap(e, {c: places[c] if c < own else end + c - own for c in columns_of(e)})

    return place


def _renumbered(program: Program, first: int) -> Program:
    """The program where its accesses and locals are counted from another one on."""

    def one(step: Step) -> Step:
        if isinstance(step, Read | Insert | Update | Delete):
            return replace(step, access=step.access + first)
        if isinstance(step, Set | Each):
            return replace(step, local=step.local + first)
        return step

    return replace(program, steps=rebuilt(program.steps, one))


def _only_of(program: Program, stream: int) -> Program:
    """The program for events of one stream."""
    of = compared("=", Column(BIGINT, False, 0, "stream"), integer(stream), NOWHERE)
    return replace(program, when=of if program.when is None else conjunction((of, program.when)))


def _shown(node: LogicalNode, places: list[int], stream: LogicalNode, reason: Expr | None) -> LogicalNode:
    """The columns of a stream again, with the reason if there is one behind them."""
    names = list(stream.schema.names)
    exprs: list[Expr] = [column(node, c) for c in places]
    if reason is not None:
        exprs.append(reason)
        names.append(_free("reason", names))
    return Project(node, tuple(exprs), tuple(names), span=node.span)


def _free(name: str, taken: Sequence[str]) -> str:
    """The name, or one like it that no column has."""
    number = 1
    while name in taken:
        number += 1
        name = f"reason_{number}"
    return name


def _too_late(what: str, span: Span) -> CompileError:
    return compile_error(
        "CQ0502",
        f"{what} must stand before the queries that read its table",
        span,
        help="write CREATE TABLE, INSERT and CREATE TRIGGER first, then the queries",
    )
