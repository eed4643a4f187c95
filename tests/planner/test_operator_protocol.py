"""An operator says all that others ask of it, or it is refused when its file is imported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from planner_fixture import plan_of

from cq.codegen import operators as written
from cq.codegen.flow import CLOSE, CONSUME, DUE_BY_DATA, DUE_ON_GRID, FINISH
from cq.lang.expressions import Expr
from cq.planner.plan import node as protocol
from cq.planner.plan.node import DECLARATIONS, BadOperator, LogicalNode, OpClass, Stateless, operator
from cq.reference.operators import OPERATORS as REFERENCE
from cq.spark.operators import OPERATORS as SPARK

DECLARED: dict[str, Any] = {name: getattr(protocol.LogicalNode, name) for name in DECLARATIONS}


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "OPERATORS", dict(protocol.OPERATORS))


def probe(*, leave_out: str = "", **changes: object) -> type[LogicalNode]:
    """An operator class with every declaration but one."""
    body: dict[str, object] = {"__doc__": "A probe.", "op_class": OpClass.PARTITIONED}
    body |= {name: (lambda self, *_: None) for name in DECLARATIONS if name != leave_out}
    return type("Probe", (LogicalNode,), {**body, **changes, "__slots__": ()})


@pytest.mark.parametrize("name", DECLARATIONS)
def test_an_operator_that_leaves_a_declaration_out_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(BadOperator, match=rf"operator probe: does not declare {name}$"):
        operator("probe")(probe(leave_out=name))


def test_an_operator_that_says_everything_is_registered() -> None:
    assert operator("probe")(probe()).operator == "probe"


def test_a_node_with_a_key_alone_is_not_taken_for_harmless() -> None:
    """It used to be fused into one stateless stage at four workers."""
    with pytest.raises(BadOperator, match="does not declare inputs, with_inputs, source, key_columns"):

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
    with pytest.raises(BadOperator, match="derives from Stateless and is not"):
        operator("probe")(type("Probe", (Stateless,), stateful))
    with pytest.raises(BadOperator, match="is stateless and declares input_keys, holds_back"):
        operator("probe")(type("Probe", (Stateless,), {"input_keys": (), "holds_back": lambda self, port: True}))
    with pytest.raises(BadOperator, match="there is another operator of that name"):
        operator("filter")(probe())
    with pytest.raises(BadOperator, match="has no docstring"):
        operator("probe")(probe(__doc__=None))


def rooms() -> Iterator[str]:
    yield from (name for name in protocol.OPERATORS if name not in {"stage_input", "rows_of", "scan"})


@pytest.mark.parametrize("name", sorted(rooms()))
def test_every_operator_is_in_every_room(name: str) -> None:
    assert name in REFERENCE and name in SPARK and name in CONSUME


@pytest.mark.parametrize(
    "query",
    [
        "SELECT LAG(price) OVER (PARTITION BY auction ORDER BY ts) AS l FROM bid;",
        "SELECT COUNT(*) AS n FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_end;",
        "SELECT auction FROM bid WHERE price > 1;",
        "SELECT auction FROM bid UNION ALL SELECT bidder FROM bid;",
    ],
)
def test_the_reference_has_instants_where_an_operator_says_it_does(query: str) -> None:
    from cq.reference.operator import Clock

    for node in plan_of(query).nodes():
        made = REFERENCE[node.operator](node, Clock())
        assert made.timed >= node.emits_when_due(waiting=True)


@pytest.mark.parametrize("registry", [CLOSE, FINISH, DUE_BY_DATA, DUE_ON_GRID], ids=["close", "finish", "data", "grid"])
def test_a_kernel_that_leaves_out_what_its_node_declares_is_found(registry, monkeypatch) -> None:
    nodes = {n: c for n, c in protocol.OPERATORS.items() if n in rooms()}
    assert not list(written.problems(nodes))
    for name in list(registry):
        with monkeypatch.context() as patch:
            patch.delitem(registry, name)
            told = [p for p in written.problems(nodes) if p.startswith(f"operator {name}: it ")]
        assert told or (registry is CLOSE and nodes[name].closes is False)
