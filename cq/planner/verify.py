"""Verify: a plan that breaks an invariant is a mistake of ours, found here and not in a kernel.

Run after every pass under test, and by `cq` itself once per compilation: it costs microseconds a node.
"""

from __future__ import annotations

from dataclasses import replace

from cq.expressions import And, Call, Case, Cast, Coalesce, Column, Expr, IsNull, Literal, Or, walk
from cq.functions import Signature
from cq.planner.logical import LogicalNode, LogicalPlan
from cq.planner.node_exprs import Fields, expressions
from cq.planner.operators import Over, Project, TemporalJoin, Window, WindowAggregate, WindowKind
from cq.schema import Schema
from cq.types import BOOLEAN, NULL, Kind


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
    for expr, over in expressions(node):
        verify_expr(expr, over)
    match node:
        case WindowAggregate(input=below, window=window):
            _verify_window(window, below.schema)
        case Over(input=below, order=order):
            assert order is None or order in below.schema.times, "ordered by a column that is no event time"
        case TemporalJoin(left=left, left_time=time):
            assert time in left.schema.times, "as of a column that is no event time"
        case Project(time_column=at, exprs=exprs):
            assert at is None or not isinstance(exprs[at], Column), "a bare column keeps its own time attribute"
        case _:
            pass
    assert replace(node).schema == node.schema, "a schema that does not follow from the node"
    for time in node.schema.times:
        assert 0 <= time.column < len(node.schema), "a time attribute of a missing column"


def _verify_window(window: Window, below: Schema) -> None:
    assert window.time in below.times, "a window over a column that is no event time"
    if window.kind is WindowKind.ATTACHED:
        assert window.start_column < len(below), "an attached window over a missing start"
    else:
        assert 0 <= window.offset_us < window.slide_us, "a window whose offset is not reduced"
    if window.kind is WindowKind.TUMBLE:
        assert window.slide_us == window.size_us, "a tumbling window that does not tumble"


def verify_expr(expr: Expr, over: Fields) -> None:
    """An expression over these columns: positions exist, types fit, what may be NULL says so."""
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
                assert e.nullable or not a.nullable, "a cast that loses NULL"
            case _:
                raise AssertionError(f"an expression no plan may hold: {type(e).__name__}")


def _verify_call(call: Call) -> None:
    """The registry takes the arguments as they are, and gives this type.

    Not asked of DECIMAL arguments: sums widen each time they are resolved, and here they are already as wide as asked.
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
    """A rewritten plan has the outputs it had: names, sinks, limits, and columns by name and type."""
    assert len(before.outputs) == len(after.outputs), "an output was lost"
    for a, b in zip(before.outputs, after.outputs, strict=True):
        assert (a.name, a.sink, a.limit) == (b.name, b.sink, b.limit), f"output {a.name} changed"
        assert a.node.schema.names == b.node.schema.names, f"columns of {a.name} changed"
        assert a.node.schema.types == b.node.schema.types, f"types of {a.name} changed"
        for f, g in zip(a.node.schema.fields, b.node.schema.fields, strict=True):
            assert f.nullable or not g.nullable, f"{a.name}.{f.name} can be NULL now"
