"""Stages: which operators are fused into one kernel. A stage runs as one loop over batches; stages meet at queues.

This is the vocabulary placement, codegen and the runtime share, and the first way to fill it: one stage for one worker;
else a stateless stage and one with all the state, partitioned by what every operator's key has in common.
"""

from __future__ import annotations

from dataclasses import dataclass

from cq.expressions import Expr
from cq.planner.classify import boundaries, common_components, input_keys, merges_exactly, stateless_prefix
from cq.planner.logical import LogicalNode, LogicalPlan, OpClass
from cq.planner.operators import WindowAggregate


@dataclass(frozen=True, slots=True)
class Stage:
    """Operators fused into one kernel.

    nodes: in the order one event visits them.  inputs: nodes of other stages whose rows it reads; a stage with a Scan
    among its nodes reads that source itself.  outputs: its nodes whose rows other stages or results read.
    keys: for PARTITIONED, by which each input's rows are routed, in the order of `inputs`.
    mergeable: aggregates that may also run on partial tables of each worker, merged at the close: then the stage needs
    no routing.
    """

    name: str
    op_class: OpClass
    nodes: tuple[LogicalNode, ...]
    inputs: tuple[LogicalNode, ...] = ()
    outputs: tuple[LogicalNode, ...] = ()
    keys: tuple[tuple[Expr, ...], ...] = ()
    mergeable: tuple[WindowAggregate, ...] = ()

    def __post_init__(self) -> None:
        assert self.nodes, "a stage without operators"
        assert not self.keys or len(self.keys) == len(self.inputs), "a stage whose keys do not cover its inputs"
        assert (self.op_class is OpClass.PARTITIONED) == bool(self.keys), "a key without partitions, or the reverse"


@dataclass(frozen=True, slots=True)
class StageGraph:
    """All stages of a plan, producers before consumers; every node is in exactly one."""

    plan: LogicalPlan
    stages: tuple[Stage, ...]

    def __post_init__(self) -> None:
        placed = [id(n) for s in self.stages for n in s.nodes]
        assert sorted(placed) == sorted(id(n) for n in self.plan.nodes()), "a node in no stage, or in two"
        made: set[int] = set()
        for s in self.stages:
            assert all(id(i) in made for i in s.inputs), f"{s.name} reads what no earlier stage gives"
            made |= {id(o) for o in s.outputs}


def fuse(plan: LogicalPlan, workers: int) -> StageGraph:
    """The stages of a plan for so many workers. One worker, or nothing to spread: a single loop, no queues."""
    nodes = plan.nodes()
    prefix = stateless_prefix(plan)
    results = {id(o.node) for o in plan.outputs}
    if workers <= 1 or len(prefix) == len(nodes):
        op_class = OpClass.STATELESS if len(prefix) == len(nodes) else OpClass.STATEFUL
        whole = Stage("s0", op_class, nodes, outputs=tuple(n for n in nodes if id(n) in results))
        return StageGraph(plan, (whole,))
    edge = boundaries(plan)
    below = tuple(n for n in nodes if id(n) in prefix)
    above = tuple(n for n in nodes if id(n) not in prefix)
    components = common_components(plan)
    keys = tuple(tuple(c[id(b)] for c in components) for b in edge) if components else ()
    edge_ids = {id(b) for b in edge}
    first = Stage(
        "s0",
        OpClass.STATELESS,
        below,
        outputs=tuple(n for n in below if id(n) in results | edge_ids),
    )
    second = Stage(
        "s1",
        OpClass.PARTITIONED if keys else OpClass.STATEFUL,
        above,
        edge,
        tuple(n for n in above if id(n) in results),
        keys,
        mergeable_windows(plan, prefix),
    )
    return StageGraph(plan, (first, second))


def mergeable_windows(plan: LogicalPlan, prefix: set[int]) -> tuple[WindowAggregate, ...]:
    """The window aggregates that may run on partial tables: all state of the plan is in them, they alone read
    stateless rows, and their aggregates merge exactly. Empty when one of them may not: then rows are routed anyway."""
    if any(id(o.node) in prefix for o in plan.outputs):
        return ()
    found: list[WindowAggregate] = []
    for node in plan.nodes():
        if input_keys(node) is None:
            if id(node) not in prefix and any(id(i) in prefix for i in node.inputs):
                return ()  # UNION ALL of windows and rows
            continue
        if not (isinstance(node, WindowAggregate) and id(node.input) in prefix and merges_exactly(node)):
            return ()
        if any(a.distinct for a in node.aggregates):
            return ()  # merging sets takes about as long as making them (segment statistics: no gain on two workers)
        found.append(node)
    return tuple(found)
