"""Verify: a plan that breaks an invariant is a bug of ours, found here and not in a kernel.

Run after every pass under test, and by `cq` itself once per compilation: it costs microseconds a node.
"""

from __future__ import annotations

from cq.lang.expressions import And, Call, Case, Cast, Coalesce, Column, Expr, IsNull, Literal, Or, walk
from cq.lang.functions import Signature
from cq.lang.types import BOOLEAN, NULL, Kind
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import Fields, LogicalNode
from cq.planner.plan.registration import check_answers
from cq.records import replace


def verify(plan: LogicalPlan) -> LogicalPlan:
    """The plan itself; an AssertionError names the invariant and the node that breaks it."""
    names = [o.name for o in plan.outputs]
    assert len(set(names)) == len(names), "two outputs of one name"
    for output in plan.outputs:
        columns = output.node.schema.names
        assert len(set(columns)) == len(columns), f"two columns of output {output.name} have one name"
    for node in plan.nodes():
        try:
            verify_node(node)
        except AssertionError as error:
            raise AssertionError(f"{node.operator} {node.describe()}: {error}") from error
    return plan


def verify_node(node: LogicalNode) -> None:
    """One node: its expressions fit its inputs, its time attributes exist, its schema follows from its fields."""
    for expr, inputs in node.expressions():
        verify_expr(expr, node.over(inputs), expr in node.vouched)
    node.check()
    check_answers(node)
    assert replace(node).schema == node.schema, "a schema that does not follow from the node"
    for time in node.schema.times:
        assert 0 <= time.column < len(node.schema), "a time attribute of a missing column"


def verify_expr(expr: Expr, over: Fields, vouched: bool = False) -> None:
    """An expression over these columns: positions exist, types fit, and what may be NULL is nullable or vouched for."""
    for e in walk(expr):
        assert e.type != NULL, f"an expression without a type: {type(e).__name__}"
        match e:
            case Column(index=i):
                assert 0 <= i < len(over), f"column {i} of {len(over)}"
                assert e.type == over[i].type, f"column {i} as {e.type}, and it is {over[i].type}"
                assert e.nullable or not over[i].nullable, f"column {i} can be NULL"
            case Literal(value=v):
                assert e.nullable == (v is None), "a constant that does not know whether it is NULL"
            case Call():
                _verify_call(e)
            case And(args=args) | Or(args=args):
                assert len(args) >= 2 and all(a.type == BOOLEAN for a in args), "AND, OR over what is not BOOLEAN"
            case IsNull():
                assert not e.nullable and e.type == BOOLEAN, "IS NULL is never NULL"
            case Case(branches=branches, default=d):
                assert all(c.type == BOOLEAN and v.type == e.type for c, v in branches), "CASE of several types"
                assert d.type == e.type, "CASE whose default has another type"
            case Coalesce(args=args):
                assert all(a.type == e.type for a in args), "COALESCE of several types"
            case Cast(arg=a):
                assert e.nullable or not a.nullable or (vouched and e is expr), "a cast that loses NULL"
            case _:
                raise AssertionError(f"an expression no plan may hold: {type(e).__name__}")


def _verify_call(call: Call) -> None:
    """The registry accepts the arguments as they are, and returns this type.

    Not checked for DECIMAL arguments: sums widen each time they are resolved, and here they already have their final
    width.
    """
    types = tuple(a.type for a in call.args)
    if any(t.kind is Kind.DECIMAL for t in types):
        return
    found = call.function.signature(types, tuple(a.value if isinstance(a, Literal) else None for a in call.args))
    name = call.function.name
    assert isinstance(found, Signature), f"{name} does not take its arguments"
    assert found.params == types, f"{name} without its conversions"
    assert found.returns == call.type, f"{name} gives {found.returns}, not {call.type}"


def verify_same_results(before: LogicalPlan, after: LogicalPlan) -> None:
    """A rewritten plan has the same outputs: names, sinks, limits, and columns by name and type."""
    assert len(before.outputs) == len(after.outputs), "an output was lost"
    for a, b in zip(before.outputs, after.outputs, strict=True):
        assert (a.name, a.sink, a.limit) == (b.name, b.sink, b.limit), f"output {a.name} changed"
        assert a.node.schema.names == b.node.schema.names, f"columns of {a.name} changed"
        assert a.node.schema.types == b.node.schema.types, f"types of {a.name} changed"
        for f, g in zip(a.node.schema.fields, b.node.schema.fields, strict=True):
            assert f.nullable or not g.nullable, f"{a.name}.{f.name} can be NULL now"
