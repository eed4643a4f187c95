"""What Aggregate and WindowAggregate have in common: rows aggregated into groups by key, one result per group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from cq.lang.expressions import Expr, columns_of, remap, substitute
from cq.lang.schema import Field
from cq.planner.operators.one_input import OneInput
from cq.planner.operators.pruning import unless_same
from cq.planner.plan.calls import AggregateCall, Change
from cq.planner.plan.costs import DISTINCT_NS, GROUP_NS, key_ns
from cq.planner.plan.node import Indices, Inputs, LogicalNode, OpClass, Pruned, Pulled, Text, label
from cq.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Grouped(OneInput):
    """Output columns: `first_key` columns of the operator's own, the keys, the aggregates."""

    keys: tuple[Expr, ...]
    aggregates: tuple[AggregateCall, ...]
    key_names: tuple[str, ...] = label()
    aggregate_names: tuple[str, ...] = label()

    first_key: ClassVar[int]
    op_class = OpClass.PARTITIONED
    late_alone = False
    revises = True
    begins_groups_when_due = False
    looks_up_after = ()
    vouched = ()

    def columns(self) -> list[Field]:
        """The columns of the keys and the aggregates."""
        found = [Field(n, k.type, k.nullable) for n, k in zip(self.key_names, self.keys, strict=True)]
        calls = zip(self.aggregate_names, self.aggregates, strict=True)
        return found + [Field(n, a.type, a.nullable) for n, a in calls]

    @property
    def groups(self) -> LogicalNode | None:
        return self

    @property
    def input_keys(self) -> tuple[tuple[Expr, ...], ...] | None:
        return (self.keys,)

    def expressions(self) -> Iterator[tuple[Expr, Inputs]]:
        for e in (*self.keys, *(e for call in self.aggregates for e in call.expressions)):
            yield e, (0,)

    def map_expressions(self, change: Change) -> LogicalNode:
        keys = tuple(change(e) for e in self.keys)
        return replace(self, keys=keys, aggregates=tuple(c.map(change) for c in self.aggregates))

    @property
    def fails_itself(self) -> bool:
        return any(c.fails_itself for c in self.aggregates)

    def pull(self, expr: Expr) -> Pulled | None:
        keys = dict(enumerate(self.keys, self.first_key))
        if not columns_of(expr) <= keys.keys():
            return None
        return ((0, substitute(expr, [keys.get(c, expr) for c in range(len(self.schema))])),)

    def columns_counted(self, needed: set[int]) -> set[int]:
        """The columns that keys and aggregates read, for `columns_read`."""
        return columns_of(*self.keys, *(e for i in self._kept(needed) for e in self.aggregates[i].expressions))

    def _kept(self, needed: set[int]) -> list[int]:
        """The aggregates that stay: read by somebody, or able to fail."""
        first = self.first_key + len(self.keys)
        return [i for i, a in enumerate(self.aggregates) if first + i in needed or a.can_fail]

    def pruned(self, inputs: Sequence[Pruned], needed: set[int], read: Sequence[set[int]]) -> Pruned:
        ((below, indices),) = inputs
        kept, first = self._kept(needed), self.first_key + len(self.keys)
        new = replace(
            self,
            input=below,
            keys=tuple(remap(k, indices) for k in self.keys),
            aggregates=tuple(self.aggregates[i].map(lambda e: remap(e, indices)) for i in kept),
            aggregate_names=tuple(self.aggregate_names[i] for i in kept),
            **self.moved(indices),
        )
        at = {**{i: i for i in range(first)}, **{first + old: first + n for n, old in enumerate(kept)}}
        return Pruned(unless_same(self, new), at)

    def moved(self, indices: Indices) -> dict[str, Any]:
        """The operator's own fields that hold column positions, with new positions."""
        raise NotImplementedError

    @property
    def merges_exactly(self) -> bool:
        return all(a.merges_exactly for a in self.aggregates)

    @property
    def groups_kept(self) -> str:
        """What is kept for each group, for `state`."""
        return "groups with all their values" if any(a.keeps_values for a in self.aggregates) else "groups"

    @property
    def keeps_lists(self) -> bool:
        """Whether some aggregate keeps a set or a list of its values.

        Merging these takes about as long as filling them: two workers gained nothing for segment statistics, and took
        1.6 times the CPU of one for medians.
        """
        return any(a.distinct or a.keeps_values for a in self.aggregates)

    @property
    def counting_ns(self) -> int:
        """`cost_ns` when the entry of a group is found by its key."""
        return GROUP_NS + DISTINCT_NS * sum(a.distinct for a in self.aggregates) + key_ns(self.keys)

    def describe_calls(self) -> str:
        """The aggregates after a colon, with the names that operators above use for them; empty without any."""
        named = zip(self.aggregate_names, map(str, self.aggregates), strict=True)
        return ": " * bool(self.aggregates) + ", ".join(c if n == c else f"{c} AS {n}" for n, c in named)

    def group_parameters(self, text: Text) -> tuple[object, ...]:
        """Keys and aggregates, for `parameters`."""
        return (*(text((0,), k) for k in self.keys), *(self._call(n, text) for n in range(len(self.aggregates))))

    def call_meaning(self, column: int, text: Text) -> str:
        """The meaning of an aggregate's column, for `meaning`."""
        return self._call(column - self.first_key - len(self.keys), text)

    def _call(self, number: int, text: Text) -> str:
        return self.aggregates[number].parameters(lambda e: text((0,), e))
