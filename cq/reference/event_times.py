"""Computed event times, row by row: how connectors check rows when the reference or Spark runs the query."""

from __future__ import annotations

import pyarrow as pa

from cq.connectors.physical_rows import rows_of
from cq.connectors.protocol import EventTimer, Times, UnreadableTime
from cq.lang.arrow_buffers import number_array
from cq.lang.event_time import is_computed
from cq.lang.functions import Failure
from cq.planner.plan.source import SourceDef
from cq.reference.evaluate import evaluator


def timer_of(source: SourceDef) -> EventTimer | None:
    """Return the function that computes the event times of batches of all declared columns; None when one column gives
    them."""
    if source.event_time is None or not is_computed(source.event_time):
        return None
    time_of, types = evaluator(source.event_time), [f.type for f in source.fields]

    def compute(batch: pa.RecordBatch) -> Times:
        values: list[int | None] = []
        unreadable: dict[int, UnreadableTime] = {}
        for number, row in enumerate(rows_of(batch, types)):
            try:
                values.append(time_of(row))
            except Failure as failure:
                values.append(None)
                unreadable[number] = UnreadableTime(failure.code, failure.message, failure.span)
        return Times(number_array(pa.int64(), values), unreadable)

    return EventTimer(compute)
