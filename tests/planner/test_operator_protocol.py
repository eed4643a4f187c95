"""An operator says all that others ask of it, or it is refused when its file is imported."""

from __future__ import annotations

from collections.abc import Iterator
from types import MemberDescriptorType

import pytest
from planner_fixture import plan_of

from cq.codegen import operators as written
from cq.codegen.flow import CLOSE, CONSUME, COPIES_TEXT, DUE_BY_DATA, DUE_ON_GRID, FINISH, consumes
from cq.entries import BadEntry
from cq.lang.expressions import Expr
from cq.lang.schema import Schema
from cq.planner.operators.grouped import Grouped
from cq.planner.operators.joined import Joined, JoinKind, UntimedJoin
from cq.planner.operators.over import OverCalls
from cq.planner.operators.window import Windowed
from cq.planner.plan import registration as protocol
from cq.planner.plan.node import Leaf, LogicalNode, OpClass, StateBound, Stateless
from cq.planner.plan.registration import DECLARATIONS, check_answers, complete, operator
from cq.records import dataclass, replace
from cq.reference.operator import Clock, RowOperator
from cq.reference.operators import OPERATORS as REFERENCE
from cq.reference.operators import operator_of
from cq.spark.operators import OPERATORS as SPARK


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "OPERATORS", dict(protocol.OPERATORS))


def probe(*, leave_out: str = "", **changes: object) -> type[LogicalNode]:
    """An operator class with every declaration but one."""
    body: dict[str, object] = {"__doc__": "A probe.", "op_class": OpClass.PARTITIONED}
    body |= {name: (lambda self, *_: None) for name in DECLARATIONS if name != leave_out}
    if leave_out != "schema":
        body["__post_init__"] = lambda self: self._set_schema(Schema(()))
    return type("Probe", (LogicalNode,), {**body, **changes, "__slots__": ()})


@pytest.mark.parametrize("name", [*DECLARATIONS, "schema"])
def test_an_operator_that_leaves_a_declaration_out_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(BadEntry, match=rf"operator probe: does not declare {name}$"):
        operator("probe")(probe(leave_out=name))


def declared(base: type[LogicalNode], *, leave_out: str = "") -> type[LogicalNode]:
    """A class that declares what its base leaves open, but one."""
    kept = [n for n in dir(base) if n != leave_out and protocol._is_open(getattr(base, n))]
    body = {name: (lambda self, *_: None) for name in kept}
    body |= {n: 0 for n in CONSTANTS if n != leave_out and not hasattr(base, n)}
    made = {"__doc__": "A probe.", "__slots__": (), "__post_init__": lambda self: self._set_schema(Schema(()))}
    return type("Probe", (base,), {**body, **made})


CONSTANTS = ("first_key", "kinds", "left_input", "right_input")
"""Names that a base annotates without a value."""

OPEN = {
    Stateless: "fails_itself vouched groups check meaning uses_time late_alone fan_out may_drop cost_ns",
    Grouped: "fan_out may_drop holds_back waits_on closes emits_at_end uses_time merge_pays cost_ns state check moved "
    "columns_read parameters meaning first_key",
    Windowed: "columns_read meaning window_kind lag_us",
    Joined: "closes holds_back waits_on uses_time fan_out may_drop state cost_ns times_read times_moved left_input "
    "kinds revises looks_up_after",
    OverCalls: "expressions map_expressions columns_read parameters meaning check moved times_after keeps_rows "
    "frame_text state cost_ns closes emits_at_end holds_back revises begins_groups_when_due",
}
"""What is not the same for all that keep nothing, count rows into groups, match rows, or compute from a partition."""


@pytest.mark.parametrize(("base", "name"), [(base, n) for base, names in OPEN.items() for n in names.split()])
def test_a_base_does_not_answer_for_an_operator_what_another_one_may_answer_differently(base, name: str) -> None:
    """AssignWindows looks at time, and keeps nothing: a default would have been right for all others by luck."""
    assert operator("probe")(declared(base)).operator == "probe"
    del protocol.OPERATORS["probe"]
    with pytest.raises(BadEntry, match=rf"^operator probe: does not declare {name}$"):
        operator("probe")(declared(base, leave_out=name))


def test_an_operator_that_answers_otherwise_than_its_base_is_refused() -> None:
    """The base's answer was a default then: the next operator would be taken for harmless."""
    answers = {"input_keys": property(lambda self: ((),)), "__doc__": "A probe.", "__slots__": ()}
    with pytest.raises(BadEntry, match=r"^operator probe: answers input_keys again over Grouped$"):
        operator("probe")(type("Probe", (declared(Grouped),), answers))


def test_an_operator_that_adds_to_what_its_base_answers_is_refused() -> None:
    """SessionAggregate added its time to the columns of Grouped: without that, a session over a view met a KeyError."""
    added = {"pruned": lambda self, *given: super().pruned(*given), "__doc__": "A probe.", "__slots__": ()}
    with pytest.raises(BadEntry, match=r"^operator probe: answers pruned again over Joined$"):
        operator("probe")(type("Probe", (declared(Joined),), added))


def adding(base: type[LogicalNode], kind: str) -> type[LogicalNode]:
    """A class that declares what its base leaves open in a class above it, and adds a field of this type."""
    added = {"__annotations__": {"own": kind}, "__doc__": "A probe.", "__slots__": ()}
    return type("Probe", (declared(base),), added)


@pytest.mark.parametrize(
    ("base", "kind", "names"),
    [
        (Grouped, "Expr | None", "expressions map_expressions columns_read pruned parameters meaning"),
        (Joined, "OrderKey", "expressions map_expressions columns_read pruned parameters meaning"),
        (OverCalls, "AggregateCall", "expressions columns_read pruned parameters fails_itself merges_exactly"),
        (UntimedJoin, "tuple[TimeAttribute, ...]", "columns_read pruned parameters"),
        (Windowed, "Window", "columns_read pruned parameters"),
    ],
)
def test_an_operator_does_not_leave_its_own_fields_to_a_base_that_does_not_know_them(base, kind, names: str) -> None:
    with pytest.raises(BadEntry) as caught:
        operator("probe")(adding(base, kind))
    for name in names.split():
        assert f"adds own and leaves {name} to " in str(caught.value)


def test_a_base_that_asks_an_operator_for_its_part_may_answer_for_what_the_operator_adds() -> None:
    """IntervalJoin adds two times, and says with times_read and times_moved what Joined must know of them."""
    own = {"__annotations__": {"time": "TimeAttribute"}, "parameters": lambda self, text: ()}
    hooks = {name: (lambda self, *_: None) for name in ("times_read", "times_moved")}
    above = declared(Joined, leave_out="parameters")
    for name in hooks:
        delattr(above, name)
    made = {**own, **hooks, "__doc__": "A probe.", "__slots__": ()}
    assert operator("probe")(type("Probe", (above,), made)).operator == "probe"


def without(cls: type[LogicalNode], name: str) -> type[LogicalNode]:
    """An operator as its file would define it without one name of its body."""
    fields = {n for n, value in vars(cls).items() if isinstance(value, MemberDescriptorType)}
    body = {n: value for n, value in vars(cls).items() if n not in {name, "operator", *fields}}
    return type(cls.__name__, cls.__bases__, {**body, "__slots__": tuple(fields - {name})})


def said_for_others(cls: type[LogicalNode]) -> Iterator[str]:
    """What the body of an operator says that code asks of any node, or that a base asks of all that derive from it."""
    bases = [c for c in cls.__mro__[1:] if issubclass(c, LogicalNode)]
    asked = {n for c in bases for n in (*vars(c), *vars(c).get("__annotations__", {}))}
    yield from (n for n in vars(cls) if n in asked and not n.startswith("__") and n not in protocol.OVERRIDDEN)


@pytest.mark.parametrize("name", sorted(protocol.OPERATORS))
def test_nothing_that_an_operator_says_can_be_left_out(name: str) -> None:
    """Its columns, keys, times, expressions and all else: without it, importing its file fails with both names.

    No answer of a base is harmless for an operator that says something else: a base answers only what is true of all
    that derive from it, so what an operator says itself no base says, and its absence is seen (`_answered_again`).
    What a base says of an operator is true if it depends on no field that the operator adds (`_left_to_bases`): fields
    with aggregates, expressions or times make `ABOUT_CALLS`, `ABOUT_EXPRESSIONS` and `ABOUT_TIMES` depend on them. A
    time is no expression: `expressions`, `map_expressions` and what a column means are the same with it. Other answers
    (`inputs`, `with_inputs`, `input_keys`, `pull`, `op_class`) are about fields of the base alone, and numbers and
    flags that an operator adds have no columns.

    Two names may be left out, both of Trigger: `over`, which only `verify` asks for, to check types, and fails without
    it, and `in_detail`, which people read.
    """
    cls = protocol.OPERATORS.pop(name)
    assert operator(name)(without(cls, "")).operator == name
    del protocol.OPERATORS[name]
    said = [*said_for_others(cls)]
    assert {"describe", "parameters", "meaning", "columns_read"} & {*said}
    for left_out in said:
        with pytest.raises(BadEntry, match=rf"^operator {name}: does not declare {left_out}$"):
            operator(name)(without(cls, left_out))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.price FROM bid AS a JOIN bid AS b ON a.auction = b.auction;",
        "SELECT price FROM bid WHERE auction IN (SELECT bidder FROM bid);",
        "SELECT a.price FROM bid AS a JOIN bid AS b ON b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' SECOND;",
        "SELECT a.price FROM bid AS a ASOF JOIN bid AS b ON a.auction = b.bidder AND a.ts >= b.ts;",
    ],
)
def test_a_join_is_of_no_kind_that_its_operator_does_not_know(query: str) -> None:
    (join,) = (n for n in plan_of(query).nodes() if isinstance(n, Joined))
    assert join.kind in join.kinds
    for kind in {*JoinKind} - join.kinds:
        with pytest.raises(AssertionError, match=f"a {kind.name} join that is no {join.operator}"):
            replace(join, kind=kind)


def test_an_operator_that_says_everything_is_registered() -> None:
    assert operator("probe")(probe()).operator == "probe"


def test_a_node_with_a_key_alone_is_not_taken_for_harmless() -> None:
    """It used to be fused into one stateless stage at four workers."""
    with pytest.raises(BadEntry, match="does not declare inputs, with_inputs, source, expressions"):

        @operator("probe")
        @dataclass(frozen=True, slots=True)
        class Keyed(LogicalNode):
            """A PARTITIONED operator as the recipe described it once."""

            op_class = OpClass.PARTITIONED

            @property
            def input_keys(self) -> tuple[tuple[Expr, ...], ...] | None:
                return ()


def test_an_operator_that_contradicts_itself_is_refused() -> None:
    stateful = {"op_class": OpClass.PARTITIONED, "__doc__": "A probe.", "__slots__": ()}
    with pytest.raises(BadEntry, match="derives from Stateless and is not"):
        operator("probe")(type("Probe", (Stateless,), stateful))
    with pytest.raises(BadEntry, match="is stateless and declares input_keys, holds_back"):
        operator("probe")(type("Probe", (Stateless,), {"input_keys": (), "holds_back": lambda self, port: True}))
    with pytest.raises(BadEntry, match="keeps state and has no input_keys"):
        operator("probe")(probe(input_keys=None))
    with pytest.raises(BadEntry, match="there is another operator of that name"):
        operator("filter")(probe())
    with pytest.raises(BadEntry, match="has no docstring"):
        operator("probe")(probe(__doc__=None))


def test_state_that_grows_names_a_way_to_bound_it() -> None:
    """`check` and a run that reaches its memory limit print it; nothing is bounded unless an operator says so."""
    with pytest.raises(TypeError, match="bounded"):
        StateBound("every row")  # type: ignore[call-arg]
    with pytest.raises(AssertionError, match="every row, and no way to bound it"):
        StateBound("every row", bounded=False)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("state", None),
        ("fan_out", -1),
        ("cost_ns", 1.5),
        ("closes", None),
        ("waits_on", None),
        ("vouched", None),
    ],
)
def test_an_answer_of_the_wrong_kind_is_refused_by_its_name(name: str, answer: object) -> None:
    with pytest.raises(BadEntry, match=f"operator probe: {name} is {answer!r}$"):
        operator("probe")(probe(**{name: answer}))


def test_an_answer_of_the_wrong_kind_is_found_in_a_plan_where_it_depends_on_the_node(monkeypatch) -> None:
    plan = plan_of("SELECT COUNT(*) AS n FROM bid GROUP BY auction EMIT FINAL;")
    (node,) = (n for n in plan.nodes() if n.operator == "aggregate")
    check_answers(node)
    for name, answer in {"cost_ns": -1, "input_keys": (), "fails_itself": None}.items():
        with monkeypatch.context() as patch:
            patch.setattr(type(node), name, property(lambda self, answer=answer: answer))
            with pytest.raises(AssertionError, match=name if name != "input_keys" else "as many keys as inputs"):
                check_answers(node)


def test_an_operator_that_does_not_say_whether_it_copies_text_is_not_taken_into_kernels() -> None:
    with pytest.raises(TypeError, match="copies_text"):
        consumes("probe")  # type: ignore[call-arg]
    assert CONSUME.keys() == COPIES_TEXT.keys() and "probe" not in CONSUME


def rooms() -> Iterator[str]:
    """Operators of queries; those of physical plans alone have no meaning of their own."""
    ours = ((n, c) for n, c in protocol.OPERATORS.items() if c.__module__.startswith("cq.planner.operators."))
    yield from (name for name, c in ours if not issubclass(c, Leaf))


@pytest.mark.parametrize("name", sorted(rooms()))
def test_every_operator_is_in_every_room(name: str) -> None:
    assert name in REFERENCE and name in SPARK and name in CONSUME


@pytest.mark.parametrize(("room", "known"), [("the reference", REFERENCE), ("Spark", SPARK)])
def test_a_room_without_an_operator_is_refused_by_its_name(room: str, known: dict[str, object]) -> None:
    """As when it is imported: with the files as they are, nothing is missing."""
    complete(room, known)
    for name in known:
        with pytest.raises(BadEntry, match=f"^{room} does not know operator {name}$"):
            complete(room, known.keys() - {name})


@pytest.mark.parametrize(("room", "known"), [("the reference", REFERENCE), ("Spark", SPARK)])
def test_a_node_that_is_not_registered_is_missed(room: str, known: dict[str, object]) -> None:
    for name in known:
        kept = protocol.OPERATORS.pop(name)
        with pytest.raises(BadEntry, match=f"^{room} knows operator {name}, and no node is registered as that"):
            complete(room, known)
        protocol.OPERATORS[name] = kept


@pytest.mark.parametrize(
    "query",
    [
        "SELECT LAG(price) OVER (PARTITION BY auction ORDER BY ts) AS l FROM bid;",
        "SELECT COUNT(*) AS n FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_end;",
        "SELECT auction FROM bid WHERE price > 1;",
        "SELECT auction FROM bid UNION ALL SELECT bidder FROM bid;",
        "SELECT COUNT(*) AS n FROM bid GROUP BY auction EMIT FINAL;",
    ],
)
def test_the_reference_defines_what_an_operator_declares(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for node in plan_of(query).nodes():
        made = operator_of(node, Clock())
        for method in ("on_row", "next_instant", "on_instant", "on_end", "place_of"):
            if made.defines(method) and not (node.operator == "scan" or made.node.op_class is OpClass.STATELESS):
                with monkeypatch.context() as patch:
                    patch.setattr(type(made), method, getattr(RowOperator, method))
                    with pytest.raises(AssertionError, match=f"the reference does not define .*{method}"):
                        operator_of(node, Clock())


@pytest.mark.parametrize("registry", [CLOSE, FINISH, DUE_BY_DATA, DUE_ON_GRID], ids=["close", "finish", "data", "grid"])
def test_a_kernel_that_leaves_out_what_its_node_declares_is_found(registry, monkeypatch) -> None:
    nodes = {n: c for n, c in protocol.OPERATORS.items() if n in rooms()}
    assert not list(written.problems(nodes))
    for name in list(registry):
        with monkeypatch.context() as patch:
            patch.delitem(registry, name)
            told = [p for p in written.problems(nodes) if p.startswith(f"operator {name}: ")]
        assert told
