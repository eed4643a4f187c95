"""The bare kernel: a compiled stage over tickets that admission has cut before the clock starts.

Only the kernel itself runs, not the engine: a native loop calls it ticket after ticket and empties its ports, like
taking a parcel away, without passing anything on.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from cq.runtime.base.host import CompiledHost
from cq.runtime.base.kernel import compile_functions
from cq.runtime.base.native import native
from cq.runtime.base.ops import call4, fill, ld_i64, st_i64
from cq.runtime.containers.state import drop_state, new_state, words
from cq.runtime.engine import stage as s
from cq.runtime.engine.build import build, close
from cq.runtime.engine.engine import TICKET_ROWS
from cq.runtime.engine.schedule import CT
from cq.runtime.flow import batch as b
from cq.runtime.flow.admission_words import END_OF_SOURCE, SOURCE_RING
from cq.runtime.flow.arrow import lend
from cq.runtime.flow.arrow_words import BIT
from cq.runtime.layout.abi import (
    BATCH_FIRST,
    BATCH_MIXED,
    BATCH_PORTS,
    BATCH_SEGMENT_COUNT,
    BATCH_SEGMENTS,
    BATCH_WATERMARKS,
    ERROR,
    MORE,
    OUT_BYTES,
    OUT_DATA,
    OUT_STORAGE,
    OUT_VALIDITY,
    OUT_WORDS,
    PORT_COLUMN_COUNT,
    PORT_COLUMNS,
    PORT_ROWS,
    PORT_WORDS,
    SEGMENT_WORDS,
)
from cq.runtime.layout.pipeline import Pipeline


@native("i64(i64)")
def empty_port(port: int) -> int:
    """Empty the port, clear its bitmaps, and return the number of rows it held."""
    rows = ld_i64(port, PORT_ROWS)
    for column in range(ld_i64(port, PORT_COLUMN_COUNT)):
        out = ld_i64(port, PORT_COLUMNS) + column * OUT_WORDS * 8
        if ld_i64(out, OUT_VALIDITY) != 0:
            fill(ld_i64(out, OUT_VALIDITY), 0, (rows >> 3) + 8)
        if ld_i64(out, OUT_STORAGE) == BIT:
            fill(ld_i64(out, OUT_DATA), 0, (rows >> 3) + 8)
        st_i64(out, OUT_BYTES, 0)
    st_i64(port, PORT_ROWS, 0)
    return rows


@native("i64(i64, i64, i64, i64, i64, i64, i64)", export=True)
def drive(kernel: int, state: int, tickets: int, count: int, out: int, ports: int, constants: int) -> int:
    """Let the kernel work through all tickets; return how many rows came out, or -1 when it failed."""
    rows = 0
    for n in range(count):
        status = MORE
        while status == MORE:
            status = call4(kernel, state, ld_i64(tickets, n), out, constants)
            for port in range(ports):
                rows += empty_port(out + port * PORT_WORDS * 8)
        if status == ERROR:
            return -1
    return rows


class BareKernel:
    """The only stage of a pipeline for one worker, and the tickets to work on. `close` releases everything."""

    def __init__(
        self, pipeline: Pipeline, batches: Sequence[Sequence[pa.RecordBatch]], batch_rows: int = TICKET_ROWS
    ) -> None:
        assert len(pipeline.stages) == 1, "a bare kernel is the whole pipeline"
        self._host = CompiledHost()
        self._stage = pipeline.stages[0]
        self._plant = build(self._host, pipeline, 1, batch_rows, CT)
        self._loans = [
            [lend(self._host, batch, storages) for batch in given]
            for given, storages in zip(batches, self._plant.storages, strict=True)
        ]
        tickets = self._cut()
        self._count = len(tickets)
        self._tickets = self._host.place(words(tickets))
        self._drive = compile_functions(drive)["drive"]
        stage, task = self._plant.stages[0], self._plant.tasks[0][0]
        self._kernel = self._host.word(stage, s.STAGE_KERNEL)
        self._constants = self._host.word(stage, s.STAGE_CONSTANTS)
        self._out = self._host.word(task, s.TASK_OUT)

    def _cut(self) -> list[int]:
        """Every ticket of the input, copied so that admission can reuse its own."""
        call = self._host.function
        rings = [self._host.word(source, SOURCE_RING) for source in self._plant.sources]
        output = self._host.word(self._plant.stages[0], s.STAGE_INPUT)
        waiting = [[*loans, END_OF_SOURCE] for loans in self._loans]
        made: list[int] = []
        while True:
            idle = True
            for ring, items in zip(rings, waiting, strict=True):
                while items and call("ring_push")(ring, items[0]):
                    items.pop(0)
                    idle = False
            call("admit")(self._plant.admission, 1)
            ticket = call("ring_pop")(output)
            if ticket == 0:
                if not idle:
                    continue
                assert not any(waiting), "admission waits for nothing"
                return made
            made.append(self._copied(ticket))
            call("ticket_return")(ticket, len(self._loans))

    def _copied(self, ticket: int) -> int:
        host = self._host
        segments = host.word(ticket, BATCH_SEGMENTS)
        size = 8 * SEGMENT_WORDS * host.word(ticket, BATCH_SEGMENT_COUNT)
        made = host.place(host.read(ticket, 8 * b.ITEM_WORDS))
        host.set_word(made, BATCH_SEGMENTS, host.place(host.read(segments, size)))
        ports = 8 * len(self._loans)
        host.set_word(made, BATCH_PORTS, host.place(host.read(host.word(ticket, BATCH_PORTS), ports)))
        first, behind = host.word(ticket, BATCH_FIRST), host.word(ticket, b.ITEM_SERIAL)
        for word, room in ((BATCH_WATERMARKS, b.ITEM_MARKS), (BATCH_MIXED, b.ITEM_MIXED)):
            if host.word(ticket, word):
                copied = host.place(host.read(host.word(ticket, room), 8 * (behind - first)))
                host.set_word(made, word, copied - 8 * first)
        return made

    def run(self) -> int:
        """How many rows the kernel emits for the whole input, starting with empty state."""
        state = new_state(self._host, self._stage)
        ports = len(self._stage.ports)
        rows = self._drive(self._kernel, state, self._tickets, self._count, self._out, ports, self._constants)
        drop_state(self._host, self._stage, state)
        assert rows >= 0, "the kernel failed"
        return int(rows)

    def close(self) -> None:
        """Release the input and all memory."""
        for loan in (loan for loans in self._loans for loan in loans):
            self._host.function("loan_return")(loan)
        close(self._plant)
