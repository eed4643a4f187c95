"""Which rows of its inputs a run left out, and why, as reported to everyone who looks at its results."""

from __future__ import annotations

import shlex

from cq.engines.protocol import RunSummary
from cq.errors import printable
from cq.grammar import inline
from cq.lang.expressions import Column
from cq.lang.value_text import write_duration
from cq.planner.plan.logical import LogicalPlan
from cq.planner.plan.node import LogicalNode
from cq.planner.plan.source import SourceDef, sources_of

MINUTE_US = 60_000_000


def losses(summary: RunSummary, plan: LogicalPlan) -> tuple[str, ...]:
    """A sentence about dropped late rows, and one about unreadable rows for each stream that had some."""
    unread = (_unreadable(name, rows) for name, rows in summary.bad_rows.items() if rows)
    return (*late_losses(summary, plan), *unread)


def _unreadable(stream: str, rows: int) -> str:
    fate = "row could not be read and is left out" if rows == 1 else "rows could not be read and are left out"
    return f"{rows:,} {fate} of {printable(stream)}; to see why, leave on_error out of its WITH"


def late_losses(summary: RunSummary, plan: LogicalPlan) -> tuple[str, ...]:
    """The sentence about late rows."""
    return (_late(summary.late_rows, plan),) if summary.late_rows else ()


def _late(rows: int, plan: LogicalPlan) -> str:
    """Which operators dropped late rows, and how to have fewer of them."""
    from cq.planner.plan_facts import late_counters

    counters = late_counters(plan)
    droppers = dict.fromkeys(_place(n) for n in plan.nodes() if id(n) in counters)
    counted = {source for sources in counters.values() for source in sources}
    streams = [s for s in sources_of(plan.nodes()) if s in counted]
    what = f"{rows:,} late {'row was' if rows == 1 else 'rows were'} dropped by {' or '.join(droppers)}"
    return f"{what}; to drop fewer, {' or '.join(_longer_delay(s) for s in streams)}"


def _place(node: LogicalNode) -> str:
    line = f" (line {node.span.line})" if node.span.line else ""
    return f"{node.operator.replace('_', ' ')}{line}"


def _longer_delay(stream: SourceDef) -> str:
    """How to double a stream's delay, or set it to a minute if it has none, and how to measure it for a file."""
    time = stream.event_time
    column = printable(inline.name(time.name)) if isinstance(time, Column) else "ts"
    now, longer = write_duration(stream.delay_us), write_duration(2 * stream.delay_us or MINUTE_US)
    delay = f"WATERMARK FOR {column} AS {column} - INTERVAL '{longer}'"
    path = dict(stream.options).get("path")
    enough = f" (cq schema {printable(shlex.quote(path))} tells how late its rows come)" if path is not None else ""
    return f"increase the delay of {printable(stream.name)}, now {now}: {delay}{enough}"
