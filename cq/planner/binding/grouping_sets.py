"""GROUPING SETS, ROLLUP and CUBE: one aggregate operator for each set of keys, over shared rows, and UNION ALL of them.

Within an event a union reads its inputs in order, so results come by set as written, then by first arrival; each set
keeps only its own keys; the empty set has a row even without input; and windows close as they do without sets. One
operator over rows copied for each set would have none of this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

from cq.errors import CompileError, Span, compile_error
from cq.grammar import ast
from cq.lang.expressions import Expr, Literal
from cq.lang.types import BIGINT
from cq.planner.binding.calls import GroupingCall, SelectCalls
from cq.planner.binding.grouping import BoundGroups, group_rows
from cq.planner.binding.scope import Relation, Room, holes_of, projection
from cq.planner.operators import UnionAll, Windowed
from cq.planner.operators.window import FIRST_KEY
from cq.planner.plan.node import LogicalNode
from cq.records import replace

MAX_SETS = 64  # each is an operator with its own tables: CUBE of six keys

Keys = tuple[Expr, ...]


def sets_of(items: Sequence[ast.GroupItem], bind: Callable[[ast.Expr], Keys]) -> list[Keys]:
    """The keys of each set of a GROUP BY. bind: the key of an expression; none for the call that makes windows."""
    sets: list[Keys] = [()]
    for item in items:
        more = list(_sets(item, bind))
        if len(sets) * len(more) > MAX_SETS:
            raise compile_error(
                "CQ0103",
                f"GROUP BY has more than {MAX_SETS} grouping sets",
                item.span,
                help="name the sets you need: GROUPING SETS ((a, b), (a), ())",
            )
        sets = [(*a, *b) for a in sets for b in more]
    return sets


def _sets(item: ast.GroupItem, bind: Callable[[ast.Expr], Keys]) -> Iterator[Keys]:
    match item:
        case ast.GroupKeys(keys):
            yield tuple(k for key in keys for k in bind(key))
        case ast.GroupingSets("GROUPING SETS", items):
            for inner in items:
                yield from _sets(inner, bind)
        case ast.GroupingSets(kind, items):
            parts = [next(_sets(inner, bind)) for inner in items]
            chosen = _rolled(len(parts)) if kind == "ROLLUP" else product((True, False), repeat=len(parts))
            for _, there in zip(range(MAX_SETS + 1), chosen, strict=False):
                yield tuple(k for part, taken in zip(parts, there, strict=True) if taken for k in part)
        case _:
            yield bind(item)


def _rolled(parts: int) -> Iterator[tuple[bool, ...]]:
    """All parts, then one fewer each time."""
    for left in range(parts, -1, -1):
        yield (True,) * left + (False,) * (parts - left)


def group_by_sets(
    node: LogicalNode,
    relation: Relation,
    calls: SelectCalls,
    sets: Sequence[Keys],
    items: Sequence[tuple[str, Expr]],
    span: Span,
) -> BoundGroups:
    """The aggregate operators over `node` for the sets, as one; keys that a row's set leaves out are NULL."""
    everything = tuple(dict.fromkeys(k for keys in sets for k in keys))
    for call in calls.groupings:
        _check_grouping(call, everything)
    _check_sets(relation, calls, sets, span)
    made = [group_rows(node, relation, calls, keys, items, span) for keys in sets]
    bits = [[_grouping(call.keys or everything, keys) for call in calls.groupings] for keys in sets]
    if len(made) == 1:
        return replace(made[0], groupings=tuple(bits[0]))
    own = [FIRST_KEY * isinstance(g.node, Windowed) for g in made]
    if len(set(own)) > 1:
        raise _some_of_windows(span)
    first = own[0]
    keys = list(dict.fromkeys(e for g in made for e, index in g.indices.items() if index >= first))
    branches = [_branch(g, first, keys, bit, span) for g, bit in zip(made, bits, strict=True)]
    bounds = {e: index for e, index in made[0].indices.items() if index < first}
    indices = {**bounds, **{e: n for n, e in enumerate(keys, first)}}
    result = BoundGroups(UnionAll(tuple(branches), span=span), indices, first + len(keys))
    width = len(result.node.schema) - len(calls.groupings)
    return replace(result, groupings=tuple(result.column(width + n, span) for n in range(len(calls.groupings))))


def _check_sets(relation: Relation, calls: SelectCalls, sets: Sequence[Keys], span: Span) -> None:
    """CQ0502 unless all sets name the window that makes them, and for constants, which no set can leave out."""
    if len(sets) < 2:
        return
    named = {any(holes_of(k, Room.WINDOW) for k in keys) for keys in sets}
    if relation.window is not None and calls.group_window is None and len(named) > 1:
        raise _some_of_windows(span)
    if any(isinstance(k, Literal) for keys in sets for k in keys):
        raise compile_error(
            "CQ0502",
            "a constant cannot be a key of a grouping set",
            span,
            help="leave it out: it is the same in every row",
        )


def _some_of_windows(span: Span) -> CompileError:
    return compile_error(
        "CQ0502",
        "some grouping sets are of a window and others are not",
        span,
        help="name the window before the sets: GROUP BY window_start, window_end, ROLLUP(k)",
    )


def _branch(grouped: BoundGroups, first: int, keys: Sequence[Expr], bits: Sequence[Expr], span: Span) -> LogicalNode:
    """The results of one set in the columns of all: those of the window, the keys, the aggregates and the GROUPING
    calls."""
    fields = grouped.node.schema.fields
    at = [grouped.indices.get(k) for k in keys]
    shown = [
        grouped.column(index, span) if index is not None else Literal(k.type, True, None)
        for k, index in zip(keys, at, strict=True)
    ]
    names = [fields[index].name if index is not None else f"key{n}" for n, index in enumerate(at, 1)]
    rest = range(grouped.first_aggregate, len(fields))
    exprs = [
        *(grouped.column(i, span) for i in range(first)),
        *shown,
        *(grouped.column(i, span) for i in rest),
        *bits,
    ]
    named = [
        *(f.name for f in fields[:first]),
        *names,
        *(fields[i].name for i in rest),
        *(f"grouping{n}" for n in range(1, len(bits) + 1)),
    ]
    return projection(grouped.node, exprs, named, span)


def _grouping(asked: Keys, keys: Keys) -> Literal:
    """The bits of GROUPING: the first key is the highest; 1 stands for a key that the set leaves out."""
    value = 0
    for key in asked:
        value = 2 * value + (key not in keys)
    return Literal(BIGINT, False, value)


def _check_grouping(call: GroupingCall, keys: Keys) -> None:
    for key in call.keys:
        if key not in keys:
            raise compile_error(
                "CQ0404", "the arguments of GROUPING must be keys of GROUP BY", key.span, help="write it as in GROUP BY"
            )
    if len(call.keys or keys) > 63:
        raise compile_error("CQ0103", "GROUPING has a bit for each of at most 63 keys", call.span, help="ask for fewer")
