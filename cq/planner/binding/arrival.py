"""When the rows of undeclared sources come: files by path and inputs from Python.

A declared stream has its place in the text, and its owner can move it. Undeclared sources have none, so they come when
they cost least: those that a join looks up come before all other sources. Then the rows of the other side pass through
as they arrive, in their own order, where the join would otherwise keep them all. When all places are known, joins learn
whether their right rows come first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from cq.errors import Diagnostic
from cq.planner.binding.joins.mistakes import (
    rows_that_never_leave,
    rows_that_wait,
    side_that_never_comes,
    source_to_move,
)
from cq.planner.operators import Scan
from cq.planner.operators.joined import UntimedJoin, comes_before
from cq.planner.plan.logical import LogicalPlan, connected
from cq.planner.plan.node import LogicalNode, topological
from cq.planner.plan.source import SourceDef, sources_of
from cq.records import replace

Called = Sequence[tuple[LogicalNode, str]]


def in_order_of_arrival(
    plan: LogicalPlan, called: Called, undeclared: Collection[str]
) -> tuple[LogicalPlan, list[tuple[LogicalNode, str]]]:
    """The plan with the bounded undeclared sources on the right of joins first, and `called` of its nodes.

    Of several, those of the outermost join come first, then those of the joins on its left. A pipe stays where it is:
    nobody knows when it ends. CQ0406 where rows of a join would wait for an end that never comes.
    """
    first = [s for s in _looked_up(plan) if s.name in undeclared and s.bounded and not _is_pipe(s)]
    places = {s.name: s.position + len(first) for s in sources_of(plan.nodes())}
    places.update((s.name, n) for n, s in enumerate(first))
    done: dict[int, LogicalNode] = {}
    for node in plan.nodes():
        over = done[id(node)] = _placed(node, done, places)
        if isinstance(over, UntimedJoin) and not over.inputs_end:
            _demand_rows(over)
    outputs = tuple(replace(o, node=done[id(o.node)]) for o in plan.outputs)
    return LogicalPlan(outputs), [(done.get(id(n), n), name) for n, name in called]


def _placed(node: LogicalNode, done: Mapping[int, LogicalNode], places: Mapping[str, int]) -> LogicalNode:
    """The node over inputs that are `done`, with its sources at these positions."""
    if isinstance(node, Scan):
        return replace(node, source=replace(node.source, position=places[node.source.name]))
    over = node.with_inputs([done[id(i)] for i in node.inputs])
    if isinstance(over, UntimedJoin):
        return replace(over, right_first=comes_before(over.right, over.left))
    return over


def rows_that_never_come(plan: LogicalPlan) -> Iterator[Diagnostic]:
    """Warnings of operators whose rows leave when all inputs have ended, where one has no end; not of those below.

    Queries that share no source run one after the other, each until its own inputs have ended.
    """
    for query in connected(plan):
        yield from _awaited_in_vain(query.nodes())


def _awaited_in_vain(nodes: Collection[LogicalNode]) -> Iterator[Diagnostic]:
    endless = next((s for s in sources_of(nodes) if not s.bounded), None)
    if endless is None:
        return
    late = [n for n in nodes if n.emits_at_end]
    below = {id(i) for n in late for i in topological(n.inputs)}
    for node in late:
        if id(node) not in below:
            yield rows_that_wait(node, endless)


def _demand_rows(join: UntimedJoin) -> None:
    """CQ0406 for a join on an input without an end whose rows would wait for that end."""
    if join.emits_at_end:
        move = source_to_move(join)
        assert move is not None, "a join whose rows wait in any order"
        raise rows_that_never_leave(join, *move, _moves_in_a_circle(join))
    for side, other in ((join.right, join.left), (join.left, join.right)):
        if side.bounded and any(n.emits_at_end for n in topological((side,))):
            raise side_that_never_comes(side, other, join.span)


def _moves_in_a_circle(join: UntimedJoin) -> bool:
    """Whether some rows of the join wait for an end however often the next source in the way is declared earlier."""
    tried = set[tuple[str, ...]]()
    while join.emits_at_end:
        order = [s.name for s in sources_of(topological((join,)))]
        move = source_to_move(join)
        if move is None or tuple(order) in tried:
            return True
        tried.add(tuple(order))
        moved, before = (s.name for s in move)
        order.remove(moved)
        order.insert(order.index(before), moved)
        join = _in_order(join, order)
    return False


def _in_order(join: UntimedJoin, order: Sequence[str]) -> UntimedJoin:
    """The join as it would be if its sources came in this order."""
    done: dict[int, LogicalNode] = {}
    for node in topological((join,)):
        done[id(node)] = _placed(node, done, {name: n for n, name in enumerate(order)})
    placed = done[id(join)]
    assert isinstance(placed, UntimedJoin)
    return placed


def _is_pipe(source: SourceDef) -> bool:
    return source.option("connector") == "stdin"


def _looked_up(plan: LogicalPlan) -> list[SourceDef]:
    """The sources first reached on the right of a join, visiting the right of each join before its left."""
    found: dict[str, SourceDef] = {}
    seen: set[int] = set()
    passed: set[str] = set()
    todo = [(o.node, False) for o in reversed(plan.outputs)]
    while todo:
        node, on_the_right = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.source is not None and node.source.name not in passed:
            passed.add(node.source.name)
            if on_the_right:
                found[node.source.name] = node.source
        if isinstance(node, UntimedJoin):
            todo += [(node.left, on_the_right), (node.right, True)]
        else:
            todo += [(i, on_the_right) for i in reversed(node.inputs)]
    return list(found.values())
