"""The physical plan as text and as facts: the graph of stages that runs, and in each stage its operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cq.entries import refuse
from cq.errors import printable
from cq.lang.expressions import Column, Expr, format_expr
from cq.planner.physical.branches import Branch
from cq.planner.physical.stage_input import StageInput
from cq.planner.physical.stages import PhysicalPlan, Stage
from cq.planner.plan.node import LogicalNode
from cq.ways import PLACEMENTS


def graph_text(physical: PhysicalPlan) -> str:
    """The stages, how each runs and where its rows go: line by line, as a running engine describes itself."""
    lines = [f"{physical.workers} worker{'s' if physical.workers > 1 else ''}"]
    for number, stage in enumerate(physical.stages):
        sinks = ", ".join(o.name for o in stage.plan.outputs)
        target = sinks if stage.final else f"stage {physical.stages[number + 1].name}"
        lines.append(f"stage {stage.name}: {way_text(stage)} -> {target}")
    return "\n".join(lines)


def way_text(stage: Stage) -> str:
    """How a stage is run, in words."""
    return f"{stage.lanes} {stage.way.value}" if stage.way.traits.lanes else stage.way.value


PLACEMENT_TEXTS = {
    "stealing": "",
    "shared_nothing": "; a worker takes those of its own rows only",
    "shared_everything": "; a worker takes any",
    "per_socket": "; a worker takes those of its socket, then any",
}
"""Which of the transactions running together a worker takes, for `explain`."""


def without_text(placements: Iterable[str]) -> Iterator[str]:
    """Placements that have no text here."""
    yield from (f"placement {name} has no text" for name in placements if name not in PLACEMENT_TEXTS)


refuse("placements", without_text(PLACEMENTS))


def reason_text(stage: Stage) -> str:
    """Why a stage runs as it does, and how its workers share what they run together."""
    if stage.sharing is None:
        return stage.reason
    adaptive = "; how many events are run together is adaptive" if stage.sharing.events is None else ""
    return stage.reason + adaptive + PLACEMENT_TEXTS[stage.sharing.placement]


def stage_number(physical: PhysicalPlan) -> dict[int, int]:
    """id(node) -> its number among the operators of all stages, without leaves that stand for another stage's rows."""
    nodes = [n for s in physical.stages for n in s.plan.nodes() if not isinstance(n, StageInput)]
    return {id(n): i for i, n in enumerate(nodes)}


def draw_stages(parts: Sequence[PhysicalPlan]) -> str:
    """Every stage with its reason, key and operators, after the graph of its part."""
    return "\n\n".join(_draw_part(p) for p in parts)


def _draw_part(physical: PhysicalPlan) -> str:
    lines = [printable(line) for line in graph_text(physical).split("\n")]
    numbers = stage_number(physical)
    for stage in physical.stages:
        lines += ["", f"{stage.name}: {reason_text(stage)}"]
        for branch in stage.routing_keys:
            lines += _draw_branch(stage, branch, numbers)
        outputs = {id(o.node) for o in stage.plan.outputs}
        for node in stage.plan.nodes():
            if not isinstance(node, StageInput):
                inputs = " ".join(_input(i, numbers, stage.collects) for i in node.inputs)
                text = f"  #{numbers[id(node)]} {node.operator}  {printable(node.describe())}".rstrip()
                lines.append(text + (f"  ({inputs})" if inputs else "") + (" -> out" if id(node) in outputs else ""))
    return "\n".join(lines)


def _draw_branch(stage: Stage, branch: Branch, numbers: dict[int, int]) -> list[str]:
    """The keys of a branch and, if there are several, also its operators with state."""
    own = [f"#{numbers[id(n)]}" for n in stage.plan.nodes() if n.keeps_state and n.identity in branch.parts]
    told = f": {' '.join(own)}" if len(stage.branches) > 1 else ""
    return [
        f"  by ({', '.join(show_key(e, leaf) for e in key)}) of {_leaf(leaf)}{told}"
        for leaf, key in zip(stage.leaves, branch.keys, strict=True)
        if key is not None
    ]


def _leaf(leaf: LogicalNode) -> str:
    return leaf.source.name if leaf.source is not None else "its rows"


def _input(node: LogicalNode, numbers: dict[int, int], collects: bool) -> str:
    if isinstance(node, StageInput):
        return "panes of the stage before" if collects else f"rows of #{numbers[id(node.node)]}"
    return f"#{numbers[id(node)]}"


def show_key(expr: Expr, node: LogicalNode) -> str:
    """A part of a key over the rows of `node`."""
    names = node.schema.names
    return printable(names[expr.index] if isinstance(expr, Column) else format_expr(expr, names))


def _key_facts(key: tuple[Expr, ...] | None, leaf: LogicalNode) -> list[str] | None:
    """The key of a leaf's rows in one branch; None if that reads none of them."""
    return None if key is None else [show_key(e, leaf) for e in key]


def stage_facts(physical: PhysicalPlan, numbers: dict[int, int]) -> list[dict[str, object]]:
    """All facts about every stage. numbers: of the operators, from `stage_number`."""
    return [
        {
            "name": s.name,
            "runs": s.way.value,
            "lanes": s.lanes,
            "reason": reason_text(s),
            "cost_ns": s.cost_ns,
            "keys": [[_key_facts(k, leaf) for k, leaf in zip(b.keys, s.leaves, strict=True)] for b in s.routing_keys],
            "nodes": [numbers[id(n)] for n in s.plan.nodes() if not isinstance(n, StageInput)],
            "reads": [numbers[id(n.node)] for n in s.plan.nodes() if isinstance(n, StageInput)],
            "outputs": [numbers[id(o.node)] for o in s.plan.outputs],
            "gathers": [numbers[id(n)] for n in s.gathered],
        }
        for s in physical.stages
    ]
