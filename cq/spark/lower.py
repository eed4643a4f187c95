"""Lowering: the bound plan as Spark SQL text over one temp view for each source, and for each trigger.

`lower` returns a text for every output, `lower_triggers` one for the events of every trigger. Operator number 3 is the
CTE n3, after its steps (n3_timed, …) if it has any; operators with several readers appear once. `cq.spark.position`
explains the columns that begin with `_`.

Where Spark may differ: it adds DOUBLEs in any order; it computes only what reaches an output, so a data error in a
column nobody reads, or beyond a LIMIT, may or may not happen; of several data errors it may report any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cq.errors import Span, compile_error, printable
from cq.lang.schema import Schema
from cq.planner.operators import Trigger
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import LogicalNode, topological
from cq.records import dataclass
from cq.spark.context import Context, Replayed
from cq.spark.ingest import parts, to_result
from cq.spark.operators import OPERATORS
from cq.spark.position import CteRows, select_list

MAX_EXPANDED: Final = 400  # Spark inlines a CTE wherever it is named; planning takes seconds at a few hundred operators


@dataclass(frozen=True, slots=True)
class SparkQuery:
    """One output. text: its SQL, with parameters; constants: their values.  schema: the meaning of the columns c0, c1,
    …."""

    name: str
    text: str
    constants: Mapping[str, object]
    schema: Schema

    def __str__(self) -> str:
        """The text for people: with column names and constants filled in."""
        shown = [f"-- c{i}: {printable(str(f))}" for i, f in enumerate(self.schema.fields)]
        shown += [f"-- :{name} = {printable(repr(value))}" for name, value in self.constants.items()]
        return "\n".join([self.text, *shown])


@dataclass(frozen=True, slots=True)
class Replay:
    """A trigger: its view is the output of the serial loop over its events. events: with their positions, in order."""

    node: Trigger
    rows: Replayed
    events: SparkQuery


def lower(plan: LogicalPlan, prefix: str = "", ordered: bool = False) -> tuple[SparkQuery, ...]:
    """The text of every output. CompileError CQ0901 when Spark cannot run one.

    prefix: of the names of the views, for sources (`cq.spark.context.view_of`) and triggers.  ordered: whether rows
    must come in the order of their positions; otherwise they come in any order.
    """
    lowering = _Lowering(plan, prefix)
    return tuple(lowering.query(o.name, o.node, o.span, ordered or o.limit is not None, o.limit) for o in plan.outputs)


def lower_triggers(plan: LogicalPlan, prefix: str = "") -> tuple[Replay, ...]:
    """The triggers of a plan; those whose views another one's text reads come before it."""
    return _Lowering(plan, prefix).replays


class _Lowering:
    """The texts of a plan."""

    def __init__(self, plan: LogicalPlan, prefix: str) -> None:
        self._prefix = prefix
        self._waiting = {id(n) for part in parts(plan) if part.waits for n in part.nodes}
        self._replayed: dict[int, Replayed] = {}
        found = []
        for number, node in enumerate(n for n in plan.nodes() if isinstance(n, Trigger)):
            text, rows, context = self._rows(node.input, node.span)
            text += f"\nselect {select_list(_results(rows, node.input))}, {rows.position}\n  from {rows.name}"
            text += "\norder by _w, _s, _o"
            name = f"{prefix}trigger_{number}"
            replayed = self._replayed[id(node)] = Replayed(name, rows.late, rows.strict)
            events = SparkQuery(f"events of {name}", text, context.expressions.constants.values, node.input.schema)
            found.append(Replay(node, replayed, events))
        self.replays = tuple(found)

    def query(self, name: str, node: LogicalNode, span: Span, ordered: bool, limit: int | None) -> SparkQuery:
        """The rows of an operator as a result."""
        text, rows, context = self._rows(node, span)
        text += f"\nselect {select_list(_results(rows, node))} from {rows.name}"
        if ordered:
            text += "\norder by _w, _s, _o"
        if limit is not None:
            text += f"\nlimit {int(limit)}"
        return SparkQuery(name, text, context.expressions.constants.values, node.schema)

    def _rows(self, root: LogicalNode, span: Span) -> tuple[str, CteRows, Context]:
        """The CTEs up to an operator, and its own."""
        nodes = self._reached(root)
        self._demand_small(nodes, span)
        context = Context(self._prefix, self._replayed)
        done: dict[int, CteRows] = {}
        ctes = []
        for number, node in enumerate(nodes):
            context.name, context.waits, context.steps = f"n{number}", id(node) in self._waiting, {}
            below = tuple(done[id(i)] for i in self._inputs(node))
            lowered = OPERATORS[node.operator](node, below, context)
            strict = lowered.late and self._strict(node, below)
            done[id(node)] = rows = CteRows(context.name, len(node.schema), lowered.late, strict)
            place = f", line {node.span.line}" if node.span.line else ""
            steps = {**context.steps, rows.name: lowered.text}
            ctes.append(f"-- {node.operator}{place}\n" + ",\n".join(f"{n} as (\n  {t}\n)" for n, t in steps.items()))
        return "with\n" + ",\n".join(ctes), rows, context

    def _inputs(self, node: LogicalNode) -> tuple[LogicalNode, ...]:
        """What the text of an operator reads: for a trigger, a view."""
        return () if id(node) in self._replayed else node.inputs

    def _reached(self, root: LogicalNode) -> tuple[LogicalNode, ...]:
        """The operators of one text, inputs first."""
        kept, todo = {id(root)}, [root]
        while todo:
            new = [i for i in self._inputs(todo.pop()) if id(i) not in kept]
            kept.update(id(i) for i in new)
            todo += new
        return tuple(n for n in topological([root]) if id(n) in kept)

    def _strict(self, node: LogicalNode, below: tuple[CteRows, ...]) -> bool:
        """Whether a late row of a source that says `late = 'fail'` may be among the node's rows."""
        if id(node) in self._replayed:
            return self._replayed[id(node)].strict
        return node.source.strict if node.source is not None else any(r.strict for r in below)

    def _demand_small(self, nodes: tuple[LogicalNode, ...], span: Span) -> None:
        """Refuse a plan that would be too large once every shared sub-plan is inlined wherever it is read."""
        size: dict[int, int] = {}
        for node in nodes:
            size[id(node)] = 1 + sum(size[id(i)] for i in self._inputs(node))
        if size[id(nodes[-1])] > MAX_EXPANDED:
            raise compile_error(
                "CQ0901",
                f"Spark would run {size[id(nodes[-1])]} operators for one result, more than {MAX_EXPANDED}, "
                "because it computes a view again for each query that reads it",
                span,
                help="read each view fewer times, or use the native engine",
            )


def _results(rows: CteRows, node: LogicalNode) -> list[str]:
    return [to_result(c, t) for c, t in zip(rows.columns, node.schema.types, strict=True)]
