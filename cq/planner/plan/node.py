"""An operator of the logical plan: a frozen node that answers every question about itself.

A node is a value, fully described by its class and fields. Code that treats all operators alike asks the node; only
code for one shape of a query (docs/architecture.md lists it) tests its class. No answer has a default, unless it
follows from others: `operator` refuses a class that leaves one out, or that overrides an answer of a base, so an
operator cannot be taken for harmless by mistake. What a node does to rows is defined in
`cq/reference/operators/<name>.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, NamedTuple, TypeVar

from cq.entries import BadEntry, enter
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


DECLARATIONS = (
    "inputs",
    "with_inputs",
    "source",
    "input_keys",
    "expressions",
    "map_expressions",
    "fails_itself",
    "pull",
    "columns_read",
    "pruned",
    "holds_back",
    "waits_on",
    "closes",
    "emits_at_end",
    "fan_out",
    "may_drop",
    "uses_time",
    "late_alone",
    "groups",
    "merges_exactly",
    "merge_pays",
    "closes_one_pane",
    "state",
    "cost_ns",
    "vouched",
    "check",
    "parameters",
    "meaning",
    "describe",
)
"""The declarations of every operator; the members of `LogicalNode` document them."""

ABOUT_TIMES = ("columns_read", "pruned", "parameters")
ABOUT_EXPRESSIONS = (*ABOUT_TIMES, "expressions", "map_expressions", "meaning")
ABOUT_CALLS = (*ABOUT_EXPRESSIONS, "fails_itself", "merges_exactly")
"""The answers that depend on every event time, every expression and every aggregate of a node."""

_ABOUT = (
    (re.compile(r"\bAggregateCall\b"), ABOUT_CALLS),
    (re.compile(r"\b(?:Expr|OrderKey)\b"), ABOUT_EXPRESSIONS),
    (re.compile(r"\b(?:TimeAttribute|Window)\b"), ABOUT_TIMES),
)
"""Types of fields, and the answers that depend on such a field; the type with the most first."""


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

    # -- state and cost -----------------------------------------------------------------------------------------------

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


NodeT = TypeVar("NodeT", bound=type[LogicalNode])
OPERATORS: dict[str, type[LogicalNode]] = {}


def operator(name: str) -> Callable[[NodeT], NodeT]:
    """Register a node class under the name its reference, codegen and Spark files share.

    Raises BadEntry, with their names, for declarations that are missing or contradict its class.
    """

    def register(cls: NodeT) -> NodeT:
        enter(OPERATORS, name, cls, "operator", _problems(cls))
        cls.operator = name
        return cls

    return register


def _problems(cls: type[LogicalNode]) -> Iterator[str]:
    op_class = getattr(cls, "op_class", None)
    missing = [n for n in (*DECLARATIONS, *sorted(set(dir(cls)) - set(DECLARATIONS))) if _is_open(getattr(cls, n))]
    missing += _without_value(cls)
    if not _sets_schema(cls):
        missing.append("schema")
    if missing:
        yield f"does not declare {', '.join(missing)}"
    if op_class not in {None, OpClass.STATELESS}:
        if issubclass(cls, Stateless):
            yield "derives from Stateless and is not"
        elif cls.input_keys is None:
            yield "keeps state and has no input_keys"
    if op_class is OpClass.STATELESS:
        stateful = [n for n in STATEFUL_ONLY if getattr(cls, n) is not getattr(Stateless, n)]
        if stateful:
            yield f"is stateless and declares {', '.join(stateful)}"
    constants = ((n, getattr(cls, n)) for n in ANSWERS)
    yield from (f"{n} is {a!r}" for n, a in constants if not _computed(a) and not ANSWERS[n](a))
    yield from (f"answers {n} again over {base.__name__}" for n, base in _answered_again(cls))
    yield from (f"adds {f} and leaves {n} to {base.__name__}" for f, n, base in _left_to_bases(cls))
    if not cls.__doc__:
        yield "has no docstring"


def _is_open(answer: object) -> bool:
    """Whether a base leaves this to the classes that derive from it."""
    return _names_in(answer) == (NotImplementedError.__name__,)


def _without_value(cls: type[LogicalNode]) -> Iterator[str]:
    """Constants of the class that a base only annotates."""
    for base in (c for c in cls.__mro__ if issubclass(c, LogicalNode)):
        named = (n for n, kind in vars(base).get("__annotations__", {}).items() if "ClassVar" in str(kind))
        yield from (n for n in named if not hasattr(cls, n))


def _left_to_bases(cls: type[LogicalNode]) -> Iterator[tuple[str, str, type]]:
    """(field, declaration, base): what a class adds, and an answer of its base that does not know about it."""
    for above in (c for c in cls.__mro__ if issubclass(c, LogicalNode)):
        added: dict[str, str] = {}  # by declaration, the first field that it depends on
        for name, kind in vars(above).get("__annotations__", {}).items():
            about = next((names for types, names in _ABOUT if types.search(str(kind))), ())
            added = dict.fromkeys(about, name) | added
        for name in DECLARATIONS if added else ():
            base = next(c for c in cls.__mro__ if name in vars(c))
            knows = base is above or not issubclass(above, base) or _asks(base, name, above, cls)
            if name in added and not knows and not _is_open(vars(base)[name]):
                yield added[name], name, base


def _asks(base: type, name: str, above: type, cls: type) -> bool:
    """Whether this answer of a base asks for something else that it leaves open, and that `above` or a class below it
    provides.

    So the answer is complete for what `above` adds: `Joined.columns_read` asks for `times_read`. What nobody provides
    is reported as missing.
    """
    asked = set(_names_in(vars(base)[name])) - set(DECLARATIONS)
    hooks = (n for n in asked if hasattr(base, n) and _is_open(getattr(base, n)))
    says = (next(c for c in cls.__mro__ if n in vars(c)) for n in hooks)
    return any(issubclass(c, above) or c is base for c in says)


def _names_in(answer: object) -> tuple[str, ...]:
    """The names used in the code of an answer; none for a constant."""
    method = answer.fget if isinstance(answer, property) else answer
    return getattr(getattr(method, "__code__", None), "co_names", ())


def _answered_again(cls: type[LogicalNode]) -> Iterator[tuple[str, type]]:
    """What it, or a base, declares again although one of its bases declares it: that answer was a default.

    A base answers what is true of all derived classes, and leaves open what some of them would add to: they use its
    part under another name. So no answer of an operator can be left out unnoticed.
    """
    said = {n for base in cls.__mro__ if issubclass(base, LogicalNode) for n in vars(base) if not n.startswith("__")}
    for name in sorted(said - {*OVERRIDDEN}):
        if name in STATEFUL_ONLY and issubclass(cls, Stateless):
            continue  # reported as "is stateless and declares"
        bases = [b for b in cls.__mro__ if name in vars(b) and not _is_open(vars(b)[name])]
        yield from ((name, base) for base in bases[1:] if issubclass(base, LogicalNode))


def complete(room: str, known: Collection[str]) -> None:
    """Raise BadEntry, with the names, unless exactly the operators of queries are registered there."""
    ours = [n for n, c in OPERATORS.items() if c.__module__.startswith("cq.planner.operators.")]
    missing = [n for n in ours if n not in known]
    if missing:
        raise BadEntry(f"{room} does not know operator {', '.join(missing)}")
    strangers = [n for n in known if n not in OPERATORS]
    if strangers:
        raise BadEntry(f"{room} knows operator {', '.join(strangers)}, and no node is registered as that (@operator)")


def _sets_schema(cls: type[LogicalNode]) -> bool:
    """Whether its `__post_init__`, or that of a base, sets the schema of its rows."""
    made = (vars(base).get("__post_init__") for base in cls.__mro__)
    return any(LogicalNode._set_schema.__name__ in m.__code__.co_names for m in made if m is not None)


def _computed(answer: object) -> bool:
    """Whether a class attribute is known only for a node: a property, or a field."""
    return hasattr(answer, "__get__")


def check_answers(node: LogicalNode) -> None:
    """Fail with an AssertionError, with the declaration's name, for an answer of an unexpected type."""
    for name, fits in ANSWERS.items():
        answer = getattr(node, name)
        assert fits(answer), f"{name} is {answer!r}"
    assert len(node.waits_on) == len(node.inputs), "as many waits as inputs"
    keys = node.input_keys
    assert (keys is None) == (node.op_class is OpClass.STATELESS), "a key without state, or state without"
    assert keys is None or len(keys) == len(node.inputs), "as many keys as inputs"


def _is(*types: type) -> Callable[[object], bool]:
    return lambda answer: isinstance(answer, types)


def _is_count(answer: object) -> bool:
    return type(answer) is int and answer >= 0


ANSWERS: dict[str, Callable[[object], bool]] = {
    "inputs": _is(tuple),
    "source": _is(SourceDef, type(None)),
    "input_keys": _is(tuple, type(None)),
    "fails_itself": _is(bool),
    "waits_on": _is(tuple),
    "closes": _is(bool),
    "emits_at_end": _is(bool),
    "fan_out": lambda answer: answer is None or _is_count(answer),
    "may_drop": _is(bool),
    "uses_time": _is(bool),
    "late_alone": _is(bool),
    "groups": _is(LogicalNode, type(None)),
    "merges_exactly": _is(bool),
    "merge_pays": _is(bool),
    "closes_one_pane": _is(bool),
    "state": _is(StateBound),
    "cost_ns": _is_count,
    "vouched": _is(tuple),
}
"""The type of each declaration that is not a method: None and 0 are accepted only where they mean something."""

STATEFUL_ONLY = ("input_keys", "state", "merges_exactly", "closes", "emits_at_end", "holds_back")
"""What only an operator with state can declare differently from `Stateless`."""

OVERRIDDEN = ("over", "operator", "in_detail")
"""What a class may override of `LogicalNode`. over: only `verify` uses it, and fails if it is wrong.
in_detail: only people read it."""
