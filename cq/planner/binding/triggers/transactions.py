"""The tables and triggers of a file: which share tables, and the rows that readers get from them.

Triggers that share a table, directly or through others, become one operator: all their transactions are in order of
arrival. No trigger may join a group after a query has read one of its triggers or tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from cq.errors import CompileError, Diagnostic, Span, compile_error
from cq.grammar import ast, inline
from cq.planner.binding.built_expressions import column
from cq.planner.binding.catalog import Catalog, StreamBinder, too_early
from cq.planner.binding.order_keys import demand_order
from cq.planner.binding.parameters import ParameterValue
from cq.planner.binding.scope import Relation, relation_of
from cq.planner.binding.tables import LOADING, DeclaredTable, as_stream, bind_table, filled, is_filled
from cq.planner.binding.triggers.body import BoundTrigger, bind_trigger
from cq.planner.binding.triggers.changes import OP, TIME, changes_of, changing
from cq.planner.binding.triggers.filled_streams import FilledStream
from cq.planner.binding.triggers.joint import Joint
from cq.planner.binding.triggers.look_ups import look_up
from cq.planner.binding.triggers.mistakes import (
    REASON,
    filled_too_late,
    in_a_circle,
    not_filled_yet,
    second_insert,
    sink_without_columns,
    two_reasons,
)
from cq.planner.binding.triggers.outputs import RowTarget
from cq.planner.binding.triggers.sharing import Joints, TableGroup
from cq.planner.operators import OrderKey, Sort, UnionAll
from cq.planner.plan.logical import Output
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.transactions import Access, Insert, KeyedTable, Program, Read
from cq.records import dataclass, field, replace


@dataclass(slots=True)
class Transactions:
    """The tables and triggers of a file so far.

    groups: by their tables; a trigger without one by its name.  streams: those that triggers fill, by name.  stands:
    the stand-ins for the rows of those that are read.  sinks: the columns of those that triggers insert rows into, and
    where the first one does.  read: everything that queries read.
    """

    catalog: Catalog
    tables: dict[str, DeclaredTable] = field(default_factory=dict)
    triggers: list[BoundTrigger] = field(default_factory=list)
    joints: Joints = field(default_factory=Joints)
    groups: dict[tuple[str, ...], TableGroup] = field(default_factory=dict)
    streams: dict[str, FilledStream] = field(default_factory=dict)
    stands: dict[str, list[LogicalNode]] = field(default_factory=dict)
    sinks: dict[str, Span] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)

    @property
    def parameters(self) -> Mapping[str, ParameterValue]:
        return self.catalog.environment.parameters

    def is_broken(self, table: str) -> bool:
        """Whether binding the table's statement failed."""
        return table in self.catalog.broken

    def is_sink(self, name: str) -> bool:
        """Whether the name is a sink."""
        return name in self.catalog.sinks

    def target(self, name: str, span: Span, node: ast.CreateTrigger, stream: LogicalNode) -> RowTarget | None:
        """The stream or sink with that name. CQ0502 if no further trigger can insert rows into it."""
        if name in self.catalog.sinks:
            return self.sink(name, span)
        if name in self.catalog.filled and self.catalog.is_declared_below(name, span):
            raise too_early(name, span)
        if name not in self.streams:
            return None
        if self.is_made_of(stream, name):
            raise in_a_circle(name, span, node)
        if name in self.stands:
            raise filled_too_late(name, span)
        return self.streams[name].target

    def sink(self, name: str, span: Span) -> RowTarget:
        """The sink as a target of triggers. CQ0502 without columns, or if a query fills it."""
        fields = self.catalog.sinks[name].fields
        if not fields:
            raise sink_without_columns(name, span)
        if name in self.catalog.written:
            raise second_insert(name, span)
        self.sinks.setdefault(name, span)
        return RowTarget(name, fields)

    def is_made_of(self, node: LogicalNode, name: str) -> bool:
        """Whether the rows of the node are derived from those of a stream that triggers fill."""
        stands = {id(n) for n in self.stands.get(name, ())}
        return any(id(asked.stands) in stands for asked in self.joints.made_of(node))

    def is_relation(self, name: str) -> bool:
        """Whether the name is a stream or view."""
        return name in self.catalog.relations or name in self.catalog.environment.inputs or name in self.streams

    def is_made(self, name: str) -> bool:
        """Whether a table or trigger provides the relation with that name."""
        return name in self.catalog.made and name not in self.streams

    # ---------------------------------------------------------------------------------------------------- statements

    def create_table(self, node: ast.CreateRelation) -> None:
        """CREATE TABLE with a primary key: a query reads its rows at the end, or `name_changes`."""
        if node.if_not_exists and node.name in self.tables:
            return
        changes = f"{node.name}_changes"
        for name in (node.name, changes):
            self.catalog.check_free(name, node.name_span)
        try:
            declared = bind_table(node, self.parameters)
            if is_filled(node, self.catalog.environment.inputs):
                self.triggers.append(self.loader(node, declared.table))
            self.tables[node.name] = declared
        except CompileError:
            self.catalog.broken.update((node.name, changes))
            raise
        self.catalog.made[node.name] = lambda span: self._contents(node.name, span)
        self.catalog.made[changes] = lambda span: self._changed(node.name, span)
        self.catalog.keyed[node.name] = lambda join, left: self._looked_up(node.name, join, left)

    def create_stream(self, node: ast.CreateRelation) -> None:
        """CREATE STREAM without a source: triggers insert its rows."""
        if node.if_not_exists and node.name in self.streams:
            return
        self.catalog.check_free(node.name, node.name_span)
        try:
            self.streams[node.name] = FilledStream.declared(self.catalog, node)
        except CompileError:
            self.catalog.broken.add(node.name)
            raise
        self.catalog.made[node.name] = lambda span: self._inserted(node.name, span)

    def loader(self, node: ast.CreateRelation, table: KeyedTable) -> BoundTrigger:
        """The program that writes the rows of a source into the table it fills, before any event."""
        stream = StreamBinder(self.catalog, as_stream(node), fills=True).bind().node
        if not stream.bounded:
            raise compile_error(
                "CQ0406", f'the source that fills table "{node.name}" has no end, but must end before the first event',
                node.name_span, help=f"read it as a stream: {LOADING.format(inline.name(node.name))}",
            )  # fmt: skip
        values = tuple(replace(column(stream, c), nullable=True) for c in range(len(table.fields)))
        steps = (Read(0), Insert(0, values))
        program = Program(f"rows of {node.name}", None, steps, (), strict=True, span=node.name_span)
        access = Access(0, tuple(values[c] for c in table.key))
        return BoundTrigger(program, (access,), (node.name,), stream, node.name, node.name_span)

    def fill(self, node: ast.Insert) -> None:
        """INSERT INTO a table: rows that exist before any event."""
        if node.target in self.read:
            raise _too_late(f'rows of "{node.target}"', node.span)
        declared = self.tables[node.target]
        self.tables[node.target] = filled(declared, node, self.parameters)

    def create_trigger(self, node: ast.CreateTrigger) -> None:
        """CREATE TRIGGER: `name` is its output, `name_rejected` the events that it rejects."""
        if node.if_not_exists and any(t.program.name == node.name and not t.program.strict for t in self.triggers):
            return
        rejected = f"{node.name}_rejected"
        for name in (node.name, rejected):
            self.catalog.check_free(name, node.name_span)
        try:
            if node.relation in (node.name, rejected):
                raise compile_error(
                    "CQ0502", f'trigger "{node.name}" cannot be fired by its own rows', node.relation_span,
                    help="name a stream or view after ON, and put the statements for its rows into the same body",
                )  # fmt: skip
            if node.relation in self.tables:
                raise fired_by_a_table(node)
            if self.catalog.is_declared_below(node.relation, node.relation_span):
                way = f"move its CREATE up, before this; if rows of {node.name} fire it, combine both into one trigger"
                raise too_early(node.relation, node.relation_span, way)
            self.check_filled(node)
            stream = self.catalog.lookup(node.relation, node.relation_span)
            trigger = bind_trigger(node, stream, self)
            read = sorted(self.read & {*trigger.tables})
            if read:
                raise self.stands_too_low(node, trigger, stream.title, read)
        except CompileError:
            self.catalog.broken.update((node.name, rejected, *self.written_by(node)))
            raise
        self.triggers.append(trigger)
        self.catalog.made[node.name] = lambda _: self._emitted(trigger)
        self.catalog.made[rejected] = lambda span: self._rejected(trigger, rejected, span)

    def written_by(self, node: ast.CreateTrigger) -> Iterator[str]:
        """The streams that a trigger fills, and those of the changes that it makes to tables."""
        for inside in ast.walk(node):
            match inside:
                case ast.Insert(target=name) if name in self.streams:
                    yield name
                case ast.Insert(target=name) | ast.Update(table=name) | ast.Delete(table=name) if name in self.tables:
                    yield f"{name}_changes"

    def stands_too_low(
        self, node: ast.CreateTrigger, trigger: BoundTrigger, title: str, read: Sequence[str]
    ) -> CompileError:
        """Why the trigger cannot share tables that an earlier statement reads, and where to put it."""
        groups = [g for g in self.groups.values() if g.tables.keys() & {*read}]
        leading = next((g for g in groups if self.joints.leads(trigger.stream, g)), None)
        if leading is not None:
            return self.fired_by_its_tables(node, leading, title, read[0])
        fired = next((t for t in self.triggers if any(self.joints.leads(t.stream, g) for g in groups)), None)
        if fired is None:
            return _too_late(f'a trigger on "{read[0]}"', node.span)
        name = fired.program.name
        cause = f'triggers on "{read[0]}" cause trigger "{name}" to fire, so all of them must be defined before it'
        way = f"move this one up, before CREATE TRIGGER {inline.name(name)}"
        return compile_error("CQ0502", cause, node.name_span, help=way)

    def fired_by_its_tables(self, node: ast.CreateTrigger, group: TableGroup, title: str, table: str) -> CompileError:
        """Why rows derived from a table, or from triggers on it, fire no trigger on it."""
        first = next((t.program.name for t in group.triggers if not t.program.strict), None)
        if first is None:
            made = f'rows of "{table}"'
            way = f"define it on a stream that does not depend on {inline.name(table)}, and read that table in its body"
        else:
            made = f'triggers on "{table}"'
            way = f"write both bodies as one: that of {inline.name(first)}, then that of {inline.name(node.name)}"
        cause = f"{title} depends on {made}, so it cannot fire a trigger on it"
        return compile_error("CQ0502", cause, node.relation_span, help=way)

    def check_filled(self, node: ast.CreateTrigger) -> None:
        """CQ0502 if the rows of a stream fire a trigger that fills it, or if nothing above fills it."""
        if node.relation not in self.streams:
            return
        for inside in ast.walk(node):
            if isinstance(inside, ast.Insert) and inside.target == node.relation:
                raise in_a_circle(inside.target, inside.target_span, node, bool(self.filling(node.relation)))
        if not self.filling(node.relation) and node.relation not in self.catalog.broken:
            way = f"; if rows of {inline.name(node.name)} lead to it, combine both into one trigger"
            raise not_filled_yet(node.relation, node.relation_span, way)

    def filling(self, name: str) -> list[BoundTrigger]:
        """The triggers so far that insert rows into a stream or sink, in file order."""
        return [t for t in self.triggers if any(target.name == name for target in t.targets)]

    def outputs(self) -> list[Output]:
        """The sinks that triggers insert rows into, without those for which no trigger could be bound."""
        return [
            Output(name, self._rows_into(name), self.catalog.sinks[name].sink, None, span=span)
            for name, span in self.sinks.items()
            if self.filling(name)
        ]

    def warnings(self) -> list[Diagnostic]:
        """Decimal places that columns drop, and triggers that nothing reads, which therefore do not run."""
        lost = [w for t in self.tables.values() for w in t.warnings] + [w for t in self.triggers for w in t.warnings]
        return lost + [
            Diagnostic(
                "CQ0201",
                f'trigger "{t.program.name}" does not run: no query reads {_rows_of(t)}',
                t.span,
                severity="warning",
                help=(f"SELECT * FROM {inline.name((*(i.name for i in t.targets), *t.tables, t.program.name)[0])}",),
            )
            for t in self.triggers
            if not t.program.strict and not self.read & {t.program.name, *t.tables}
        ]

    # ----------------------------------------------------------------------------------------------------- relations

    def _emitted(self, trigger: BoundTrigger) -> Relation:
        name = trigger.program.name
        group = self._group(self._sharing(trigger), ())
        return relation_of(self.joints.ask(group, lambda j: j.emitted(trigger)), name, f'trigger "{name}"')

    def _rejected(self, trigger: BoundTrigger, name: str, span: Span) -> Relation:
        if REASON in trigger.stream.schema.names:
            raise two_reasons(trigger.program.name, trigger.relation, span)
        group = self._group(self._sharing(trigger), ())
        rows = self.joints.ask(group, lambda j: j.rejected(trigger))
        return relation_of(rows, name, f'rejections of trigger "{trigger.program.name}"')

    def _inserted(self, name: str, span: Span) -> Relation:
        """The rows that triggers insert into a stream."""
        by = self.filling(name)
        if not by:
            raise not_filled_yet(name, span)
        return self.streams[name].relation(self._rows_into(name), by)

    def _rows_into(self, name: str) -> LogicalNode:
        """The rows that triggers insert: by event, then in the order of the triggers in the file."""
        runs: list[tuple[TableGroup, list[BoundTrigger]]] = []
        for trigger in self.filling(name):
            group = self._group(self._sharing(trigger), ())
            if not runs or runs[-1][0] is not group:
                runs.append((group, []))
            runs[-1][1].append(trigger)
        self.stands[name] = [self.joints.ask(g, partial(Joint.inserted, name=name, by=by)) for g, by in runs]
        first, *more = self.stands[name]
        return UnionAll((first, *more)) if more else first

    def _contents(self, name: str, span: Span) -> Relation:
        """The rows of the table when all events have been processed, by key."""
        table = self.tables[name].table
        group = self._group_of(name)
        endless = next((t for t in group.triggers if not t.stream.bounded), None)
        if endless is not None:
            ways = [f"SELECT rows in the body of the trigger, and read them FROM {inline.name(endless.program.name)}"]
            if changing(group.triggers, name):
                ways.insert(0, f"read what changes in it: SELECT * FROM {inline.name(name + '_changes')}")
            raise compile_error(
                "CQ0406",
                f'the final rows of the tables are never known: stream "{endless.relation}" has no end',
                span,
                help=tuple(ways),
            )
        if not group.triggers:
            node = self.catalog.constant_rows(table.fields, table.rows, table.span)
        else:
            node = self.joints.ask(group, lambda j: j.kept(name), contents=True)
        keys = tuple(OrderKey(column(node, c), False, True) for c in table.key)
        for key in keys:
            way = f"SELECT rows in the body of a trigger, or give {name} a key without an array"
            demand_order(key.expr, f"reading {name} by a key", span, way)
        return relation_of(Sort(node, (), keys, span=table.span), name, f'table "{name}"')

    def _changed(self, name: str, span: Span) -> Relation:
        """The rows that triggers insert, change and delete in the table, in the order in which they do."""
        group = self._group_of(name)
        by = changing(group.triggers, name)
        if not by:
            raise compile_error(
                "CQ0502",
                f'no trigger changes rows of "{name}"',
                span,
                help=f"read its rows: SELECT * FROM {inline.name(name)}",
            )
        taken = next((f.name for f in self.tables[name].table.fields if f.name in {OP, TIME}), None)
        if taken is not None:
            raise compile_error(
                "CQ0409", f'changes of "{name}" add a column {taken}, but the table already has one', span,
                help="give the column of the table another name",
            )  # fmt: skip
        rows = self.joints.ask(group, lambda j: j.changed(changes_of(self.tables[name].table).name, by), changes=name)
        return relation_of(rows, f"{name}_changes", f'changes of table "{name}"')

    def _looked_up(self, name: str, node: ast.Join, left: Relation) -> Relation:
        """`left JOIN name FOR SYSTEM_TIME AS OF …`: the row of the table as left by the events up to each row."""
        group = self._group_of(name)
        asked = self.joints.asked.get(id(left.node))
        before = asked.look_up if asked is not None and asked.group is group else None
        refused = compile_error(
            "CQ0502",
            f'{left.title} depends on triggers on "{name}", so it cannot look it up',
            node.right.span,
            help=self._instead_of_look_up(name, left),
        )
        if before is None and self.joints.leads(left.node, group):
            raise refused

        def ask(look_up: BoundTrigger, width: int) -> LogicalNode:
            return self.joints.ask(group, lambda j: j.found(look_up, width), look_up)

        found = look_up(node, left, self.tables[name].table, ask, self.parameters, before)
        if found is None:
            raise refused
        return found

    def _instead_of_look_up(self, name: str, left: Relation) -> str:
        """How rows derived from triggers, or from look-ups in their tables, can be joined with a row of a table."""
        found = f"(SELECT x FROM {inline.name(name)} WHERE key = new.k)"
        before = next(self.joints.look_ups_in(left.node), None)
        if before is None:
            return f"look it up in the trigger: SELECT new.ts, {found}"
        other = f"(SELECT y FROM {inline.name(before.tables[0])} WHERE key = new.k)"
        both = f"CREATE TRIGGER l AFTER INSERT ON s SELECT new.ts, {other}, {found}"
        return f"look both up in a trigger: {both}; read FROM l"

    # -------------------------------------------------------------------------------------------------------- groups

    def _group_of(self, table: str) -> TableGroup:
        """The triggers that use a table, and those that share tables with them."""
        user = next((t for t in self.triggers if table in t.tables), None)
        return self._group(() if user is None else self._sharing(user), (table,))

    def _group(self, triggers: tuple[BoundTrigger, ...], tables: tuple[str, ...]) -> TableGroup:
        """The group of these triggers, which no further trigger can join from now on."""
        names = tuple(dict.fromkeys((*(n for t in triggers for n in t.tables), *tables)))
        created = tuple(t.program.name for t in triggers if not t.program.strict)
        key = names or created
        self.read.update((*names, *created))
        if key not in self.groups:
            kept = {n: self.tables[n].table for n in names}
            targets = tuple(dict.fromkeys(target for t in triggers for target in t.targets))
            self.groups[key] = TableGroup(triggers, kept, targets, not self.catalog.looked_up.isdisjoint(names))
        return self.groups[key]

    def _sharing(self, trigger: BoundTrigger) -> tuple[BoundTrigger, ...]:
        """The triggers that share tables with it, directly or through others, in file order."""
        tables, size = {*trigger.tables}, -1
        while size != len(tables):
            size = len(tables)
            for t in self.triggers:
                if tables & {*t.tables}:
                    tables |= {*t.tables}
        return tuple(t for t in self.triggers if t is trigger or tables & {*t.tables})


def _rows_of(trigger: BoundTrigger) -> str:
    """What a query would have to read for the trigger to run, for people."""
    filled = " or of the streams it fills" if trigger.targets else ""
    return f"its rows or those of its tables{filled}"


def fired_by_a_table(node: ast.CreateTrigger) -> CompileError:
    """CQ0502 for a trigger on a table, whose rows are not events; its changes are."""
    changes = inline.name(f"{node.relation}_changes")
    return compile_error(
        "CQ0502",
        f'"{node.relation}" is a table, and a table cannot fire a trigger',
        node.relation_span,
        help=f"fire it by what has changed: AFTER INSERT ON {changes} … WHEN (new.op = '+I')",
    )


def _too_late(what: str, span: Span) -> CompileError:
    return compile_error(
        "CQ0502",
        f"{what} must be defined before the queries that read its table",
        span,
        help="write CREATE TABLE, INSERT and CREATE TRIGGER first, then the queries",
    )
