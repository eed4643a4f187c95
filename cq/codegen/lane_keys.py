"""Which lane a row goes to: the function that hashes its key, and which keys can be computed from the row alone."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from cq.codegen.expressions.emit import emit
from cq.codegen.scan import source_row
from cq.codegen.stage_draft import StageDraft
from cq.codegen.state.hash_tables import lane_hash
from cq.codegen.values import Constants, Scope, Sites, Val
from cq.codegen.writer import Writer, expr
from cq.lang.expressions import Expr
from cq.lang.schema import Schema
from cq.planner.physical.branches import Branch
from cq.planner.plan.node import LogicalNode
from cq.runtime.layout.abi import ErrorCode

LANES_ARGUMENTS = ("batch", "port", "lo", "hi", "out", "constants")


def write_lanes(stage: StageDraft, inputs: tuple[LogicalNode, ...], branches: Sequence[Branch]) -> str:
    """Write the function that returns a row's lane (`cq.runtime.layout.pipeline.Lanes.entry`); return its name. All
    keys satisfy `decides_lane`.

    A port and a branch are encoded in one number: branch * ports + port.
    Tables take a slot from a hash's top bits, so lanes are taken from its low ones.
    """
    written = []
    for number, branch in enumerate(branches):
        for port, (node, key) in enumerate(zip(inputs, branch.keys, strict=True)):
            if key is not None:
                written.append(number * len(inputs) + port)
                _write_lane_hash(stage, node, port, f"lanes_{written[-1]}", key, branch)
    with stage.writer.function("lanes", LANES_ARGUMENTS):
        for place in written:
            with stage.writer.if_(expr("port == P", P=place)):
                stage.writer.code(f"return lanes_{place}(batch, port, lo, hi, out, constants)")
        stage.writer.code("return 0")
    return "lanes"


def _write_lane_hash(
    stage: StageDraft, node: LogicalNode, port: int, name: str, key: Sequence[Expr], branch: Branch
) -> None:
    with stage.writer.function(name, LANES_ARGUMENTS):
        scope = Scope(stage.writer, stage.constants, stage.sites, _cannot_fail)
        row = source_row(scope, node.schema, stage.columns.setdefault(port, {}), port, ast.Name("i", ast.Load()))
        with stage.writer.for_("i", "lo", "hi"), scope.block():
            values = [_as_said(emit(scope, row, k), k) for k in key]
            hash32 = lane_hash(scope, branch.all_keys, values)
            stage.writer.code("st_u32(out, i - lo, H)", H=hash32)
        stage.writer.code("return 1")


def _as_said(value: Val, key: Expr) -> Val:
    """A part of a key that cannot be NULL, in a column that can: only other operators' rows have NULL (`RowsOf`)."""
    return value if key.nullable else Val(value.type, value.parts, key=value.key)


def decides_lane(schema: Schema, key: Expr) -> bool:
    """Whether this key determines a row's lane: it is computed from the row alone. An expression that may fail, if only
    for lack of memory, or leaves a second result in the state, needs the state, which a row has only in its lane."""
    writer, failures = Writer(), []
    scope = Scope(writer, Constants(), Sites(), lambda code, site: failures.append(code))
    with writer.function("key", LANES_ARGUMENTS):
        emit(scope, source_row(scope, schema, {}, 0, ast.Name("i", ast.Load())), key)
    return not failures and all(n.id != "state" for n in ast.walk(writer.functions[-1]) if isinstance(n, ast.Name))


def needs_no_state(schema: Schema, e: Expr) -> bool:
    """Whether workers may compute the expression at the same time: it uses no memory but the row's."""
    function, _ = _written(schema, e)
    return all(n.id != "state" for n in ast.walk(function) if isinstance(n, ast.Name))


def needs_no_python(schema: Schema, e: Expr) -> bool:
    """Whether workers with states of their own may compute the expression at the same time."""
    _, constants = _written(schema, e)
    return not constants.user_functions


def _written(schema: Schema, e: Expr) -> tuple[ast.FunctionDef, Constants]:
    """The function that computes the expression, and its constants."""
    writer = Writer()
    scope = Scope(writer, Constants(), Sites(), lambda code, site: None)
    with writer.function("alone", ("batch", "constants")):
        emit(scope, source_row(scope, schema, {}, 0, ast.Name("i", ast.Load())), e)
    return writer.functions[-1], scope.constants


def _cannot_fail(code: ErrorCode, site: int) -> None:
    raise AssertionError("a key that needs the state decides a lane")
