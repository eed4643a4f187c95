"""Queries as text and rows as tuples, run on the reference engine; times are in seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cq.errors import SourceText
from cq.grammar.parser import parse
from cq.planner.binding.binder import bind
from cq.planner.plan.logical import LogicalPlan
from cq.reference.engine import ReferenceResult, ReferenceRun, run

S = 1_000_000  # microseconds in a second


def stream(name: str, columns: str, delay: int | None = 0) -> str:
    """CREATE STREAM with an event time `ts`; without a watermark if `delay` is None."""
    if delay is None:
        watermark = ""
    elif delay == 0:
        watermark = ", WATERMARK FOR ts"
    else:
        watermark = f", WATERMARK FOR ts AS ts - INTERVAL '{delay}' SECOND"
    return f"CREATE STREAM {name} ({columns}, ts TIMESTAMP{watermark}) WITH (connector = 'memory');\n"


def plan_of(text: str) -> LogicalPlan:
    return bind(parse(SourceText("<test>", text))).plan


def timed(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows whose last value is a time in seconds, as microseconds."""
    return [(*r[:-1], None if r[-1] is None else int(r[-1] * S)) for r in rows]


def result_of(text: str, **inputs: Iterable[tuple[Any, ...]]) -> ReferenceResult:
    """Run a query over inputs by stream; the last column of each row is its time in seconds."""
    return run(plan_of(text), {name: timed(rows) for name, rows in inputs.items()})


def unfailed(result: ReferenceResult) -> ReferenceResult:
    """The result, or the error that ended it."""
    if result.error is not None:
        raise result.error
    return result


def stepped(text: str) -> ReferenceRun:
    return ReferenceRun(plan_of(text))


def seconds(rows: Iterable[tuple[Any, ...]], *columns: int) -> list[tuple[Any, ...]]:
    """Rows with the times in `columns` as seconds."""
    return [tuple(v // S if i in columns and v is not None else v for i, v in enumerate(r)) for r in rows]


def caused_by(result: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The rows of the only output that a ReferenceRun call returned."""
    (rows,) = result.values()
    return [d.row for d in rows]
