"""Run a bound plan on Spark: sources in, numbered and checked for lateness; one query per output; Arrow tables out."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from cq.errors import Diagnostic, UsageError
from cq.lang.expressions import Column, Expr
from cq.lang.schema import Schema
from cq.lang.types import to_arrow
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.source import SourceDef
from cq.spark.context import view_of
from cq.spark.exchange import forget, query, to_spark
from cq.spark.expressions import Expressions
from cq.spark.ingest import Admission, admit, from_view, parts, stored_type
from cq.spark.lower import lower, lower_triggers
from cq.spark.position import column_names, micros
from cq.spark.replay import SerialLoop, replay
from cq.spark.session import open_session
from cq.spark.user_functions import register_functions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def run_spark(
    plan: LogicalPlan,
    inputs: Mapping[str, pa.Table],
    *,
    ordered: bool = False,
    loop: SerialLoop | None = None,
    told: Callable[[str], None] = lambda what: None,
) -> dict[str, pa.Table]:
    """The result of every output, by name, for whole inputs by source name.

    inputs: the rows of each source in order, with its declared columns.  ordered: whether rows come in the order of
    their positions; otherwise in any order.  loop: processes the events of triggers, if there are any.
    told: receives, in words, what is taking time.
    A data error is raised as `DataError`, without the rows before it; a plan Spark cannot run as `CompileError`.
    """
    lower(plan)  # refuses plans that Spark cannot run before a JVM is started
    told("waiting for Spark to start")
    session = open_session()
    prefix = f"cq_{uuid.uuid4().hex}_"
    views: list[str] = []
    register_functions(session, plan)
    try:
        for part in parts(plan):
            missing = [s.name for s in part.sources if s.name not in inputs]
            if missing:
                raise UsageError(Diagnostic("CQ0602", f"no input is given for {', '.join(missing)}"))
            tables = {s.name: _stored(s, inputs[s.name]) for s in part.sources}
            times = {s.name: _event_times(session, s, tables[s.name]) for s in part.sources}
            admitted = admit(part.sources, times)
            for source in part.sources:
                told(f"copying {inputs[source.name].num_rows:,} rows of {source.name} to Spark")
                views.append(view_of(source, prefix))
                to_spark(session, _numbered(tables[source.name], admitted[source.name]), views[-1])
        for trigger in lower_triggers(plan, prefix):
            assert loop is not None, "a plan with triggers needs a loop"
            views.append(trigger.rows.view)
            replay(session, trigger, loop)
        results = {}
        for q in lower(plan, prefix, ordered):
            told(f"waiting for Spark to compute {q.name}")
            results[q.name] = _result(query(session, q.text, q.constants), q.schema)
        return results
    finally:
        for view in views:
            forget(session, view)


def _stored(source: SourceDef, table: pa.Table) -> pa.Table:
    """The declared columns as c0, c1, …, in the types they have in a view."""
    import pyarrow as pa
    import pyarrow.compute as pc

    absent = [f.name for f in source.fields if f.name not in table.column_names]
    if absent:
        raise UsageError(Diagnostic("CQ0603", f"the input for {source.name} has no column {', '.join(absent)}"))
    columns = []
    for f in source.fields:
        options = pc.CastOptions(target_type=stored_type(f.type), allow_time_truncate=True)
        columns.append(table.column(f.name).cast(options=options))
    return pa.table(columns, names=list(column_names(len(columns))))


def _event_times(session: SparkSession, source: SourceDef, stored: pa.Table) -> pa.Array | int:
    """The event time of every row in microseconds; a computed one is computed by Spark. Without one: the number of
    rows."""
    import pyarrow as pa

    match source.event_time:
        case None:
            return int(stored.num_rows)
        case Column(index=i, type=type_) if type_.is_timestamp:
            return stored.column(i).cast(pa.int64()).combine_chunks()
        case computed:
            return _computed_times(session, source, computed, stored)


def _computed_times(session: SparkSession, source: SourceDef, time: Expr, stored: pa.Table) -> pa.Array:
    import pyarrow as pa

    types = [f.type for f in source.fields]
    columns = [f"({from_view(c, t)})" for c, t in zip(column_names(len(types)), types, strict=True)]
    write = Expressions()
    text = f"select _n, {micros(write.text(time, columns))} as _u from "
    view = f"cq_{uuid.uuid4().hex}"
    numbered = stored.append_column("_n", pa.array(range(stored.num_rows), pa.int64()))
    to_spark(session, numbered, view)
    try:
        times = query(session, text + view, write.constants.values)
    finally:
        forget(session, view)
    return times.sort_by("_n").column("_u").combine_chunks()  # Spark keeps no order


def _numbered(stored: pa.Table, admitted: Admission) -> pa.Table:
    """The accepted rows with their serial, watermark and lateness."""
    import pyarrow as pa

    out = stored if len(admitted.rows) == stored.num_rows else stored.take(pa.array(admitted.rows))
    for name, values in (("_s", admitted.serial), ("_w", admitted.watermark), ("_late", admitted.late)):
        out = out.append_column(name, pa.array(values))
    return out


def _result(table: pa.Table, schema: Schema) -> pa.Table:
    """A result with the names and types of its schema."""
    import pyarrow as pa

    columns = [table.column(i).cast(to_arrow(f.type)) for i, f in enumerate(schema.fields)]
    return pa.table(columns, schema=pa.schema([pa.field(f.name, to_arrow(f.type)) for f in schema.fields]))
