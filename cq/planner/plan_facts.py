"""Facts about a plan and its stages, as plain dictionaries (the JSON of `cq explain`), and each fact in words.

Every display of a plan is drawn from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cq.errors import NOWHERE, printable
from cq.lang.expressions import format_expr
from cq.lang.schema import Schema
from cq.lang.value_text import write_duration
from cq.planner.physical.classify import Classified, classified, classify
from cq.planner.physical.printing import stage_facts, stage_number
from cq.planner.physical.stage_input import StageInput
from cq.planner.physical.stages import PhysicalPlan
from cq.planner.plan.logical import LogicalPlan, Output
from cq.planner.plan.node import LogicalNode, OpClass
from cq.planner.plan.source import SourceDef

Facts = dict[str, Any]
IDENTITY_DIGITS = 8  # digits of a node's stable identity in verbose trees; JSON has all
WHAT_LENGTH = 120  # characters of an operator's description on one line; verbose trees have all


def plan_facts(plan: LogicalPlan) -> Facts:
    """All facts about a plan. Nodes are numbered, inputs first."""
    nodes = plan.nodes()
    numbers = {id(n): i for i, n in enumerate(nodes)}
    classes = classify(plan)
    late = {node: sorted(s.name for s in counted) for node, counted in late_counters(plan).items()}
    return {
        "nodes": [node_facts(n, numbers, classes[id(n)]) | {"counts_late": late.get(id(n), [])} for n in nodes],
        "outputs": [output_facts(o, numbers) for o in plan.outputs],
    }


def output_facts(output: Output, numbers: dict[int, int]) -> Facts:
    """One result: where it goes, and its columns."""
    return {
        "name": output.name,
        "node": numbers[id(output.node)],
        "sink": dict(output.sink.options) if output.sink is not None else None,
        "limit": output.limit,
        "columns": [column_facts(output.node.schema, i) for i in range(len(output.node.schema))],
    }


def node_facts(node: LogicalNode, numbers: dict[int, int], known: Classified) -> Facts:
    """All facts about one operator."""
    facts: Facts = {
        "number": numbers[id(node)],
        "operator": node.operator,
        "what": node.describe(),
        "called": node.called,
        "inputs": [numbers[id(i)] for i in node.inputs],
        "class": known.op_class.value,
        "keys": [
            [format_expr(e, i.schema.names) for e in key] for key, i in zip(known.keys, node.inputs, strict=False)
        ],
        "merges_partials": known.mergeable,
        "columns": [column_facts(node.schema, i) for i in range(len(node.schema))],
        "times": [
            {"column": node.schema.names[t.column], "shift_us": t.shift_us, "lag_us": t.lag_us}
            for t in node.schema.times
        ],
        "ends": node.bounded,
        "state": node.state.text,
        "state_bounded": node.state.bounded,
        "cost_ns": node.cost_ns,
        "identity": node.identity,
        "line": node.span.line if node.span != NOWHERE else None,
        "copies": node.copies,
    }
    if details := node.in_detail():
        facts["in_detail"] = list(details)
    source = node.source
    if source is not None:
        facts["source"] = {
            "options": dict(source.options),
            "event_time": format_expr(source.event_time, node.schema.names) if source.event_time is not None else None,
            "delay_us": source.delay_us,
            "position": source.position,
        }
    return facts


def column_facts(schema: Schema, index: int) -> Facts:
    """One column: its name, type and whether it may be NULL."""
    f = schema.fields[index]
    return {"name": f.name, "type": str(f.type), "nullable": f.nullable}


def late_counters(plan: LogicalPlan) -> dict[int, set[SourceDef]]:
    """Which operators drop and count late rows, and from which sources: the first on each path that needs event
    time."""
    reach: dict[int, set[SourceDef]] = {}
    counts: dict[int, set[SourceDef]] = {}
    for n in plan.nodes():
        below = {n.source} if n.source is not None and n.source.event_time is not None else set()
        for i in n.inputs:
            below |= reach[id(i)]
        if n.uses_time:
            counts[id(n)], below = below, set()
        reach[id(n)] = below
    return counts


def staged_facts(parts: Sequence[PhysicalPlan]) -> Facts:
    """The facts of all stages and their operators, each operator with its inputs as they run in the stage.

    A window that collects panes has the window that fills them as its input.
    """
    facts: Facts = {"nodes": [], "outputs": [], "stages": [], "workers": [p.workers for p in parts]}
    for place, part in enumerate(parts):
        first = len(facts["nodes"])
        numbers = {k: n + first for k, n in stage_number(part).items()}
        filled: dict[str, int] = {}  # the windows of the previous stage by identity
        for stage in part.stages:
            for node in stage.plan.nodes():
                if isinstance(node, StageInput):
                    numbers[id(node)] = numbers[id(node.node)]
                    continue
                made = node_facts(node, numbers, classified(node))
                if stage.collects and any(isinstance(i, StageInput) for i in node.inputs):
                    made["inputs"] = [filled[node.identity]]
                facts["nodes"].append(made)
            filled = {o.node.identity: numbers[id(o.node)] for o in stage.plan.outputs}
        facts["stages"] += [s | {"part": place} for s in stage_facts(part, numbers)]
        facts["outputs"] += [output_facts(o, numbers) for o in part.stages[-1].plan.outputs]
    return facts


# ------------------------------------------------------------------------------------------------------------ in words


def headline(node: Facts, nodes: Sequence[Facts]) -> str:
    """An operator on one line: its title, and those of its facts that its input does not have."""
    said = notable(node, nodes)
    return f"{title(node)}  · {' · '.join(said)}" if said else title(node)


def title(node: Facts) -> str:
    """An operator's number, its name, the name of its rows, and what it does."""
    head = f"#{node['number']} {node['operator']}{rows_name(node)}"
    return f"{head}  {shortened(printable(node['what']), WHAT_LENGTH)}".rstrip()


def notable(node: Facts, nodes: Sequence[Facts]) -> list[str]:
    """The facts of an operator that people look for in a plan: watermark, what one worker does, state, late rows, cost.

    Keys are part of what it does.
    """
    out = []
    if (source := node.get("source")) is not None:
        out.append(describe_watermark(source))
    elif node["times"] and not any(t in _shown_times(nodes[i]) for i in node["inputs"] for t in _shown_times(node)):
        out.append(f"time {printable(node['times'][0]['column'])}{_lag(node['times'][0])}")
    if node["class"] == OpClass.STATEFUL.value:
        out.append("no key")
    if not node["ends"] and not node["inputs"]:
        out.append("never ends")
    if node["state"] != "nothing":
        out.append(describe_state(node))
    if node.get("counts_late"):
        out.append(describe_late(node))
    if node["cost_ns"]:
        out.append(f"{node['cost_ns']} ns a row")
    return out


def _shown_times(node: Facts) -> list[tuple[str, int]]:
    return [(t["column"], t["lag_us"]) for t in node["times"]]


def describe_watermark(source: Facts) -> str:
    """`watermark ts - 5 seconds`."""
    if source["event_time"] is None:
        return "no watermark"
    delay = f" - {write_duration(source['delay_us'])}" if source["delay_us"] else ""
    return f"watermark {printable(source['event_time'])}{delay}"


def describe_state(node: Facts) -> str:
    """What an operator keeps, and whether that grows with the input."""
    return f"keeps {node['state']}{'' if node['state_bounded'] else ' (grows)'}"


def describe_late(node: Facts) -> str:
    """Whose late rows an operator counts."""
    times = "" if node["copies"] == 1 else f" {node['copies']} times"
    return "counts late rows of " + printable(", ".join(node["counts_late"])) + times


def shortened(text: str, length: int) -> str:
    """The text, or as much of it as fits followed by an ellipsis."""
    return text if len(text) <= length else text[: length - 1].rstrip(" ,") + "…"


def column_text(column: Facts) -> str:
    return f"{printable(column['name'])} {column['type']}{'' if column['nullable'] else ' NOT NULL'}"


def rows_name(node: Facts) -> str:
    return f" {printable(node['called'])}" if node["called"] else ""


def summary(node: Facts) -> list[str]:
    """All facts of an operator."""
    out = [node["class"]]
    if node["keys"]:
        out[0] += " by " + " = ".join(f"({printable(', '.join(k))})" for k in node["keys"])
    out += [describe_time(t) for t in node["times"][:1]]
    if source := node.get("source"):
        out.append(describe_watermark(source))
    if not node["ends"]:
        out.append("unbounded")
    if node["state"] != "nothing":
        out.append(describe_state(node))
    if node.get("counts_late"):
        out.append(describe_late(node))
    if node["cost_ns"]:
        out.append(f"{node['cost_ns']} ns a row")
    out.append(node["identity"][:IDENTITY_DIGITS])
    return out


def describe_time(time: Facts) -> str:
    """`time window_end - 1 microsecond, lag 5 seconds`."""
    shift_us = time["shift_us"]
    shift = f" {'-' if shift_us < 0 else '+'} {write_duration(abs(shift_us))}" if shift_us else ""
    return f"time {printable(time['column'])}{shift}{_lag(time)}"


def _lag(time: Facts) -> str:
    return f", lag {write_duration(time['lag_us'])}" if time["lag_us"] else ""
