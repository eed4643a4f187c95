"""Column pruning: columns nobody reads are not computed, and rows that wait are only as wide as they must be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cq.expressions import Column, Expr, can_fail, columns_of, remap
from cq.planner.logical import LogicalNode, LogicalPlan
from cq.planner.node_exprs import call_can_fail, call_expressions, change_aggregate, change_call
from cq.planner.operators import (
    Aggregate,
    Filter,
    Over,
    Project,
    Scan,
    TemporalJoin,
    UnionAll,
    Unnest,
    WindowAggregate,
)
from cq.planner.traits import FIRST_KEY

Places = dict[int, int]  # position of a column before -> after


def prune(plan: LogicalPlan) -> LogicalPlan:
    """Op(x) = Op(Project(c, x)) where c are the columns Op reads, and a computed column or aggregate nobody reads is
    left out, if it cannot fail: an error that would stop the query must still stop it.

    Sources deliver all their columns, so what cannot be read there is still noticed. Projections are put in only below
    operators where rows wait, or are kept.
    """
    nodes = plan.nodes()
    needs = Needs({id(n): set() for n in nodes})
    for output in plan.outputs:
        needs.add(output.node, range(len(output.node.schema)))
    for node in reversed(nodes):
        needs.below(node)
    done: dict[int, tuple[LogicalNode, Places]] = {}
    for node in nodes:
        done[id(node)] = _pruned(node, [done[id(i)] for i in node.inputs], needs)
    outputs = []
    for output in plan.outputs:
        node, places = done[id(output.node)]
        kept = [places[i] for i in range(len(output.node.schema))]
        if kept != list(range(len(node.schema))):
            node = _columns(node, kept)
        outputs.append(replace(output, node=node))
    return LogicalPlan(tuple(outputs))


@dataclass(frozen=True, slots=True)
class Needs:
    """Which columns of each node somebody reads, by id(node)."""

    columns: dict[int, set[int]] = field(default_factory=dict)

    def of(self, node: LogicalNode) -> set[int]:
        return self.columns[id(node)]

    def add(self, node: LogicalNode, columns: Sequence[int] | set[int] | range) -> None:
        self.columns[id(node)].update(columns)

    def below(self, node: LogicalNode) -> None:
        """Note what `node` reads of its inputs, given what is read of it."""
        mine = self.of(node)
        if not mine:
            mine.add(0)  # rows that are only counted still have a column
        match node:
            case Filter(input=below, predicate=p):
                self.add(below, mine | columns_of(p))
            case Project(input=below, exprs=exprs):
                self.add(below, columns_of(*(exprs[i] for i in kept_exprs(node, mine))))
            case UnionAll(branches=branches):
                for b in branches:
                    self.add(b, mine)
            case WindowAggregate(input=below, window=window, keys=keys):
                own = {window.time.column} | ({window.start_column} if window.start_column >= 0 else set())
                self.add(below, own | columns_of(*keys, *_arguments(node, mine)))
            case Aggregate(input=below, keys=keys):
                self.add(below, columns_of(*keys, *_arguments(node, mine)))
            case Over(input=below, partition=partition, order=order):
                own = {c for c in mine if c < len(below.schema)}
                calls = [e for i in kept_overs(node, mine) for e in call_expressions(node.calls[i])]
                self.add(below, own | columns_of(*partition, *calls) | ({order.column} if order is not None else set()))
            case Unnest(input=below, array=array):
                self.add(below, {c for c in mine if c < len(below.schema)} | columns_of(array))
            case TemporalJoin(left=left, right=right):
                width = len(left.schema)
                mine = mine | (columns_of(node.residual) if node.residual is not None else set())
                self.add(left, {c for c in mine if c < width} | columns_of(*node.left_keys) | {node.left_time.column})
                self.add(right, {c - width for c in mine if c >= width} | columns_of(*node.right_keys))
            case Scan():
                pass


def kept_exprs(node: Project, needed: set[int]) -> list[int]:
    """The expressions of a projection that stay: read by somebody, or able to fail."""
    return [i for i, e in enumerate(node.exprs) if i in needed or can_fail(e)]


def kept_aggregates(node: WindowAggregate | Aggregate, needed: set[int]) -> list[int]:
    """The aggregates that stay: read by somebody, or able to fail."""
    first = len(node.schema) - len(node.aggregates)
    return [i for i, a in enumerate(node.aggregates) if first + i in needed or call_can_fail(a)]


def kept_overs(node: Over, needed: set[int]) -> list[int]:
    """The OVER calls that stay: read by somebody, or able to fail; one at least where Over drops late rows, or the
    partition may fail."""
    first = len(node.input.schema)
    kept = [i for i, c in enumerate(node.calls) if first + i in needed or call_can_fail(c)]
    return kept or ([0] if node.order is not None or any(map(can_fail, node.partition)) else [])


def _arguments(node: WindowAggregate | Aggregate, needed: set[int]) -> list[Expr]:
    return [e for i in kept_aggregates(node, needed) for e in call_expressions(node.aggregates[i])]


def _pruned(node: LogicalNode, inputs: list[tuple[LogicalNode, Places]], needs: Needs) -> tuple[LogicalNode, Places]:
    """The node over pruned inputs, and where its columns went."""
    mine = needs.of(node)
    match node:
        case Filter(predicate=p):
            below, places = inputs[0]
            return _same_or(node, replace(node, input=below, predicate=remap(p, places))), places
        case Project():
            return _project(node, *inputs[0], mine)
        case UnionAll():
            return _union(node, inputs, mine)
        case WindowAggregate() | Aggregate():
            return _aggregate(node, *inputs[0], mine)
        case Over():
            return _over(node, *inputs[0], mine, needs)
        case Unnest(array=array):
            below, places = inputs[0]
            added = range(len(node.input.schema), len(node.schema))
            new = _same_or(node, replace(node, input=below, array=remap(array, places)))
            return new, {**places, **{c: len(below.schema) + n for n, c in enumerate(added)}}
        case TemporalJoin():
            return _join(node, inputs, needs)
        case _:
            return node, {i: i for i in range(len(node.schema))}


def _same_or(node: LogicalNode, new: LogicalNode) -> LogicalNode:
    """The old node where nothing changed, so that its identity is kept."""
    if any(a is not b for a, b in zip(new.inputs, node.inputs, strict=True)):
        return new
    return node if new == node else new


def _project(node: Project, below: LogicalNode, places: Places, mine: set[int]) -> tuple[LogicalNode, Places]:
    kept = kept_exprs(node, mine)
    time = node.time_column
    new = replace(
        node,
        input=below,
        exprs=tuple(remap(node.exprs[i], places) for i in kept),
        names=tuple(node.names[i] for i in kept),
        time_column=kept.index(time) if time is not None and time in kept else None,
    )
    return _same_or(node, new), {old: n for n, old in enumerate(kept)}


def _union(node: UnionAll, inputs: list[tuple[LogicalNode, Places]], mine: set[int]) -> tuple[LogicalNode, Places]:
    """All branches with the same columns: those somebody reads, in order."""
    kept = sorted(mine)
    branches = []
    for below, places in inputs:
        at = [places[c] for c in kept]
        branches.append(below if at == list(range(len(below.schema))) else _columns(below, at))
    return _same_or(node, replace(node, branches=tuple(branches))), {old: n for n, old in enumerate(kept)}


def _aggregate(
    node: WindowAggregate | Aggregate, below: LogicalNode, places: Places, mine: set[int]
) -> tuple[LogicalNode, Places]:
    kept = kept_aggregates(node, mine)
    calls = tuple(change_aggregate(node.aggregates[i], lambda e: remap(e, places)) for i in kept)
    names = tuple(node.aggregate_names[i] for i in kept)
    keys = tuple(remap(k, places) for k in node.keys)
    first = len(node.schema) - len(node.aggregates)
    at = {**{i: i for i in range(first)}, **{first + old: first + n for n, old in enumerate(kept)}}
    if isinstance(node, Aggregate):
        return _same_or(node, replace(node, input=below, keys=keys, aggregates=calls, aggregate_names=names)), at
    window = node.window
    start = places[window.start_column] if window.start_column >= 0 else -1
    window = replace(window, time=replace(window.time, column=places[window.time.column]), start_column=start)
    assert first == FIRST_KEY + len(keys)
    new = replace(node, input=below, window=window, keys=keys, aggregates=calls, aggregate_names=names)
    return _same_or(node, new), at


def _over(node: Over, below: LogicalNode, places: Places, mine: set[int], needs: Needs) -> tuple[LogicalNode, Places]:
    kept = kept_overs(node, mine)
    if not kept:
        return below, {c: p for c, p in places.items() if c < len(node.input.schema)}
    if node.order is not None:  # rows may wait for the watermark
        below, places = _narrow(below, places, needs.of(node.input))
    order = replace(node.order, column=places[node.order.column]) if node.order is not None else None
    new = replace(
        node,
        input=below,
        partition=tuple(remap(k, places) for k in node.partition),
        order=order,
        calls=tuple(change_call(node.calls[i], lambda e: remap(e, places)) for i in kept),
        names=tuple(node.names[i] for i in kept),
    )
    first = len(node.input.schema)
    added = {first + old: len(below.schema) + n for n, old in enumerate(kept)}
    return _same_or(node, new), {**places, **added}


def _join(node: TemporalJoin, inputs: list[tuple[LogicalNode, Places]], needs: Needs) -> tuple[LogicalNode, Places]:
    (right, right_places), (left, left_places) = inputs
    left, left_places = _narrow(left, left_places, needs.of(node.left))
    right, right_places = _narrow(right, right_places, needs.of(node.right))
    width, new_width = len(node.left.schema), len(left.schema)
    places = {**left_places, **{width + c: new_width + p for c, p in right_places.items()}}
    new = replace(
        node,
        left=left,
        right=right,
        left_time=replace(node.left_time, column=left_places[node.left_time.column]),
        left_keys=tuple(remap(k, left_places) for k in node.left_keys),
        right_keys=tuple(remap(k, right_places) for k in node.right_keys),
        residual=remap(node.residual, places) if node.residual is not None else None,
    )
    return _same_or(node, new), places


def _narrow(node: LogicalNode, places: Places, needed: set[int]) -> tuple[LogicalNode, Places]:
    """`node` with only the needed columns, through a projection where it has more."""
    kept = sorted(needed)
    if len(kept) == len(node.schema):
        return node, places
    return _columns(node, [places[c] for c in kept]), {c: n for n, c in enumerate(kept)}


def _columns(node: LogicalNode, columns: list[int]) -> LogicalNode:
    """These columns of `node`, in this order."""
    fields = node.schema.fields
    exprs = tuple(Column(fields[c].type, fields[c].nullable, c, fields[c].name) for c in columns)
    return Project(node, exprs, tuple(fields[c].name for c in columns), span=node.span)
