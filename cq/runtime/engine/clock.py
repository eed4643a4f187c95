"""Computes the event times of a source's rows if no column has them: a function of the first stage, which the feeder
calls on every record batch before it is pushed.

Admission cannot do it: a row without an event time must not become part of a loan, whose rows have consecutive numbers
and serials, and only the reader of the source can count it, or log it, as a bad row.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cq.lang.arrow_buffers import from_numpy
from cq.records import dataclass
from cq.runtime.base.host import Host
from cq.runtime.containers.state import drop_state, made, new_state, words
from cq.runtime.engine.failure import failed_value
from cq.runtime.engine.user_calls import place_constants
from cq.runtime.flow.arrow import lend
from cq.runtime.flow.event_times import CLOCK_THERE, CLOCK_TIMES
from cq.runtime.layout.abi import STATE_ERROR_CODE, STATE_ERROR_SITE, ErrorCode
from cq.runtime.layout.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class TimeFault:
    """Why the time of a row cannot be computed.

    site: index into the first stage's sites.  said, shown: as in `EngineFailure`.
    """

    row: int
    code: ErrorCode
    site: int
    said: str = ""
    shown: str = ""


@dataclass(frozen=True, slots=True)
class ComputedTimes:
    """Microseconds, int64, one per row, NULL for rows that have none; `faults` lists rows that failed."""

    values: pa.Array
    faults: tuple[TimeFault, ...]


class SourceClock:
    """The clock of one source. Owns its native memory until `close`."""

    def __init__(self, host: Host, pipeline: Pipeline, source: int) -> None:
        time, stage = pipeline.sources[source].time, pipeline.stages[0]
        assert time is not None and time.entry is not None, "the event time is a column"
        self._host, self._pipeline, self._stage, self._source = host, pipeline, stage, source
        self._entry = host.entries(stage)[time.entry]
        self._constants = place_constants(host, stage)
        self._storages = host.place(words(int(c.storage) for c in pipeline.sources[source].delivered))
        self._state = new_state(host, stage)
        self._clock = made(host.function("clock_new")(len(pipeline.sources)), "clock")

    def times(self, batch: pa.RecordBatch) -> ComputedTimes:
        """The event times of a batch of the delivered columns."""
        host, rows = self._host, batch.num_rows
        if rows == 0:
            return ComputedTimes(pa.nulls(0, pa.int64()), ())
        loan = lend(host, batch, self._storages)
        faults: list[TimeFault] = []
        try:
            made(host.function("clock_show")(self._clock, self._source, loan), "event times")
            first = self._run(0)
            while first < rows:
                faults.append(self._fault(first))
                first = self._run(first + 1)
            values = host.read(host.word(self._clock, CLOCK_TIMES), rows * 8)
            there = np.frombuffer(host.read(host.word(self._clock, CLOCK_THERE), rows), np.bool_).copy()
        finally:
            host.function("loan_return")(loan)
        there[[f.row for f in faults]] = False
        return ComputedTimes(from_numpy(np.frombuffer(values, np.int64), ~there), tuple(faults))

    def _run(self, first: int) -> int:
        stopped = self._host.function("clock_run")(self._clock, self._entry, self._state, self._constants, first)
        return int(stopped)

    def _fault(self, row: int) -> TimeFault:
        code = ErrorCode(self._host.word(self._state, STATE_ERROR_CODE))
        self._host.set_word(self._state, STATE_ERROR_CODE, 0)
        if code is ErrorCode.NO_MEMORY:
            made(0, "event times")
        site, said = self._host.word(self._state, STATE_ERROR_SITE), self._host.said.get(self._state, "")
        return TimeFault(row, code, site, said, failed_value(self._host, self._pipeline, 0, site, self._state))

    def close(self) -> None:
        """Free everything; may be called twice."""
        if self._clock:
            self._host.function("clock_drop")(self._clock)
            drop_state(self._host, self._stage, self._state)
            self._clock = 0
