"""What a run did, next to what was planned: the facts of stages and operators with the numbers of a run, and their
text.

A stage is one loop, so time is known per stage and never per operator inside it; rows are known per operator.

A stage is one loop, so time is known of a stage and never of an operator inside it; rows are known of each operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from cq.errors import amount, printable
from cq.lang.value_text import size_text
from cq.planner.physical.stage_input import StageInput
from cq.planner.physical.stages import PhysicalPlan
from cq.planner.plan_facts import Facts, staged_facts, title
from cq.records import dataclass

ONE_LOOP = "time is that of a stage: its operators run as one loop"
COLUMNS = ("rows in", "rows out", "late", "memory")


@dataclass(frozen=True, slots=True)
class StageMeasures:
    """What the workers did in one stage. busy_ns: their total time in it.

    operators: for each, in the order of the stage's plan, the rows it emitted and those it dropped as late.
    held_bytes: by identity, what operators held at the end of the run; empty if it was stopped earlier.  punctuations:
    if their length adapts, (most events, how many there were), ascending.
    """

    busy_ns: int
    operators: Sequence[tuple[int, int]]
    held_bytes: dict[str, int]
    punctuations: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True, slots=True)
class RunMeasures:
    """A whole run. threads: how many workers it could use; 0 if it runs in the thread that feeds it.

    stages: those of each part, in order.  over: whether it finished.

    rejected_events: by trigger, for those that rejected any; None if they are not counted.
    """

    seconds: float
    threads: int
    rows_in: int
    rows_out: int
    rejected_events: Mapping[str, int] | None
    over: bool
    stages: Sequence[Sequence[StageMeasures]]


def measured_facts(parts: Sequence[PhysicalPlan], run: RunMeasures) -> Facts:
    """The facts of `staged_facts` with the measurements of the run, its stages and its operators.

    If several workers fill the panes of a window, the filling stage has no rows out and the collecting one none in:
    panes are not rows.
    """
    facts = staged_facts(parts)
    facts["run"] = {
        "seconds": run.seconds,
        "threads": run.threads,
        "rows_in": run.rows_in,
        "rows_out": run.rows_out,
        "late_rows": sum(late for part in run.stages for s in part for _, late in s.operators),
        "rejected_events": None if run.rejected_events is None else dict(run.rejected_events),
        "over": run.over,
    }
    both = zip(parts, run.stages, strict=True)
    planned = [pair for part, measured in both for pair in zip(part.stages, measured, strict=True)]
    nodes = facts["nodes"]
    for shown, (stage, measures) in zip(facts["stages"], planned, strict=True):
        shown["busy_ns"] = measures.busy_ns
        if measures.punctuations:
            shown["punctuations"] = _lengths(measures.punctuations)
        counted = zip(stage.plan.nodes(), measures.operators, strict=True)
        own = [(n, counts) for n, counts in counted if not isinstance(n, StageInput)]
        for number, (node, (rows, late)) in zip(shown["nodes"], own, strict=True):
            fills = stage.way.traits.hands_over and number in shown["outputs"]
            inputs = [nodes[i]["rows_out"] for i in nodes[number]["inputs"]]
            nodes[number] |= {
                "rows_in": None if None in inputs or not inputs else sum(inputs),
                "rows_out": None if fills else rows,
                "late_rows": late,
                "held_bytes": measures.held_bytes.get(node.identity) if node.keeps_state else None,
            }
    return facts


def draw_measured(facts: Facts) -> str:
    """The run on one line, then each stage with its time and, one per line, its operators with their numbers."""
    run, fewer = facts["run"], max(facts["workers"]) < facts["run"]["threads"]
    end = "" if run["over"] else ", stopped before its end"
    lines = [
        f"{run['seconds']:.2f} s {_workers_text(max(facts['workers']), run['threads'])}{end}: "
        f"read {run['rows_in']:,} rows, "
        f"wrote {run['rows_out']:,}, dropped {run['late_rows']:,} late"
        + (f", {rejected_text(run['rejected_events'])}" if run["rejected_events"] else "")
    ]
    cells = {n["number"]: _cells(n) for n in facts["nodes"]}
    widths = [max(map(len, column)) for column in zip(COLUMNS, *cells.values(), strict=True)]
    head = "  ".join(text.rjust(width) for text, width in zip(COLUMNS, widths, strict=True))
    for stage in facts["stages"]:
        lines += ["", f"{printable(stage['name'])}: {stage['runs']} · busy {stage['busy_ns'] / 1e9:.2f} s"]
        if fewer or any(facts["nodes"][n]["operator"] == "trigger" for n in stage["nodes"]):
            lines.append(f"  {stage['reason']}")
        if "punctuations" in stage:
            of = stage["punctuations"]
            lines.append(
                f"  {of['count']:,} punctuations of {of['median']:,} events at most (the median; {of['least']:,} to "
                f"{of['most']:,})"
            )
        lines.append(f"  {head}")
        for number in stage["nodes"]:
            node = facts["nodes"][number]
            numbers = "  ".join(text.rjust(width) for text, width in zip(cells[number], widths, strict=True))
            inputs = " ".join(f"#{i}" for i in node["inputs"])
            lines.append(f"  {numbers}  {title(node)}{f'  ({inputs})' if inputs else ''}")
    return "\n".join([*lines, "", ONE_LOOP])


def _workers_text(used: int, threads: int) -> str:
    """How many workers a run used, out of how many it could use."""
    if not threads:
        return "in one thread"
    count = amount(threads, "worker")
    return f"with {count}" if used == threads else f"with {used} of {count}"


def rejected_text(events: Mapping[str, int]) -> str:
    """How many events triggers rejected, by trigger: `rejected 5 events (t), 2 (u)`."""
    (first, count), *others = events.items()
    more = (f", {n:,} ({printable(trigger)})" for trigger, n in others)
    return f"rejected {count:,} event{'' if count == 1 else 's'} ({printable(first)}){''.join(more)}"


def _lengths(punctuations: Sequence[tuple[int, int]]) -> dict[str, int]:
    """How many punctuations there were, and how many events at most they had: the median and the range."""
    lengths, counts = zip(*punctuations, strict=True)
    count = sum(counts)
    median = next(e for e, upto in zip(lengths, accumulate(counts), strict=True) if 2 * upto >= count)
    return {"count": count, "median": median, "least": lengths[0], "most": lengths[-1]}


def rows_text(node: Facts) -> str | None:
    """The measurements of an operator on one line; None if there are none."""
    if "rows_out" not in node:
        return None
    rows_in, rows_out, late, held = _cells(node)
    rows = " → ".join(n for n in (rows_in, rows_out) if n)
    return ", ".join(p for p in (f"{rows} rows", f"{late} late" if late else "", held) if p)


def _cells(node: dict[str, Any]) -> tuple[str, str, str, str]:
    """The numbers of an operator as text; empty for those it lacks."""
    rows = [f"{n:,}" if (n := node[name]) is not None else "" for name in ("rows_in", "rows_out")]
    late = f"{node['late_rows']:,}" if node["late_rows"] else ""
    held = size_text(node["held_bytes"]) if node["held_bytes"] is not None else ""
    return rows[0], rows[1], late, held
