"""StageInput: rows of an earlier stage, in place of the operator that makes them. It exists in stages only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cq.lang.expressions import Expr
from cq.planner.operators.pruning import only
from cq.planner.plan.calls import Change
from cq.planner.plan.node import Inputs, Leaf, LogicalNode, Pruned, Text
from cq.planner.plan.registration import operator
from cq.records import dataclass, replace


@operator("stage_input")
@dataclass(frozen=True, slots=True)
class StageInput(Leaf):
    """The rows of `node`, which runs in an earlier stage. One event may bring several of them."""

    node: LogicalNode

    source = None
    fan_out = None
    may_drop = False
    uses_time = False
    late_alone = False
    fails_itself = False
    cost_ns = 0
    vouched = ()

    def __post_init__(self) -> None:
        self._set_schema(self.node.schema)

    @property
    def ends(self) -> bool:
        return self.node.bounded

    def expressions(self) -> Iterator[tuple[Expr, Inputs]]:
        return iter(())

    def map_expressions(self, change: Change) -> LogicalNode:
        return self

    def pruned(self, inputs: Sequence[Pruned], needed: set[int], read: Sequence[set[int]]) -> Pruned:
        """The rows with the columns that are read: no others cross."""
        kept = sorted(needed)
        return Pruned(replace(self, node=only(self.node, kept)), {c: n for n, c in enumerate(kept)})

    def check(self) -> None:
        """Nothing to add: it was checked when it was built."""

    def parameters(self, text: Text) -> tuple[object, ...]:
        return (self.node.identity,)

    def meaning(self, column: int, text: Text) -> str:
        return str(column)

    def describe(self) -> str:
        return f"rows of {self.node.operator}"
