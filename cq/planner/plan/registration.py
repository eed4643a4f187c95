"""Registration of operators: one that leaves a declaration out, or contradicts itself, is refused by its name.

`LogicalNode` in `cq.planner.plan.node` documents what an operator declares.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

from cq.entries import BadEntry, enter
from cq.planner.plan.node import LogicalNode, OpClass, StateBound, Stateless
from cq.planner.plan.source import SourceDef

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
    "revises",
    "fan_out",
    "may_drop",
    "uses_time",
    "late_alone",
    "groups",
    "begins_groups_when_due",
    "looks_up_after",
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
    "revises": _is(bool),
    "fan_out": lambda answer: answer is None or _is_count(answer),
    "may_drop": _is(bool),
    "uses_time": _is(bool),
    "late_alone": _is(bool),
    "groups": _is(LogicalNode, type(None)),
    "begins_groups_when_due": _is(bool),
    "looks_up_after": _is(tuple),
    "merges_exactly": _is(bool),
    "merge_pays": _is(bool),
    "closes_one_pane": _is(bool),
    "state": _is(StateBound),
    "cost_ns": _is_count,
    "vouched": _is(tuple),
}
"""The type of each declaration that is not a method: None and 0 are accepted only where they mean something."""

STATEFUL_ONLY = (
    *("input_keys", "state", "merges_exactly", "closes", "emits_at_end", "holds_back"),
    *("revises", "begins_groups_when_due", "looks_up_after"),
)
"""What only an operator with state can declare differently from `Stateless`."""

OVERRIDDEN = ("over", "operator", "in_detail")
"""What a class may override of `LogicalNode`. over: only `verify` uses it, and fails if it is wrong.
in_detail: only people read it."""
