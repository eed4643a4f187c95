"""Streams that triggers fill: CREATE STREAM without WITH, and INSERT INTO it in the bodies of triggers."""

from __future__ import annotations

from collections.abc import Sequence

from cq.errors import CompileError, compile_error
from cq.grammar import ast, inline
from cq.lang.expressions import Column
from cq.planner.binding.catalog import Catalog, StreamBinder
from cq.planner.binding.declared import check_unique, declared_fields
from cq.planner.binding.scope import Relation, Visible
from cq.planner.binding.tables import is_keyed
from cq.planner.binding.triggers.body import BoundTrigger
from cq.planner.binding.triggers.outputs import RowTarget
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.transactions import Emit, every
from cq.records import dataclass, replace


def filled_streams(script: ast.Script) -> frozenset[str]:
    """The streams that are declared without a source, and into which triggers insert rows."""
    triggers = [s for s in script.statements if isinstance(s, ast.CreateTrigger)]
    into = {n.target for t in triggers for n in ast.walk(t) if isinstance(n, ast.Insert)}
    relations = (s for s in script.statements if isinstance(s, ast.CreateRelation) and s.name in into)
    return frozenset(s.name for s in relations if not s.options and not is_keyed(s))


@dataclass(frozen=True, slots=True)
class FilledStream:
    """Such a stream. target: its columns except computed ones, which are also in `shown`.

    time: the column declared as its event time, if any.
    """

    binder: StreamBinder
    target: RowTarget
    shown: list[Visible]
    time: int | None

    @staticmethod
    def declared(catalog: Catalog, node: ast.CreateRelation) -> FilledStream:
        """The stream as the statement declares it. CQ0403 if its event time is not that of the events."""
        binder = StreamBinder(catalog, node)
        binder.refuse_constraints()
        for c in node.columns:
            if isinstance(c.type, ast.RowType):
                cause, way = "triggers cannot write a row of fields", "give each field a column of its own"
                raise compile_error("CQ0501", cause, c.span, help=way)
        check_unique([(c.name, c.name_span) for c in node.columns])
        plain = [c for c in node.columns if c.computed is None]
        if not plain:
            raise compile_error(
                "CQ0302", f'"{node.name}" has no columns for the rows that triggers insert', node.name_span,
                help=f"declare them: CREATE STREAM {inline.name(node.name)} (column TYPE, …)",
            )  # fmt: skip
        target = RowTarget(node.name, declared_fields(plain))
        shown = binder.columns(target.fields)
        time, delay_us, idle_us = binder.watermark(shown)
        if time is None:
            return FilledStream(binder, target, shown, None)
        (mark,) = node.watermarks
        if not isinstance(time, Column):
            raise compile_error(
                "CQ0403", f'the event time of "{node.name}" cannot be computed: triggers insert it',
                mark.span, help="name a column that they insert the event time of their events into",
            )  # fmt: skip
        if delay_us or idle_us:
            raise compile_error(
                "CQ0403", f'"{node.name}" takes no delay: its rows are as late as the events that trigger them',
                mark.span,
                help=f"write WATERMARK FOR {inline.name(mark.column)}",
            )  # fmt: skip
        return FilledStream(binder, target, shown, time.index)

    def relation(self, rows: LogicalNode, by: Sequence[BoundTrigger]) -> Relation:
        """The stream with these rows, which these triggers insert. CQ0402 if its event time is not theirs."""
        if self.time is not None and rows.schema.time_of(self.time) is None:
            raise self.without_time(self.target.fields[self.time].name, self.time, by)
        return replace(self.binder.shown(rows, self.shown, None, self.target.name), by_triggers=True)

    def without_time(self, name: str, time: int, by: Sequence[BoundTrigger]) -> CompileError:
        """The error for a trigger that does not insert the event time of its events, or whose events have none."""
        of = f'"{name}" is the event time of "{self.target.name}"'
        for t in by:
            events, emits = t.stream.schema, (s for s in every(t.program.steps) if isinstance(s, Emit))
            if not events.times:
                cause, way = f'events of "{t.relation}" have none', "declare one there: WATERMARK FOR column"
                return compile_error("CQ0402", f"{of}, but {cause}", t.span, help=way)
            values = (s.values[time] for s in emits if s.into == self.target.name)
            if not all(isinstance(v, Column) and events.time_of(v.index) for v in values):
                its = inline.name(events.fields[events.times[0].column].name)
                cause = f'trigger "{t.program.name}" does not insert the event time of its event'
                way = f"insert new.{its} as {inline.name(name)}"
                return compile_error("CQ0402", f"{of}, but {cause}", t.span, help=way)
        cause = "its triggers share tables with a trigger whose events have none"
        way = "declare an event time for the events of all triggers on these tables"
        return compile_error("CQ0402", f"{of}, but {cause}", by[0].span, help=way)
