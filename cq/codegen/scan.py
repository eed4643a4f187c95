"""The loop over the rows of a source: columns by reference, one turn a row."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from cq.codegen.expressions import emit
from cq.codegen.flow import FATAL, Event, Flow, StagePlan, function, holds_back, is_strict
from cq.codegen.operators.gather import take_gathered
from cq.codegen.ports import Position, storage
from cq.codegen.probe import Keys
from cq.codegen.values import Constants, Row, Scope, Sites, Val
from cq.codegen.writer import Writer, expr
from cq.expressions import Expr
from cq.planner.logical import LogicalNode, operator
from cq.planner.operators import UnionAll, Unnest
from cq.runtime import abi
from cq.runtime.abi import ErrorCode, Storage
from cq.schema import Field, Schema
from cq.types import BIGINT


@operator("stage_input")
@dataclass(frozen=True, slots=True)
class StageInput(LogicalNode):
    """Rows of the stage before, in place of the node of the plan that makes them. Exists in stages only."""

    node: LogicalNode

    def __post_init__(self) -> None:
        self._set_schema(self.node.schema)

    @property
    def bounded(self) -> bool:
        return self.node.bounded


ROWS_ARGUMENTS = ("state", "batch", "out", "constants", "lo", "hi", "base", "late")

_LOADS = {
    Storage.I8: "ld_i8(D, R)",
    Storage.I16: "ld_i16(D, R)",
    Storage.I32: "ld_i32(D, R)",
    Storage.I64: "ld_i64(D, R)",
    Storage.F32: "ld_f32(D, R)",
    Storage.F64: "ld_f64(D, R)",
    Storage.I128: "ld_i64(D, R * 2)",
}


def write_rows(stage: StagePlan, node: LogicalNode, schema: Schema, port: int) -> str:
    """Write the function that takes rows lo..hi of a port through the stage; its name.

    It returns the row to go on with: hi, or an earlier one when a port is full, or -1 after an error. `base` is what
    to add to a row number to get its serial.
    """
    name = f"rows_{port}"
    row_number = ast.Name("i", ast.Load())
    serial = ast.Name("serial", ast.Load())
    fan_out = bounded_fan_out(stage, node)
    place = row_number if isinstance(node, StageInput) else serial
    position = Position(place, ast.Constant(abi.NEVER), 0, ast.Constant(0), ast.Constant(0))
    late = expr("late * FATAL", FATAL=FATAL) if is_strict(node) else ast.Name("late", ast.Load())
    roomy = fan_out is not None
    event = Event(serial, position, expr("-1"), row_number, port, late, roomy)
    with function(stage, name, ROWS_ARGUMENTS, node, event) as flow:
        row = source_row(flow.scope, schema, stage.columns.setdefault(port, {}), port, row_number)
        writer = flow.writer
        if stage.lanes:
            selection = writer.hoist(expr("ld_i64(batch, W)", W=abi.BATCH_SELECTION), "sel")
        serials = (
            ""
            if not isinstance(node, StageInput)
            else writer.hoist(expr("ld_i64(batch, W)", W=abi.BATCH_SERIALS), "sers")
        )
        writer.code("end = hi")
        if fan_out is not None:
            for p in flow.ports.values():
                room = "CAP - R" if fan_out <= 1 else "shr_u(CAP - R, LOG)"
                log = max(0, (fan_out - 1).bit_length())
                writer.code(f"end = min(end, lo + ({room}))", CAP=p.capacity, R=p.rows, LOG=log)
        step = "j" if stage.lanes else "i"
        with writer.for_(step, "lo", "end"), flow.scope.block():
            if fan_out is None:
                for p in flow.ports.values():
                    with flow.scope.when(expr("R >= ld_i64(P, W)", R=p.rows, P=p.place, W=abi.PORT_LIMIT)):
                        flow.leave(ast.Name(step, ast.Load()))
            if stage.lanes:
                writer.code("i = ld_i32(SEL, j)", SEL=selection)
            if serials:
                writer.code("serial = ld_i64(S, i)", S=serials)
            else:
                writer.code("serial = base + i")
            if not stage.final:
                writer.code("nth = 0")
            if stage.uses_step_bytes:
                writer.code("step_reset(state)")
            if not stage.lanes:
                flow.ahead = _row_ahead(flow, node.schema, stage.columns[port], port)
            flow.deliver(node, row)
            if stage.gathered:
                take_gathered(flow, port)
        flow.leave(ast.Name("end", ast.Load()))
    return name


AHEAD_ROWS = 12  # prefetch distance: measured best of 4, 8, 12, 16, 24 at 1 M groups; below 4 K groups unused


def _row_ahead(flow: Flow, schema: Schema, places: dict[int, int], port: int) -> Row:
    """The row AHEAD_ROWS turns later, or the last one of the call."""

    def later() -> ast.expr:  # anew for each column: the first use may stand in a branch that the next is not in
        return flow.scope.let(expr("min(i + N, end - 1)", N=AHEAD_ROWS), "ahead")

    def loader(index: int, column: Field) -> Callable[[], Val]:
        return lambda: _load(flow.scope, places.setdefault(index, len(places)), column, port, later())

    return Row(flow.scope, [loader(i, f) for i, f in enumerate(schema.fields)])


LANES_ARGUMENTS = ("batch", "port", "lo", "hi", "out", "constants")


def write_lanes(stage: StagePlan, inputs: tuple[LogicalNode, ...], keys: tuple[tuple[Expr, ...], ...]) -> None:
    """Write the function that gives the 32-bit key hash of rows lo..hi of a port. All keys are such as `decides_lane`.

    Tables take a slot from a hash's top bits; lanes are to be taken from its low ones.
    """
    for port, (node, key) in enumerate(zip(inputs, keys, strict=True)):
        with stage.writer.function(f"lanes_{port}", LANES_ARGUMENTS):
            scope = Scope(stage.writer, stage.constants, stage.sites, _cannot_fail)
            number = ast.Name("i", ast.Load())
            row = source_row(scope, node.schema, stage.columns.setdefault(port, {}), port, number)
            with stage.writer.for_("i", "lo", "hi"), scope.block():
                values = [emit(scope, row, k) for k in key]
                hash32 = Keys.of([(k.type, k.nullable) for k in key]).hash(scope, values)
                stage.writer.code("st_i32(out, i - lo, H)", H=hash32)
            stage.writer.code("return 0")
    with stage.writer.function("lanes", LANES_ARGUMENTS):
        for port in range(len(inputs)):
            with stage.writer.if_(expr("port == P", P=port)):
                stage.writer.code("lanes_p(batch, port, lo, hi, out, constants)".replace("lanes_p", f"lanes_{port}"))
        stage.writer.code("return 0")


def decides_lane(schema: Schema, key: Expr) -> bool:
    """Whether a row's lane can be told by this key: it is computed from the row alone. What may fail, be it for want of
    memory for a text, or leaves a second result in the state, needs the state, which a row has only in its lane."""
    writer, failures = Writer(), []
    scope = Scope(writer, Constants(), Sites(), lambda code, site: failures.append(code))
    with writer.function("key", LANES_ARGUMENTS):
        emit(scope, source_row(scope, schema, {}, 0, ast.Name("i", ast.Load())), key)
    return not failures and all(n.id != "state" for n in ast.walk(writer.functions[-1]) if isinstance(n, ast.Name))


def _cannot_fail(code: ErrorCode, site: int) -> None:
    raise AssertionError("a key that needs the state decides a lane")


def source_row(scope: Scope, schema: Schema, places: dict[int, int], port: int, number: ast.expr) -> Row:
    """Row `number` of a port's batch: a column is loaded where it is first needed, its buffers found once a call.

    places: where columns of the schema lie in the port's batch; one that is first needed now gets the next place.
    """

    def loader(index: int, column: Field) -> Callable[[], Val]:
        return lambda: _load(scope, places.setdefault(index, len(places)), column, port, number)

    return Row(scope, [loader(i, f) for i, f in enumerate(schema.fields)])


def _load(scope: Scope, index: int, column: Field, port: int, number: ast.expr) -> Val:
    kind = storage(column.type)
    data = _column_word(scope, port, index, abi.COLUMN_DATA, "data")
    null: ast.expr | None = None
    if column.nullable:
        validity = _column_word(scope, port, index, abi.COLUMN_VALIDITY, "valid")
        bit = _column_word(scope, port, index, abi.COLUMN_BIT, "bit")
        null = scope.let(expr("V != 0 and not ld_bit(V, B + R)", V=validity, B=bit, R=number), "n")
    if kind is Storage.UTF8:
        offsets = _column_word(scope, port, index, abi.COLUMN_OFFSETS, "offs")
        start = scope.let(expr("ld_i32(O, R)", O=offsets, R=number))
        address = scope.let(expr("D + S", D=data, S=start))
        length = scope.let(expr("ld_i32(O, R + 1) - S", O=offsets, R=number, S=start))
        return Val(column.type, (address, length), null)
    if kind is Storage.BIT:
        bit = _column_word(scope, port, index, abi.COLUMN_BIT, "bit")
        return Val(column.type, (scope.let(expr("ld_bit(D, B + R)", D=data, B=bit, R=number)),), null)
    return Val(column.type, (scope.let(expr(_LOADS[kind], D=data, R=number)),), null)


def _column_word(scope: Scope, port: int, index: int, word: int, hint: str) -> str:
    """A word of the port's column table, in a local for the whole function."""
    key = ("column", port, index, word)
    if key not in scope.prologue:
        table = ("columns", port)
        if table not in scope.prologue:
            place = expr("ld_i64(ld_i64(batch, W), P)", W=abi.BATCH_PORTS, P=port)
            name = scope.writer.hoist(place, "columns")
            scope.prologue[table] = Val(BIGINT, (ast.Name(name, ast.Load()),))
        columns = scope.prologue[table].it
        made = scope.writer.hoist(expr("ld_i64(C, W)", C=columns, W=index * abi.COLUMN_WORDS + word), hint)
        scope.prologue[key] = Val(BIGINT, (ast.Name(made, ast.Load()),))
    it = scope.prologue[key].it
    assert isinstance(it, ast.Name)
    return it.id


def bounded_fan_out(stage: StagePlan, node: LogicalNode) -> int | None:
    """The most rows one row of `node` can put into a port; None when that is not known beforehand."""
    if stage.gathered:
        return None
    most = 1
    for n in reachable(stage, node):
        if isinstance(n, Unnest):
            return None
        if isinstance(n, UnionAll):
            most *= len(n.branches)
    outputs = [len(stage.outputs.get(id(n), ())) for n in reachable(stage, node)]
    return most if sum(outputs) else 1


def reachable(stage: StagePlan, node: LogicalNode) -> list[LogicalNode]:
    """The nodes a row of `node` can reach within its own event."""
    found, todo, seen = [], [node], {id(node)}
    while todo:
        at = todo.pop()
        found.append(at)
        for reader, port in stage.readers.get(id(at), ()):
            if id(reader) not in seen and not holds_back(reader, port):
                seen.add(id(reader))
                todo.append(reader)
    return found
