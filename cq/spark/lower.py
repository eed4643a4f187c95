"""Lowering: the bound plan as Spark SQL text over one temp view for each source.

`lower` gives a text for every output. Operator number 3 is the CTE n3, behind its steps (n3_timed, …) if it has any;
operators that several others read stand once. What the columns that begin with `_` mean is said in `cq.spark.position`.

Where Spark may differ: it adds DOUBLEs in any order; it computes only what reaches an output, so that a data error in a
column nobody reads, or behind a LIMIT, may or may not happen; of several data errors it may meet any first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from cq.errors import compile_error, printable
from cq.lang.schema import Schema
from cq.planner.plan.logical import LogicalPlan, Output
from cq.planner.plan.node import LogicalNode, topological
from cq.planner.plan.source import SourceDef, sources_of
from cq.records import dataclass
from cq.spark.context import Context
from cq.spark.ingest import parts, to_result
from cq.spark.operators import OPERATORS
from cq.spark.position import Rows, select_list

MAX_EXPANDED: Final = 400  # Spark puts a CTE in wherever it is named; planning takes seconds at a few hundred operators


@dataclass(frozen=True, slots=True)
class SparkQuery:
    """One output. text: its SQL, with parameters; constants: their values.  schema: what the columns c0, c1, … are."""

    name: str
    text: str
    constants: Mapping[str, object]
    schema: Schema

    def __str__(self) -> str:
        """The text for people: with the names of the columns and the values of the constants."""
        shown = [f"-- c{i}: {printable(str(f))}" for i, f in enumerate(self.schema.fields)]
        shown += [f"-- :{name} = {printable(repr(value))}" for name, value in self.constants.items()]
        return "\n".join([self.text, *shown])


def lower(plan: LogicalPlan, views: Mapping[str, str] | None = None, ordered: bool = False) -> tuple[SparkQuery, ...]:
    """The text of every output. CompileError CQ0901 when Spark cannot run one.

    views: the temp view of each source, by the source's name; by default `source_0`, `source_1`, … by position.
    ordered: whether rows are to come in the order of their positions; without it they come in any order.
    """
    sources = sources_of(plan.nodes())
    names = views if views is not None else default_views(sources)
    waiting = {id(n) for part in parts(plan) if part.waits for n in part.nodes}
    return tuple(_lower_output(o, names, waiting, ordered) for o in plan.outputs)


def default_views(sources: Sequence[SourceDef]) -> dict[str, str]:
    """A view name for each source."""
    return {s.name: f"source_{s.position}" for s in sources}


def _lower_output(output: Output, views: Mapping[str, str], waiting: set[int], ordered: bool) -> SparkQuery:
    nodes = topological([output.node])
    _demand_small(nodes, output)
    context = Context(views)
    done: dict[int, Rows] = {}
    ctes = []
    for number, node in enumerate(nodes):
        context.name, context.waits, context.steps = f"n{number}", id(node) in waiting, {}
        lowered = OPERATORS[node.operator](node, tuple(done[id(i)] for i in node.inputs), context)
        rows = done[id(node)] = Rows(context.name, len(node.schema), lowered.late, lowered.late and _strict(node, done))
        place = f", line {node.span.line}" if node.span.line else ""
        steps = {**context.steps, rows.name: lowered.text}
        ctes.append(f"-- {node.operator}{place}\n" + ",\n".join(f"{n} as (\n  {text}\n)" for n, text in steps.items()))
    rows = done[id(output.node)]
    columns = [to_result(c, t) for c, t in zip(rows.columns, output.node.schema.types, strict=True)]
    with_clause = ",\n".join(ctes)
    text = f"with\n{with_clause}\nselect {select_list(columns)} from {rows.name}"
    if ordered or output.limit is not None:
        text += "\norder by _w, _s, _o"
    if output.limit is not None:
        text += f"\nlimit {int(output.limit)}"
    return SparkQuery(output.name, text, context.expressions.constants.values, output.node.schema)


def _strict(node: LogicalNode, done: Mapping[int, Rows]) -> bool:
    """Whether a late row of a source that says `late = 'fail'` may be among the node's rows."""
    if node.source is not None:
        return node.source.strict
    return any(done[id(i)].strict for i in node.inputs)


def _demand_small(nodes: tuple[LogicalNode, ...], output: Output) -> None:
    """Refuse a plan that would be too large once every shared sub-plan is put in wherever it is read."""
    size: dict[int, int] = {}
    for node in nodes:
        size[id(node)] = 1 + sum(size[id(i)] for i in node.inputs)
    if size[id(output.node)] > MAX_EXPANDED:
        raise compile_error(
            "CQ0901",
            f"Spark would run {size[id(output.node)]} operators for {output.name}, more than {MAX_EXPANDED}, "
            "because it computes a view again for each query that reads it",
            output.span,
            help="read each view fewer times, or use the native engine",
        )
