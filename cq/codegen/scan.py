"""The loop over the rows of a source: columns by reference, one iteration per row."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from cq.codegen.expressions.emit import emit
from cq.codegen.expressions.user import takes_step_bytes
from cq.codegen.flow import DUE_BY_DATA, DUE_ON_GRID, FATAL, Event, Flow, function
from cq.codegen.input_order import take_gathered
from cq.codegen.ports import Position, storage
from cq.codegen.stage_draft import DueWord, StageDraft
from cq.codegen.values import Coded, Row, Scope, Val
from cq.codegen.waiting_rows import due_word, slot_of, waiting_ports
from cq.codegen.writer import Writer, expr, word_at
from cq.lang.event_time import is_computed
from cq.lang.expressions import Expr, walk
from cq.lang.schema import Field, Schema
from cq.lang.types import BIGINT, Physical
from cq.planner.physical.branches import Branch
from cq.planner.plan.fold import folded
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.source import SourceDef
from cq.records import replace
from cq.runtime.layout import abi
from cq.runtime.layout.abi import ErrorCode, Storage
from cq.runtime.layout.words import Word

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


def write_rows(stage: StageDraft, node: LogicalNode, schema: Schema, port: int, branch: int = 0) -> str:
    """Write the function that takes rows lo..hi of a port through the stage, or a branch of it; return its name.

    It returns the row to resume at: hi, or an earlier one if a port is full, or -1 after an error. `base` + a row
    number is the row's serial.
    """
    name = f"rows_{port}" if branch == 0 else f"rows_{port}_{branch}"
    waits = bool(stage.due)
    fan_out = None if waits else bounded_fan_out(stage, node)
    event = _of_row(port, roomy=fan_out is not None)
    with function(stage, name, ROWS_ARGUMENTS, node, event) as flow:
        flow.branch, flow.has_batch, flow.late = branch, True, _lateness(node)
        row = _given_row(flow, node, schema, port)
        writer = flow.writer
        _end_where_full(flow, fan_out)
        step = step_of(stage)
        with writer.for_(step, "lo", "end"), flow.scope.block():
            if fan_out is None and not waits:
                _leave_when_full(flow, step)
            _begin_row(flow)
            if waits:
                _serve_due(flow, step)
            _take_row(flow, node, port, row)
        flow.leave(ast.Name("end", ast.Load()))
    return name


def write_mixed_rows(stage: StageDraft, inputs: Sequence[LogicalNode]) -> str:
    """Write the function that takes rows lo..hi through the stage, of a port or of MIXED; return its name.

    For MIXED, lo and hi are serials, and `base` is 0. It returns what the function of `write_rows` returns.
    """
    event = _of_row(ast.Name("source", ast.Load()), roomy=False)
    with function(stage, "rows", (*ROWS_ARGUMENTS, "port"), inputs[0], event, *inputs[1:]) as flow:
        flow.has_batch = True
        writer = flow.writer
        given = dict(enumerate(_given_row(flow, node, node.schema, port) for port, node in enumerate(inputs)))
        places = writer.word("batch", abi.BATCH_MIXED, "places")
        step = step_of(stage)
        with writer.for_(step, "lo", "hi"), flow.scope.block():
            writer.code("i = j\nsource = port")
            with writer.if_(expr("port == MIXED", MIXED=abi.MIXED)):
                writer.code("where = ld_i64(P, j)", P=places)
                _find_row(writer)
            _begin_row(flow)
            _serve_due(flow, step)
            _take_any(flow, inputs, given)
        flow.leave(ast.Name("hi", ast.Load()))
    return "rows"


def write_shared_rows(stage: StageDraft, inputs: Sequence[LogicalNode], branch: Branch, number: int) -> str:
    """Write the function that takes rows lo..hi of a lane's share (cq/runtime/flow/shares.py) through a branch; return
    its name.

    `base` is the first serial of the batch. It returns what the function of `write_rows` returns.
    """
    name = "rows" if number == 0 else f"rows_{number}"
    read = {port: node for port, node in enumerate(inputs) if branch.keys[port] is not None}
    waits = bool(stage.due)
    fan_outs = [None if waits else bounded_fan_out(stage, node) for node in read.values()]
    roomy = all(f is not None for f in fan_outs)
    event = _of_row(ast.Name("source", ast.Load()), roomy)
    first, *others = read.values()
    with function(stage, name, ROWS_ARGUMENTS, first, event, *others) as flow:
        flow.branch, flow.has_batch = number, True
        writer = flow.writer
        given = {port: _given_row(flow, node, node.schema, port) for port, node in read.items()}
        places = writer.word("batch", abi.BATCH_MIXED, "places")
        selection = writer.word("batch", abi.BATCH_SELECTION, "sel")
        _end_where_full(flow, max(f for f in fan_outs if f is not None) if roomy else None)
        step = step_of(stage)
        with writer.for_(step, "lo", "end"), flow.scope.block():
            if not roomy and not waits:
                _leave_when_full(flow, step)
            writer.code("place = ld_i64(SEL, j) & MASK", SEL=selection, MASK=(1 << abi.SHARE_SERIAL_SHIFT) - 1)
            writer.code("where = ld_i64(P, place)", P=places)
            _find_row(writer)
            _begin_row(flow)
            if waits:
                _serve_due(flow, step)
            _take_any(flow, inputs, given)
        flow.leave(ast.Name("end", ast.Load()))
    return name


def _find_row(writer: Writer) -> None:
    """The current row of BATCH_MIXED: its number, and its port."""
    writer.code("i = where & MASK", MASK=(1 << abi.MIXED_PORT_SHIFT) - 1)
    writer.code("source = shr_u(where, SHIFT)", SHIFT=abi.MIXED_PORT_SHIFT)


def _take_any(flow: Flow, inputs: Sequence[LogicalNode], given: Mapping[int, Row]) -> None:
    """Hand a row to the readers of its port. given: the row of each port."""
    for port, row in given.items():
        with flow.scope.when(expr("source == P", P=port)):
            flow.late = _lateness(inputs[port])
            _take_row(flow, inputs[port], port, row)


def _end_where_full(flow: Flow, fan_out: int | None) -> None:
    """Set `end` to the row up to which ports have room for what each row can put into one of them; `hi` if unknown."""
    flow.writer.code("end = hi")
    if fan_out is not None:
        for p in flow.ports.values():
            room = "CAP - R" if fan_out <= 1 else "shr_u(CAP - R, LOG)"
            log = max(0, (fan_out - 1).bit_length())
            flow.writer.code(f"end = min(end, lo + ({room}))", CAP=p.capacity, R=p.rows, LOG=log)


def _of_row(port: int | ast.expr, roomy: bool) -> Event:
    """The event of a row of a batch: row `i` of a port, with its serial."""
    serial, number, late = (ast.Name(n, ast.Load()) for n in ("serial", "i", "late"))
    position = Position(serial, ast.Constant(abi.NEVER), 0, ast.Constant(0), ast.Constant(0))
    return Event(serial, position, expr("-1"), number, port, late, roomy)


def _lateness(node: LogicalNode) -> ast.expr:
    """A value that is nonzero for a late row of an input."""
    strict = node.source is not None and node.source.strict
    return expr("late * FATAL", FATAL=FATAL) if strict else expr("late")


def _given_row(flow: Flow, node: LogicalNode, schema: Schema, port: int) -> Row:
    """Row `i` of a port's batch, with its computed event time."""
    indices = flow.stage.columns.setdefault(port, {})
    number = ast.Name("i", ast.Load())
    row = source_row(flow.scope, schema, indices, port, number)
    row.given = _computed_time(flow.scope, node, indices, port, number)
    return row


def _take_row(flow: Flow, node: LogicalNode, port: int, row: Row) -> None:
    """Hand a row of an input to its readers, with the following rows at hand for prefetches."""
    stage, writer = flow.stage, flow.writer
    flow.leaf = node
    _say_cause(flow, node, port)
    if stage.uses_step_bytes:
        writer.code("step_reset(state)")
    flow.ahead = _row_ahead(flow, node.schema, stage.columns[port], port, AHEAD_ROWS)
    flow.soon = _row_ahead(flow, node.schema, stage.columns[port], port, SOON_ROWS)
    slot, entry, record = (
        _row_ahead(flow, node.schema, stage.columns[port], port, turns)
        for turns in (SLOT_ROWS, ENTRY_ROWS, RECORD_ROWS)
    )
    flow.steps = slot, entry, record
    bytes_row, slot, entry = (
        _row_ahead(flow, node.schema, stage.columns[port], port, turns)
        for turns in (LIST_BYTES_ROWS, LIST_SLOT_ROWS, LIST_ENTRY_ROWS)
    )
    flow.lists = bytes_row, slot, entry
    flow.deliver(node, row)
    if stage.gathered:
        take_gathered(flow, port)


def step_of(stage: StageDraft) -> str:
    """What a function that takes rows counts: rows, places of a selection, or serials of mixed rows."""
    return "j" if stage.lanes or stage.by_key or stage.mixed else "i"


def _begin_row(flow: Flow) -> None:
    """Which row of the batch the iteration is for, its serial and, if needed, its watermark."""
    writer, stage = flow.writer, flow.stage
    if stage.lanes and not stage.lanes_of_ports:
        selection = writer.word("batch", abi.BATCH_SELECTION, "sel")
        writer.code("i = ld_i32(SEL, j)", SEL=selection)
    elif stage.by_key:
        selection = writer.word("batch", abi.BATCH_SELECTION, "sel")
        writer.code("i = j\nif SEL != 0:\n    i = ld_i32(SEL, j)", SEL=selection)
    if stage.lanes_of_ports:
        selection = writer.word("batch", abi.BATCH_SELECTION, "sel")
        writer.code("serial = base + shr_u(ld_i64(SEL, j), SHIFT)", SEL=selection, SHIFT=abi.SHARE_SERIAL_SHIFT)
    else:
        writer.code("serial = base + AT", AT="j" if stage.mixed else "i")
    if stage.due or stage.passes_watermarks:
        marks = writer.word("batch", abi.BATCH_WATERMARKS, "marks")
        writer.code("watermark = ld_i64(M, serial)", M=marks)


def _say_cause(flow: Flow, node: LogicalNode, port: int) -> None:
    """Record the row's cause, if a later stage needs it."""
    writer = flow.writer
    if not flow.stage.planned.final:
        causes = expr("ld_i64(batch, W)", W=abi.BATCH_CAUSES)
        if node.source is None:
            writer.code("cause = ld_i64(C, i)", C=writer.hoist(causes, "causes"))
        else:
            writer.code("cause = C + i", C=writer.hoist(expr("ld_i64(T, P)", T=causes, P=port), "first"))


def _segment_late(stage: StageDraft, kind: str) -> None:
    """While late rows are taken: what was emitted so far becomes a segment of this kind for the next stage."""
    if stage.planned.final or stage.lanes:
        return
    with stage.writer.if_(expr("late != 0")):
        stage.writer.code(f"port_segment(out, 0, {kind}, 0)")


def _leave_when_full(flow: Flow, step: str) -> None:
    """A port at its limit ends the function at this row, which is not taken yet."""
    for p in flow.ports.values():
        with flow.scope.when(expr("R >= ld_i64(P, W)", R=p.rows, P=p.place, W=abi.PORT_LIMIT)):
            flow.leave(ast.Name(step, ast.Load()))


def due_words(stage: StageDraft, inputs: Sequence[LogicalNode]) -> list[DueWord]:
    """Return what is checked before a row is taken: when waiting rows are due, and closing times that depend on data.

    Among waiting rows, those of the inputs, and those with times that lag behind the watermark or are ahead of it: any
    other row that is made at an instant has that very time, so it never waits.
    """
    nodes = {id(n): n for i in inputs for at in reachable(stage, i) for n in (at, *_readers(stage, at))}
    nodes |= {id(n): n for n in stage.plan.nodes() if any(t is not None and t.waited_for for t in n.waits_on)}
    kept = [(n, port) for n in nodes.values() for port in waiting_ports(n, stage.planned.waits)]
    waiting = [due_word(slot_of(stage, n, port)) for n, port in kept]
    asked = {**DUE_BY_DATA, **(DUE_ON_GRID if stage.planned.instants else {})}
    return [*waiting, *(due for n in stage.plan.nodes() if n.operator in asked for due in asked[n.operator](stage, n))]


def _serve_due(flow: Flow, step: str) -> None:
    """Before a row is taken: if its watermark has reached a time that depends on data, serve what is due.

    If a port is full the function ends at this row, and goes on serving when it is called again.
    """
    writer, stage = flow.writer, flow.stage
    containers = [(writer.word("state", d.slot.offset, "buffer"), d.word) for d in stage.due]
    asks = [expr("watermark >= ld_i64(B, NEXT)", B=buffer, NEXT=word) for buffer, word in containers]
    if stage.gathered:  # a full port may have stopped an instant that has only gathered rows left
        asks.append(expr("ld_i64(state, W) != NEVER", W=abi.STATE_INSTANT, NEVER=abi.NEVER))
    due = asks[0] if len(asks) == 1 else ast.BoolOp(ast.Or(), asks)
    call = expr("serve(state, out, constants, watermark, serial)")
    if stage.lanes:
        seen = writer.word("batch", abi.BATCH_FIRST, "seen")
        call = expr("serve(state, out, constants, watermark, serial, batch, SEEN)", SEEN=seen)
    with flow.scope.when(due):
        flow.flush()
        _segment_late(stage, "late")  # what is due is on time
        status = writer.let(call, "status")
        _segment_late(stage, "0")
        with flow.scope.when(expr("S != DONE", S=status, DONE=abi.DONE)):
            writer.code("return pick(S == MORE, AT, -1)", S=status, MORE=abi.MORE, AT=step)
        flow.after_call()
    if stage.lanes:  # everything this row's watermark has reached is served: later rows reach later instants
        writer.set(seen, expr("serial + 1"))
    writer.code("st_i64(state, W, watermark)", W=stage.watermark_word())
    _leave_when_full(flow, step)


# Prefetch distance; below 4 K groups unused. With 24 and not 12 one worker took as long for 10 K groups, 0.86 of that
# for 1 M dense and 0.95 for 1 M random ones, and two workers, whose lines are in each other's cache, 0.94 for 10 K.
# With 36 one worker took 1.02 to 1.04 of that for 10 K random groups, with 64 it took 1.1 (CPU, AMD EPYC).
AHEAD_ROWS = Word(24, "AHEAD_ROWS")

SOON_ROWS = Word(AHEAD_ROWS // 2, "SOON_ROWS")  # of the second of two steps

# Distances of a look-up in three steps: the slot of the index, the entry, the record that it leads to. Each step reads
# what the one before it fetched, so a cache miss must fit between two of them. The kernel of a hash join of 1 M rows
# with 10 M took 33 ns of CPU a row with these and 1.4 times as many with 12, 6 and 3 rows; twice as far was no better.
SLOT_ROWS = Word(36, "SLOT_ROWS")
ENTRY_ROWS = Word(24, "ENTRY_ROWS")
RECORD_ROWS = Word(12, "RECORD_ROWS")

# Distances for rows whose lists are looped over: a list of ten elements is as far ahead as ten rows.
LIST_BYTES_ROWS = Word(8, "LIST_BYTES_ROWS")
LIST_SLOT_ROWS = Word(2, "LIST_SLOT_ROWS")
LIST_ENTRY_ROWS = Word(1, "LIST_ENTRY_ROWS")


def _row_ahead(flow: Flow, schema: Schema, indices: dict[int, int], port: int, turns: int) -> Row:
    """The row that many iterations ahead: of its port, whose rows go on beyond those of the call, or the last one.

    If a selection decides which rows a lane takes, at most the last one of the call; in a share of several ports, the
    row that many places further in the port's rows, which may be another lane's at its end.
    """

    def later(column: int) -> ast.expr:  # new for each column: the first use may be in a branch that the next is not in
        if flow.stage.lanes_of_ports:
            assert turns <= abi.SHARE_AHEAD_ROWS, "a row behind the list"
            rows = _column_word(flow.scope, port, column, abi.COLUMN_ROWS, "rows")
            places = flow.writer.word("batch", abi.BATCH_MIXED, "places")
            behind = expr("ld_i64(P, place + N) & MASK", P=places, N=turns, MASK=(1 << abi.MIXED_PORT_SHIFT) - 1)
            return flow.scope.let(expr("min(AT, ROWS - 1)", AT=behind, ROWS=rows), "ahead")
        if not flow.stage.lanes and not flow.stage.by_key:
            rows = _column_word(flow.scope, port, column, abi.COLUMN_ROWS, "rows")
            return flow.scope.let(expr("min(i + N, ROWS - 1)", N=turns, ROWS=rows), "ahead")
        at = expr("min(S + N, end - 1)", S=step_of(flow.stage), N=turns)
        selection = flow.writer.word("batch", abi.BATCH_SELECTION, "sel")
        if flow.stage.lanes:
            return flow.scope.let(expr("ld_i32(SEL, AT)", SEL=selection, AT=at), "ahead")
        ahead = flow.writer.let(at, "ahead")
        flow.writer.code("if SEL != 0:\n    AT = ld_i32(SEL, AT)", SEL=selection, AT=ahead)
        return ast.Name(ahead, ast.Load())

    def loader(index: int, column: Field) -> Callable[[], Val]:
        def load() -> Val:
            number = indices.setdefault(index, len(indices))
            return _load(flow.scope, number, column, port, later(number))

        return load

    return Row(flow.scope, [loader(i, f) for i, f in enumerate(schema.fields)])


# in StageDraft.columns: the computed event time, at index 0, so that the function that computes it finds the other
# columns where the kernel does
COMPUTED_TIME = -1


def computed_times(stage: StageDraft, inputs: tuple[LogicalNode, ...]) -> dict[int, SourceDef]:
    """Return the sources, by port, whose event time is computed, and set its index in their batches.

    Call it before anything else gives columns their indices.
    """
    found = {p: n.source for p, n in enumerate(inputs) if n.source is not None and is_computed(n.source.event_time)}
    for port in found:
        assert port not in stage.columns, "columns of a source have indices already"
        stage.columns[port] = {COMPUTED_TIME: 0}
    return found


def _computed_time(
    scope: Scope, node: LogicalNode, indices: dict[int, int], port: int, number: ast.expr
) -> dict[Expr, Callable[[], Val]]:
    """The event time of a source as an expression whose value is known, if no column had it: now it is a column.

    In the plan it is not NULL, because accepted rows have one, and its constants may be folded.
    """
    time = node.source.event_time if node.source is not None else None
    if time is None or not is_computed(time):
        return {}

    def load() -> Val:
        return _load(scope, indices[COMPUTED_TIME], Field("event time", time.type, nullable=False), port, number)

    return {replace(e, nullable=n): load for e in (time, folded(time)) for n in (False, True)}


TIMES_ARGUMENTS = ("state", "batch", "lo", "hi", "out", "constants")


def times_name(port: int) -> str:
    """The name of the function that computes the event times of a source."""
    return f"times_{port}"


def write_times(stage: StageDraft, source: SourceDef, port: int) -> str:
    """Write the function that computes the event times of rows lo..hi of a source without a time column; its name.

    out: the words TIMES_VALUES and TIMES_THERE. It returns hi, or the row whose event time cannot be computed; the
    state's error words say why.
    """
    time, name = source.event_time, times_name(port)
    assert time is not None

    def fail(code: ErrorCode, site: int) -> None:
        stage.writer.code("failed(state, CODE, SITE, PORT, i, 0)\nreturn i", CODE=code, SITE=site, PORT=port)

    with stage.writer.function(name, TIMES_ARGUMENTS):
        scope = Scope(stage.writer, stage.constants, stage.sites, fail)
        schema = Schema(source.fields)
        row = source_row(scope, schema, stage.columns.setdefault(port, {}), port, ast.Name("i", ast.Load()))
        stage.writer.code(
            "times = ld_i64(out, VALUES)\nthere = ld_i64(out, THERE)", VALUES=abi.TIMES_VALUES, THERE=abi.TIMES_THERE
        )
        with stage.writer.for_("i", "lo", "hi"), scope.block():
            if any(map(takes_step_bytes, walk(time))):
                stage.writer.code("step_reset(state)")
            value = emit(scope, row, time)
            valid = ast.Constant(1) if value.null is None else expr("pick(N, 0, 1)", N=value.null)
            stage.writer.code("st_i64(times, i, T)\nst_u8(there, i, V)", T=value.it, V=valid)
        stage.writer.code("return hi")
    return name


def source_row(scope: Scope, schema: Schema, indices: dict[int, int], port: int, number: ast.expr) -> Row:
    """Row `number` of a port's batch: a column is loaded where it is first needed, its buffers found once per call.

    indices: of columns of the schema in the port's batch; a column needed for the first time gets the next one.
    """

    def loader(index: int, column: Field) -> Callable[[], Val]:
        return lambda: _load(scope, indices.setdefault(index, len(indices)), column, port, number)

    return Row(scope, [loader(i, f) for i, f in enumerate(schema.fields)])


def _load(scope: Scope, index: int, column: Field, port: int, number: ast.expr) -> Val:
    kind = storage(column.type)
    data = _column_word(scope, port, index, abi.COLUMN_DATA, f"c{index}_data")
    null: ast.expr | None = None
    if column.nullable:
        validity = _column_word(scope, port, index, abi.COLUMN_VALIDITY, f"c{index}_valid")
        bit = _column_word(scope, port, index, abi.COLUMN_BIT, f"c{index}_bit")
        null = scope.let(expr("V != 0 and not ld_bit(V, B + R)", V=validity, B=bit, R=number), f"c{index}_null")
    if kind is Storage.UTF8:
        offsets = _column_word(scope, port, index, abi.COLUMN_OFFSETS, f"c{index}_offsets")
        coded = _coded(scope, port, index, number)
        start = scope.let(expr("ld_i32(O, R)", O=offsets, R=coded.code), f"c{index}_start")
        address = scope.let(expr("D + S", D=data, S=start), f"c{index}_")
        length = scope.let(expr("ld_i32(O, R + 1) - S", O=offsets, R=coded.code, S=start), f"c{index}_length")
        return Val(column.type, (address, length), null, coded=coded)
    if kind is Storage.BIT:
        bit = _column_word(scope, port, index, abi.COLUMN_BIT, f"c{index}_bit")
        return Val(column.type, (scope.let(expr("ld_bit(D, B + R)", D=data, B=bit, R=number), f"c{index}_"),), null)
    part = scope.let(expr(_LOADS[kind], D=data, R=number), f"c{index}_")
    if column.type.physical is Physical.I128:
        return Val(
            column.type, (part, scope.let(expr("ld_i64(D, R * 2 + 1)", D=data, R=number), f"c{index}_high")), null
        )
    return Val(column.type, (part,), null)


def _coded(scope: Scope, port: int, index: int, number: ast.expr) -> Coded:
    """Which text of a VARCHAR column the row has: by its code, or by the row's number if there are no codes."""
    codes = _column_word(scope, port, index, abi.COLUMN_CODES, f"c{index}_codes")
    code = scope.writer.let(number, f"c{index}_code")
    with scope.when(expr("C != 0", C=codes)):
        scope.writer.set(code, expr("ld_i32(C, R)", C=codes, R=number))
    dictionary = _column_word(scope, port, index, abi.COLUMN_DICTIONARY, f"c{index}_dictionary")
    texts = _column_word(scope, port, index, abi.COLUMN_TEXTS, f"c{index}_texts")
    return Coded(ast.Name(code, ast.Load()), ast.Name(dictionary, ast.Load()), ast.Name(texts, ast.Load()))


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
        made = scope.writer.hoist(word_at(columns, index, abi.COLUMN_WORDS, word), hint)
        scope.prologue[key] = Val(BIGINT, (ast.Name(made, ast.Load()),))
    it = scope.prologue[key].it
    assert isinstance(it, ast.Name)
    return it.id


def bounded_fan_out(stage: StageDraft, node: LogicalNode) -> int | None:
    """The most rows that one row of `node` can put into a port; None if that is not known beforehand, or may be more
    than a port always has room for.
    """
    if stage.gathered:
        return None
    most: dict[int, Counter[int]] = {}  # by node: the rows of each port that one of its rows can give
    for n in sorted(reachable(stage, node), key=lambda n: stage.order[id(n)], reverse=True):
        if n.inputs and n.fan_out is None:
            return None
        made = Counter(stage.outputs.get(id(n), ()))
        for reader, port in stage.readers.get(id(n), ()):
            if not reader.holds_back(port):
                made.update(most[id(reader)])
        copies = (n.fan_out or 1) if n.inputs else 1
        most[id(n)] = Counter({port: rows * copies for port, rows in made.items()})
    found = max(most[id(node)].values(), default=1)
    return found if found <= abi.SPARE_ROWS else None


def _readers(stage: StageDraft, node: LogicalNode) -> list[LogicalNode]:
    """The nodes that read the rows of `node`, and those that keep them for later."""
    return [reader for reader, _ in stage.readers.get(id(node), ())]


def reachable(stage: StageDraft, node: LogicalNode) -> list[LogicalNode]:
    """The nodes a row of `node` can reach within its own event."""
    found, todo, seen = [], [node], {id(node)}
    while todo:
        at = todo.pop()
        found.append(at)
        for reader, port in stage.readers.get(id(at), ()):
            if id(reader) not in seen and not reader.holds_back(port):
                seen.add(id(reader))
                todo.append(reader)
    return found
