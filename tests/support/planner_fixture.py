"""Queries for the planner's tests: streams to bind over, and the shortest ways from text to plans."""

from __future__ import annotations

from collections.abc import Mapping

from cq import connectors
from cq.errors import SourceText
from cq.grammar.parser import parse
from cq.lang.schema import Field
from cq.planner.binding.binder import BoundScript, bind
from cq.planner.binding.catalog import Environment
from cq.planner.operators import Over, Project
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import LogicalNode, topological
from cq.planner.plan.verify import verify

BIDS = """CREATE STREAM bid (
  auction BIGINT, bidder BIGINT NOT NULL, price DOUBLE, amount DECIMAL(12,2), item VARCHAR, ok BOOLEAN, ts TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (connector = 'file', path = 'bid.csv');
CREATE STREAM live (k BIGINT, v BIGINT, ts TIMESTAMP, WATERMARK FOR ts)
WITH (connector = 'generator', workload = 'bids');
CREATE STREAM plain (k BIGINT, v BIGINT, ts TIMESTAMP) WITH (connector = 'file', path = 'plain.csv');
"""


def infer(name: str, options: Mapping[str, str]) -> tuple[Field, ...]:
    """The columns that the connectors report."""
    return connectors.infer(options)


def bound(text: str, environment: Environment | None = None) -> BoundScript:
    """The script bound over the streams above, every plan of it verified. Raises CompileError with pictures."""
    source = SourceText("q.cq", BIDS + text)
    script = bind(parse(source), environment or Environment(infer=infer))
    verify(script.plan)
    return script


def plan_of(text: str, environment: Environment | None = None) -> LogicalPlan:
    return bound(text, environment).plan


def nodes_of(text: str) -> list[str]:
    """The operators of the first output, inputs first."""
    return [n.operator for n in topological([plan_of(text).outputs[0].node])]


def top(text: str) -> LogicalNode:
    """The node of the first output."""
    return plan_of(text).outputs[0].node


def columns(text: str) -> str:
    """The columns of the first output with their types."""
    return str(top(text).schema)


def identity(text: str) -> str:
    """The stable identity of the first output."""
    return top(text).identity


def described(node: LogicalNode) -> str:
    """A plan as indented lines, for goldens."""
    lines = []
    todo = [(node, 0)]
    while todo:
        n, depth = todo.pop()
        times = ",".join(n.schema.names[t.column] for t in n.schema.times)
        until = f" until {n.schema.names[n.until.column]}" if isinstance(n, Over) and n.until is not None else ""
        shown = f"{n.operator} {n.describe()}{until}{'  [' + times + ']' if times else ''}"
        lines.append(f"{'  ' * depth}{shown}".rstrip())
        todo += [(i, depth + 1) for i in reversed(n.inputs)]
    return "\n".join(lines)


def expression(text: str, over: str = "bid") -> str:
    """A scalar expression bound over a stream, as the projection shows it."""
    node = top(f"SELECT {text} AS x FROM {over};")
    assert isinstance(node, Project)
    return node.describe().removesuffix(" AS x")
