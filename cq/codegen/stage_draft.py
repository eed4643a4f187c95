"""A stage being written: the plan, and the code and state made from it so far.

Operators ask it for words of the state (`slot`), for constants and for what others need to know of their code.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from cq.codegen.values import Constants, Sites
from cq.codegen.writer import Writer, expr
from cq.errors import compile_error
from cq.planner.physical.branches import sees, turns
from cq.planner.physical.stages import Stage
from cq.planner.physical.transactions import transactions_of
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import LogicalNode
from cq.records import dataclass, field, replace
from cq.runtime.layout import abi
from cq.runtime.layout.pipeline import Counter, Grid, Groups, Met, PortSpec, Rejections, Slot, TableShape
from cq.runtime.layout.words import Word

LAST_STRING_WORD = 62  # of an entry: the places of strings and of arrivals are a word of bits each (TABLE_STRINGS)


@dataclass(frozen=True, slots=True)
class Closer:
    """A function of the stage that serves closing times: `next_end` computes the next one from the state.

    gathers: it takes rows gathered in this event, and has the arguments of cq/codegen/input_order.py.
    """

    function: str
    next_end: ast.expr
    order: int
    gathers: bool = False


@dataclass(frozen=True, slots=True)
class DueWord:
    """Where a container keeps the time when something in it is next due; NEVER if nothing is.

    It may be too early: serving a time at which nothing is due does nothing.
    """

    slot: Slot
    word: int

    @property
    def next_end(self) -> ast.expr:
        """The time, from the state."""
        return expr("ld_i64(ld_i64(state, W), NEXT)", W=self.slot.offset, NEXT=self.word)


@dataclass(slots=True)
class StageDraft:
    """See the module docstring.

    passes_watermarks: its rows carry their watermarks to the next stage.
    uses_step_bytes: some of its expressions take bytes that live for one step.
    due: words of closing times that depend on data: checked before rows proceed.
    columns: port -> column of the plan -> place in its batch.
    """

    planned: Stage
    ports: tuple[PortSpec, ...]
    passes_watermarks: bool
    uses_step_bytes: bool
    due: tuple[DueWord, ...] = ()  # the state is not laid out yet
    columns: dict[int, dict[int, int]] = field(default_factory=dict)
    writer: Writer = field(default_factory=Writer)
    constants: Constants = field(default_factory=Constants)
    sites: Sites = field(default_factory=Sites)
    slots: list[Slot] = field(default_factory=list)
    grids: list[Grid] = field(default_factory=list)
    closers: list[Closer] = field(default_factory=list)
    groups: list[Groups | Met] = field(default_factory=list)
    watermark: int | None = None  # the word of the watermark last served: not requested yet
    rejections: dict[int, Rejections] = field(default_factory=dict)  # of triggers, by their word
    counters: dict[int, Counter] = field(default_factory=dict)  # of operators, by id; none where rows are not counted
    # ids of operators whose rows a function takes on (passing.py): at the end, and while rows are taken
    passing_at_end: frozenset[int] = frozenset()
    passing_rows: frozenset[int] = frozenset()
    passed: dict[str, LogicalNode] = field(default_factory=dict)  # those of which it is called, by its name
    prefix: set[int] = field(default_factory=set)  # operators that run in several branches
    scratch: dict[tuple[int, str], int] = field(default_factory=dict)  # words of a node that are not slots
    leaves: tuple[LogicalNode, ...] = field(init=False)  # nodes whose rows come from outside, by port
    order: dict[int, int] = field(init=False)  # of operators in the plan, by id
    readers: dict[int, list[tuple[LogicalNode, int]]] = field(default_factory=dict)
    outputs: dict[int, list[int]] = field(default_factory=dict)
    gathered: dict[int, LogicalNode] = field(init=False)  # cq/codegen/input_order.py; by id, plan order
    chained: frozenset[int] = field(init=False)  # ids of operators whose transactions run before the kernel
    sees: dict[int, frozenset[int]] = field(init=False)  # where there are branches: whose rows a node sees
    turns: dict[int, int] = field(init=False)  # and how often a row of a node reaches operators of branches
    _next_word: int = abi.STATE_FIRST_FREE
    _slot_of: dict[tuple[int, str], Slot] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nodes, planned = self.plan.nodes(), self.planned
        self.leaves = planned.leaves
        self.order = {id(n): i for i, n in enumerate(nodes)}
        for node in nodes:
            for port, source in enumerate(node.inputs):
                self.readers.setdefault(id(source), []).append((node, port))
        for number, output in enumerate(self.plan.outputs):
            self.outputs.setdefault(id(output.node), []).append(number)
        self.gathered = {id(n): n for n in planned.gathered}
        self.chained = frozenset(id(n) for n in transactions_of(self.plan) if planned.way.traits.together)
        branched = len(planned.branches) > 1
        self.sees = sees(self.plan, planned.branches) if branched else {}
        self.turns = turns(self.plan) if branched else {}
        for port, leaf in enumerate(self.leaves):
            if leaf.source is None:  # a stage's rows have its plan's columns; a source's, those that are read
                self.columns[port] = {c: c for c in range(len(leaf.schema))}

    @property
    def plan(self) -> LogicalPlan:
        return self.planned.plan

    @property
    def lanes(self) -> bool:
        """Whether the kernel runs as one lane of several: rows by selection, positions on outputs."""
        return self.planned.way.traits.lanes

    @property
    def by_key(self) -> bool:
        """Whether a worker may take only the rows of a ticket that have its part's keys: those of a selection."""
        return self.planned.by_key is not None

    @property
    def asks(self) -> bool:
        """Whether its transactions request rows one by one, instead of being linked in chains beforehand."""
        return bool(self.chained) and self.planned.way.traits.asks

    @property
    def lanes_of_ports(self) -> bool:
        """Whether its lanes have rows of several ports, which share segments (cq/runtime/flow/shares.py)."""
        return self.lanes and len(self.leaves) > 1

    @property
    def mixed(self) -> bool:
        """Whether one function takes the rows of all inputs, including segments with rows of both sources.

        One loop checks before each row what is due; if nothing can be, each input has a faster loop of its own.
        """
        return self.planned.mixed and (self.lanes_of_ports or bool(self.due))

    def slot(self, node: LogicalNode, name: str, make: Callable[[int], Slot]) -> Slot:
        """The described state word `name` of a node, made on first request."""
        key = (id(node), name)
        if key not in self._slot_of:
            made = make(Word(self._next_word, f"STATE_{name.upper()}{self._next_word}"))
            if made.container:
                said = node.operator.replace("_", " ")
                way = "" if node.state.bounded else node.state.way
                made = replace(made, operator=said, line=node.span.line, column=node.span.column, way=way)
            if any(word > LAST_STRING_WORD for s in made.shapes for word in (*s.string_words, *s.arrival_words)):
                raise compile_error(
                    "CQ0502", "this operator keeps too many text values for each row or group", node.span,
                    help="select fewer text columns, take MIN, MAX, FIRST and LAST of fewer columns, or use a smaller "
                    "offset in LAG",
                )  # fmt: skip
            self._next_word += 1
            self.slots.append(made)
            self._slot_of[key] = made
        return self._slot_of[key]

    def table_slot(self, node: LogicalNode, name: str, shape: TableShape) -> Slot:
        """The state word of a node's table."""
        kind = "open_table" if shape.until_word else "table"
        return self.slot(node, name, lambda offset: Slot(name, offset, kind, node.identity, shapes=(shape,)))

    def scratch_words(self, count: int, name: str) -> int:
        """The first of `count` words of the state that hold nothing between steps: they are not slots."""
        first = Word(self._next_word, f"STATE_{name}{self._next_word}")
        self._next_word += count
        return first

    def count_rows(self, prefix: set[int]) -> None:
        """Give every operator of the stage counter words. prefix: the ids of those that run in several branches."""
        self.prefix = prefix
        for node in self.plan.nodes():
            self.counters[id(node)] = Counter(self.scratch_words(1, "GIVEN"), self.scratch_words(1, "LATE"))

    def watermark_word(self) -> int:
        """The state word that holds the watermark last served. It is not a slot: every row and every instant that needs
        it has set it."""
        if self.watermark is None:
            self.watermark = Word(self._next_word, "STATE_WATERMARK")
            self._next_word += 1
        return self.watermark

    @property
    def state_words(self) -> int:
        return self._next_word
