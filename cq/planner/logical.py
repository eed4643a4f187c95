"""The logical plan: what a query means, as a graph of frozen, typed nodes.

A node is a value: its class and its fields say everything. Sub-plans may be shared (a view used twice is one node), so
whoever walks a plan walks a graph, each node once: `nodes()` gives them inputs first. There are no names below this
point, only positions; names in nodes are for people and for the columns of results.

What a node does to rows stands in `cq/reference/operators/<name>.py`. All order is by position (serial of the source
row, instant, ordinal): one event, a row or an instant, goes through the whole graph, inputs first, before the next one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any, ClassVar, TypeVar

from cq.aggregates import Aggregate
from cq.errors import NOWHERE, Span
from cq.expressions import Expr, format_expr
from cq.schema import Schema
from cq.types import DataType


class OpClass(Enum):
    """How an operator may be spread over workers (Scaling Ordered Stream Processing, section 2)."""

    STATELESS = "stateless"  # any worker, any batch
    PARTITIONED = "partitioned"  # one worker at a time for each key
    STATEFUL = "stateful"  # one worker at a time


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate over a group: its rows where `filter` is TRUE, each distinct argument once if `distinct`."""

    function: Aggregate
    args: tuple[Expr, ...]
    type: DataType
    nullable: bool
    distinct: bool = False
    filter: Expr | None = None
    span: Span = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        inside = ", ".join(format_expr(a) for a in self.args) or "*"
        tail = f" FILTER (WHERE {format_expr(self.filter)})" if self.filter else ""
        return f"{self.function.name}({'DISTINCT ' if self.distinct else ''}{inside}){tail}"


@dataclass(frozen=True, slots=True)
class StateBound:
    """What an operator keeps, in words, and whether that is bounded however long the input is."""

    text: str
    bounded: bool = True


NO_STATE = StateBound("nothing")


@dataclass(frozen=True, slots=True)
class LogicalNode:
    """Base of all operators. Subclasses set `schema` in `__post_init__` and check themselves there."""

    span: Span = field(default=NOWHERE, compare=False, kw_only=True)
    copies: int = field(default=1, compare=False, repr=False, kw_only=True)  # operators of the query it stands for
    schema: Schema = field(init=False, compare=False, repr=False)

    operator: ClassVar[str] = ""  # the name its four files share
    op_class: ClassVar[OpClass] = OpClass.STATELESS

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        """The nodes whose rows this one reads, in the order it reads them within one event."""
        return ()

    def with_inputs(self, inputs: Sequence[LogicalNode]) -> LogicalNode:
        """The same operator over other inputs of the same width and types."""
        assert not inputs
        return self

    @property
    def key(self) -> tuple[Expr, ...] | None:
        """For a PARTITIONED operator, what decides the partition, over its first input; None when it has none."""
        return None

    @property
    def uses_time(self) -> bool:
        """Whether it is an event-time operator: it drops late rows and counts them."""
        return False

    @property
    def state(self) -> StateBound:
        return NO_STATE

    @property
    def bounded(self) -> bool:
        """Whether its output ends. Sources say so themselves."""
        return all(n.bounded for n in topological((self,)) if not n.inputs)

    @property
    def changelog(self) -> bool:
        """Whether it emits updates and deletes as well as inserts. Nothing does yet: EMIT CHANGES comes later."""
        return False

    def describe(self) -> str:
        """Its parameters as one line, for people."""
        return ""

    def _set_schema(self, schema: Schema) -> None:
        object.__setattr__(self, "schema", schema)


NodeT = TypeVar("NodeT", bound=type[LogicalNode])
OPERATORS: dict[str, type[LogicalNode]] = {}


def operator(name: str, op_class: OpClass = OpClass.STATELESS) -> Callable[[NodeT], NodeT]:
    """Register a node class under the name its reference, codegen and spark files share."""

    def register(cls: NodeT) -> NodeT:
        assert name not in OPERATORS, f"two operators named {name}"
        cls.operator, cls.op_class = name, op_class
        OPERATORS[name] = cls
        return cls

    return register


@dataclass(frozen=True, slots=True)
class Output:
    """A result of the query: rows of `node` under `name`, written to `sink` or, without one, handed to the caller."""

    name: str
    node: LogicalNode
    sink: SinkDef | None = None
    limit: int | None = None  # the first rows by position
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class SinkDef:
    """A declared sink: connector options as written, checked by the connector when the job is built."""

    name: str
    options: tuple[tuple[str, str], ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class LogicalPlan:
    """All outputs of a file; their nodes may be shared."""

    outputs: tuple[Output, ...]

    def nodes(self) -> tuple[LogicalNode, ...]:
        """Every node once, inputs before the nodes that read them, in the order one event visits them."""
        return topological(o.node for o in self.outputs)

    def map(self, change: Callable[[LogicalNode], LogicalNode]) -> LogicalPlan:
        """The plan rebuilt inputs first with `change` applied once to every node; sharing is kept."""
        done: dict[int, LogicalNode] = {}
        for node in self.nodes():
            inputs = [done[id(i)] for i in node.inputs]
            same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
            done[id(node)] = change(node if same else node.with_inputs(inputs))
        return LogicalPlan(tuple(replace(o, node=done[id(o.node)]) for o in self.outputs))


def topological(roots: Iterator[LogicalNode] | Sequence[LogicalNode]) -> tuple[LogicalNode, ...]:
    """The nodes reachable from `roots`, each once, inputs first, first root and first input first. No recursion."""
    order: list[LogicalNode] = []
    seen: set[int] = set()
    for root in roots:
        todo: list[tuple[LogicalNode, bool]] = [(root, False)]
        while todo:
            node, inputs_done = todo.pop()
            if inputs_done:
                order.append(node)
            elif id(node) not in seen:
                seen.add(id(node))
                todo.append((node, True))
                todo.extend((i, False) for i in reversed(node.inputs))
    return tuple(order)


def parts(plan: LogicalPlan) -> tuple[tuple[LogicalNode, ...], ...]:
    """The nodes of the plan in visiting order, apart where no node reads two sources together, directly or not."""
    part_of: dict[object, object] = {}

    def root(item: object) -> object:
        while part_of.setdefault(item, item) != item:
            item = part_of[item]
        return item

    nodes = plan.nodes()
    for node in nodes:
        below: list[object] = [id(i) for i in node.inputs]
        for other in below or [source_key(node)]:
            part_of[root(other)] = root(id(node))
    found: dict[object, list[LogicalNode]] = {}
    for node in nodes:
        found.setdefault(root(id(node)), []).append(node)
    return tuple(map(tuple, found.values()))


def connected(plan: LogicalPlan) -> tuple[LogicalPlan, ...]:
    """The parts as plans, by their first output: queries of their own, each with its own serials and watermark."""
    part_of = {id(n): number for number, part in enumerate(parts(plan)) for n in part}
    found: dict[int, list[Output]] = {}
    for output in plan.outputs:
        found.setdefault(part_of[id(output.node)], []).append(output)
    return tuple(LogicalPlan(tuple(outputs)) for outputs in found.values())


def source_key(node: LogicalNode) -> str:
    """What nodes that read the same source have in common."""
    return f"source {getattr(getattr(node, 'source', node), 'name', id(node))}"


def identities(plan: LogicalPlan) -> dict[int, str]:
    """`id(node)` -> a stable identity: a hash of the node's parameters and of its inputs' identities.

    Equal sub-plans have equal identities, in every process and version that keeps the node's fields; state is matched
    by it after a restart.
    """
    out: dict[int, str] = {}
    for node in plan.nodes():
        h = hashlib.sha256(node.operator.encode())
        for f in fields(node):
            value = getattr(node, f.name)
            if f.compare and not _holds_nodes(value):
                h.update(f"|{f.name}={canonical(value)}".encode())
        for i in node.inputs:
            h.update(out[id(i)].encode())
        out[id(node)] = h.hexdigest()[:24]
    return out


def _holds_nodes(value: object) -> bool:
    return isinstance(value, LogicalNode) or (
        isinstance(value, tuple) and bool(value) and all(isinstance(v, LogicalNode) for v in value)
    )


def canonical(value: Any) -> str:
    """A text that is equal for equal plan values and unaffected by spans, addresses or process."""
    if isinstance(value, tuple):
        return "(" + ",".join(canonical(v) for v in value) + ")"
    if isinstance(value, Enum):
        return value.name
    if hasattr(value, "__dataclass_fields__"):
        if "registry_key" in dir(value):
            return str(value.registry_key)
        inner = ",".join(f"{f.name}={canonical(getattr(value, f.name))}" for f in fields(value) if f.compare)
        return f"{type(value).__name__}({inner})"
    return repr(value)
