"""Replay: triggers on Spark. One serial loop processes the events, since every transaction sees those before it.

Spark computes the events and sorts them by position; the loop runs in the calling process, and its rows become a view
that the rest of the query reads. More tasks would gain nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from cq.errors import DataError, Diagnostic
from cq.lang.functions import Failure
from cq.lang.types import INT64_MAX, to_arrow
from cq.planner.operators import Trigger
from cq.spark.exchange import query, to_spark
from cq.spark.ingest import stored_type
from cq.spark.lower import Replay
from cq.spark.position import ON_TIME, column_names

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

Row: TypeAlias = tuple[Any, ...]
SerialLoop: TypeAlias = Callable[[Trigger, Iterable[Row]], Iterator[tuple[int | None, Row]]]
"""The rows that a trigger makes from its events, in order, each with the number of its event, or None at the end of
input."""


def replay(session: SparkSession, trigger: Replay, loop: SerialLoop) -> None:
    """Create the view of the trigger, or raise `DataError` if its events cannot be computed."""
    width = len(trigger.events.schema)
    given = query(session, trigger.events.text, trigger.events.constants)
    causes, rows = [], []
    try:
        for cause, row in loop(trigger.node, _events(trigger, given.select(range(width)))):
            causes.append(cause)
            rows.append(row)
    except Failure as failure:
        raise DataError(Diagnostic(failure.code, failure.message, failure.span, severity="data error")) from None
    positions = given.select(range(width, given.num_columns)).to_pydict()
    to_spark(session, _view(trigger.node, rows, _positions(causes, positions)), trigger.rows.view)


def _events(trigger: Replay, given: pa.Table) -> Iterator[Row]:
    from cq.connectors.physical_rows import rows_of

    types = trigger.events.schema.types
    columns = [column.cast(to_arrow(type_)) for column, type_ in zip(given.columns, types, strict=True)]
    for batch in type(given).from_arrays(columns, names=given.column_names).to_batches():
        yield from rows_of(batch, types)


def _positions(causes: list[int | None], events: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The columns of positions: a row comes after its event and the rows that the event caused before, or at the
    end."""
    at_end: dict[str, Any] = {"_w": INT64_MAX, "_s": INT64_MAX, "_o": [], "_late": ON_TIME}
    made = {name: [at_end[name] if c is None else column[c] for c in causes] for name, column in events.items()}
    places = (n for _, together in groupby(causes) for n, _ in enumerate(together))
    made["_o"] = [[*place, n] for place, n in zip(made["_o"], places, strict=True)]
    return made


def _view(node: Trigger, rows: list[Row], positions: dict[str, list[Any]]) -> pa.Table:
    import pyarrow as pa

    from cq.connectors.physical_rows import array_of

    kinds = {"_w": pa.int64(), "_s": pa.int64(), "_o": pa.list_(pa.int64()), "_late": pa.int8()}
    columns = []
    for place, type_ in enumerate(node.schema.types):
        columns.append(array_of([row[place] for row in rows], type_).cast(stored_type(type_)))
    columns += [pa.array(values, kinds[name]) for name, values in positions.items()]
    return pa.table(columns, names=[*column_names(len(node.schema)), *positions])
