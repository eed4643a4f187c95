"""An operator says all that others ask of it, or it is refused when its file is imported."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from planner_fixture import plan_of

from cq.codegen import operators as written
from cq.codegen.flow import CLOSE, CONSUME, COPIES_TEXT, DUE_BY_DATA, DUE_ON_GRID, FINISH, consumes
from cq.entries import BadEntry
from cq.lang.expressions import Expr
from cq.lang.schema import Schema
from cq.planner.operators.grouped import Grouped
from cq.planner.operators.joined import Joined
from cq.planner.operators.over import Over
from cq.planner.plan import node as protocol
from cq.planner.plan.node import (
    ABOUT_EXPRESSIONS,
    DECLARATIONS,
    LogicalNode,
    OpClass,
    Stateless,
    check_answers,
    complete,
    operator,
)
from cq.records import dataclass
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
    made = {"__doc__": "A probe.", "__slots__": (), "__post_init__": lambda self: self._set_schema(Schema(()))}
    return type("Probe", (base,), {**body, **made})


OPEN = {
    Stateless: "fails_itself vouched groups check meaning uses_time fan_out may_drop cost_ns",
    Grouped: "fan_out may_drop holds_back waits_on closes emits_at_end uses_time merge_pays cost_ns state check moved",
    Joined: "closes holds_back waits_on uses_time fan_out may_drop state cost_ns times_read times_moved",
}
"""What is not the same for all that keep nothing, count rows into groups, or match rows."""


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


@pytest.mark.parametrize("name", ABOUT_EXPRESSIONS)
def test_an_operator_does_not_leave_its_own_expressions_to_a_base_that_does_not_know_them(name: str) -> None:
    """Frames adds the key of a range to what it shares with Over, whose answers are complete without it."""
    answers = {n: (lambda self, *_: super) for n in ABOUT_EXPRESSIONS if n != name}
    added = {"__annotations__": {"key": "OrderKey | None"}, "__doc__": "A probe.", "__slots__": ()}
    with pytest.raises(BadEntry, match=rf"^operator probe: adds key and leaves {name} to OverCalls$"):
        operator("probe")(type("Probe", (Over,), {**answers, **added}))


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
    yield from (name for name, c in ours if not issubclass(c, protocol.Leaf))


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
