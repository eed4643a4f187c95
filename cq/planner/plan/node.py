"""An operator of the logical plan: a frozen node that answers every question about itself.

A node is a value, fully described by its class and fields. Code that treats all operators alike asks the node; only
code for one shape of a query (docs/architecture.md lists it) tests its class. No answer has a default, unless it
follows from others: `operator` of `cq.planner.plan.registration` refuses a class that leaves one out, or that overrides
an answer of a base, so an operator cannot be taken for harmless by mistake. What a node does to rows is defined in
`cq/reference/operators/<name>.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, NamedTuple

from cq.errors import NOWHERE, Span
from cq.lang.expressions import Expr, can_fail
from cq.lang.schema import Field, Schema, TimeAttribute
from cq.planner.plan.calls import Change
from cq.planner.plan.source import SourceDef, may_wait, sources_of
from cq.records import dataclass, field


class OpClass(Enum):
    """How an operator may be spread over workers (Scaling Ordered Stream Processing, section 2)."""

    STATELESS = "stateless"  # any worker, any batch
    PARTITIONED = "partitioned"  # one worker at a time for each key
    STATEFUL = "stateful"  # one worker at a time


Fields = tuple[Field, ...]
Inputs = tuple[int, ...]
"""Inputs whose columns stand side by side under an expression; none: the columns of the node's source."""

Text = Callable[[Inputs, Expr | TimeAttribute], str]
"""An expression over these inputs as a text that is free of names and positions of columns."""

Indices = Mapping[int, int]
"""Index of a column before pruning -> after it."""

Pulled = tuple[tuple[int, Expr], ...]
"""(input, expression over that input's columns), one for each input a row may come from."""


def label(**options: Any) -> Any:
    """A field for people: it does not affect what the node means, and equal nodes may differ in it."""
    return field(metadata={LABEL: True}, **options)


LABEL = "label"


class Pruned(NamedTuple):
    """A node without the columns nobody reads, and the new indices of the others."""

    node: LogicalNode
    indices: Indices


@dataclass(frozen=True, slots=True)
class StateBound:
    """What an operator keeps, in words.

    bounded: whether it stays within a bound however long endless inputs run.  way: if it does not, what the user can
    do.
    """

    text: str
    bounded: bool
    way: str = ""

    def __post_init__(self) -> None:
        assert self.bounded or self.way, f"state that grows, {self.text}, and no way to bound it"


NO_STATE = StateBound("nothing", bounded=True)
USE_A_WINDOW = "use a window"


@dataclass(frozen=True, slots=True)
class LogicalNode:
    """Base of all operators. Subclasses set `schema` in `__post_init__` and validate themselves there.

    copies: how many operators of the query the node stands for.  identity: see `cq.planner.plan.identity`.
    called: the name of its rows in the text (a view, a name of WITH).
    """

    span: Span = field(default=NOWHERE, compare=False, kw_only=True)
    copies: int = field(default=1, compare=False, repr=False, kw_only=True)
    identity: str = field(default="", compare=False, repr=False, kw_only=True)
    called: str = field(default="", compare=False, repr=False, kw_only=True)
    schema: Schema = field(init=False, compare=False, repr=False)

    operator: ClassVar[str] = ""  # the name its four files share
    op_class: ClassVar[OpClass]

    # -- the graph ----------------------------------------------------------------------------------------------------

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        """The nodes whose rows this one reads, in the order it reads them within one event."""
        raise NotImplementedError

    def with_inputs(self, inputs: Sequence[LogicalNode]) -> LogicalNode:
        """The same operator over other inputs of the same width and types."""
        raise NotImplementedError

    @property
    def source(self) -> SourceDef | None:
        """The declared stream whose rows these are; None except for a scan."""
        raise NotImplementedError

    # -- expressions and columns --------------------------------------------------------------------------------------

    @property
    def input_keys(self) -> tuple[tuple[Expr, ...], ...] | None:
        """The partition key over each input, in the order of `inputs`; None for an operator without state."""
        raise NotImplementedError

    def expressions(self) -> Iterator[tuple[Expr, Inputs]]:
        """Every scalar expression of the node, in order of evaluation, and the inputs whose columns it uses."""
        raise NotImplementedError

    def map_expressions(self, change: Change) -> LogicalNode:
        """The node with `change` applied to each of its expressions."""
        raise NotImplementedError

    @property
    def fails_itself(self) -> bool:
        """Whether it may end in a data error that none of its expressions causes: a sum that does not fit."""
        raise NotImplementedError

    def pull(self, expr: Expr) -> Pulled | None:
        """The expression over an input that equals `expr`, over this node's columns, in every row caused by it; None if
        state computes it."""
        raise NotImplementedError

    def columns_read(self, needed: set[int]) -> tuple[set[int], ...]:
        """The columns of each input it reads when `needed` of its own are read, including those that it must compute
        because computing them can fail."""
        raise NotImplementedError

    def pruned(self, inputs: Sequence[Pruned], needed: set[int], read: Sequence[set[int]]) -> Pruned:
        """The node over pruned inputs, with the columns that are needed or can fail. read: of each old input, by
        anybody. Returns the node itself if nothing changes."""
        raise NotImplementedError

    # -- time and rows ------------------------------------------------------------------------------------------------

    def holds_back(self, port: int) -> bool:
        """Whether rows of this input never cause rows of the same event."""
        raise NotImplementedError

    @property
    def waits_on(self) -> tuple[TimeAttribute | None, ...]:
        """For each input, the event time that the watermark must reach before a row is processed; None: at once."""
        raise NotImplementedError

    @property
    def closes(self) -> bool:
        """Whether it has its own closing times: instants at which it emits rows that no row of that event caused."""
        raise NotImplementedError

    @property
    def emits_at_end(self) -> bool:
        """Whether it emits rows when all inputs have ended, after the last instant."""
        raise NotImplementedError

    @property
    def revises(self) -> bool:
        """Whether its results have earlier versions, which EMIT CHANGES would show: a count so far, the first rows so
        far, no match so far.

        A row that waits for the watermark to show that it has no match has none: it is emitted once, at that time.
        """
        raise NotImplementedError

    @property
    def fan_out(self) -> int | None:
        """The most rows that one row causes within its event; None if not known beforehand.

        For a leaf: the most rows that it gets in one event.
        """
        raise NotImplementedError

    @property
    def may_drop(self) -> bool:
        """Whether a row that is not late may cause no row at all."""
        raise NotImplementedError

    @property
    def uses_time(self) -> bool:
        """Whether it is an event-time operator: it drops late rows and counts them."""
        raise NotImplementedError

    @property
    def late_alone(self) -> bool:
        """Whether it passes late rows, and no others."""
        raise NotImplementedError

    @property
    def groups(self) -> LogicalNode | None:
        """The operator whose groups its rows are results of, one group each: errors in such rows name the group."""
        raise NotImplementedError

    @property
    def begins_groups_when_due(self) -> bool:
        """Whether rows that waited in it begin groups whose order shows: rows that are due together share one closing
        time."""
        raise NotImplementedError

    # -- state and cost -----------------------------------------------------------------------------------------------

    @property
    def looks_up_after(self) -> tuple[int, ...]:
        """Inputs of which the end of any one is enough: from then on it only looks rows up, and neither keeps more nor
        changes what it keeps."""
        raise NotImplementedError

    @property
    def merges_exactly(self) -> bool:
        """Whether states over parts of a partition's rows can be merged into the state over all of them."""
        raise NotImplementedError

    @property
    def merge_pays(self) -> bool:
        """Whether merging such states costs less than filling a single one."""
        raise NotImplementedError

    @property
    def closes_one_pane(self) -> bool:
        """Whether the groups it emits together belong to one pane: then states over parts of the keys need no
        merging."""
        raise NotImplementedError

    @property
    def state(self) -> StateBound:
        """What it keeps, and whether that is bounded however long the input is."""
        raise NotImplementedError

    @property
    def cost_ns(self) -> int:
        """About how long it keeps a worker busy per row, without its expressions."""
        raise NotImplementedError

    # -- for checks and people ----------------------------------------------------------------------------------------

    @property
    def vouched(self) -> tuple[Expr, ...]:
        """Expressions known not to be NULL although their form does not show it: rows without an event time are not
        accepted."""
        raise NotImplementedError

    def check(self) -> None:
        """Fail with an AssertionError where the node does not fit its inputs."""
        raise NotImplementedError

    def parameters(self, text: Text) -> tuple[object, ...]:
        """What makes it this operator and no other, without names and positions of columns."""
        raise NotImplementedError

    def meaning(self, column: int, text: Text) -> str:
        """The meaning of an output column that `pull` finds in no single input."""
        raise NotImplementedError

    def describe(self) -> str:
        """Its parameters as one line, for people."""
        raise NotImplementedError

    def in_detail(self) -> tuple[str, ...]:
        """Further lines about it, for people who ask for everything; for most operators the line of `describe` is
        enough."""
        return ()

    def over(self, inputs: Inputs) -> Fields:
        """The columns of these inputs, side by side."""
        if not inputs:
            assert self.source is not None, "an expression over nothing"
            return self.source.fields
        return tuple(f for n in inputs for f in self.inputs[n].schema.fields)

    # -- what follows from the above ----------------------------------------------------------------------------------

    @property
    def keeps_state(self) -> bool:
        return self.op_class is not OpClass.STATELESS

    @property
    def bounded(self) -> bool:
        """Whether its output ends: that of every leaf below does."""
        return all(n.ends for n in topological((self,)) if isinstance(n, Leaf))

    @property
    def can_fail(self) -> bool:
        """Whether the node itself may end in a data error."""
        return self.fails_itself or any(can_fail(e) for e, _ in self.expressions())

    def emits_when_due(self, waiting: bool) -> bool:
        """Whether it emits rows at instants, not only for a row of its input. waiting: rows can come before the
        watermark reaches their time."""
        return self.closes or (waiting and any(t is not None for t in self.waits_on))

    @property
    def depends_on_time(self) -> bool:
        """Whether its output depends on the event times of rows: when they come, or which of them are late."""
        return self.uses_time or self.late_alone or any(t is not None for t in self.waits_on)

    def _set_schema(self, schema: Schema) -> None:
        object.__setattr__(self, "schema", schema)


@dataclass(frozen=True, slots=True)
class Stateless(LogicalNode):
    """An operator that keeps nothing and processes every row alone, when it comes."""

    op_class: ClassVar[OpClass] = OpClass.STATELESS
    input_keys = None
    closes = False
    emits_at_end = False
    revises = False
    begins_groups_when_due = False
    looks_up_after = ()
    merges_exactly = False
    merge_pays = False
    closes_one_pane = False
    state = NO_STATE

    def holds_back(self, port: int) -> bool:
        return False

    @property
    def waits_on(self) -> tuple[TimeAttribute | None, ...]:
        return (None,) * len(self.inputs)


@dataclass(frozen=True, slots=True)
class Leaf(Stateless):
    """A stateless node without inputs: its rows come from outside the plan."""

    groups = None

    @property
    def ends(self) -> bool:
        """Whether its rows end."""
        raise NotImplementedError

    @property
    def inputs(self) -> tuple[LogicalNode, ...]:
        return ()

    def with_inputs(self, inputs: Sequence[LogicalNode]) -> LogicalNode:
        assert not inputs, "a leaf with inputs"
        return self

    def pull(self, expr: Expr) -> Pulled | None:
        return None

    def columns_read(self, needed: set[int]) -> tuple[set[int], ...]:
        return ()


def topological(roots: Iterable[LogicalNode]) -> tuple[LogicalNode, ...]:
    """The nodes reachable from `roots`, each once, inputs first, first root and first input first. Not recursive."""
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


def rows_may_wait(nodes: Iterable[LogicalNode]) -> bool:
    """Whether in a plan of these nodes a row that is not late can come before the time for which it waits.

    Either some time comes before the watermark reaches it (`may_wait`), or an operator waits for a time that lags
    behind it or is ahead of it.
    """
    plan = tuple(nodes)
    return may_wait(sources_of(plan)) or any(t.waited_for for n in plan for t in n.waits_on if t is not None)
