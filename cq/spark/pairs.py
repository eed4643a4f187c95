"""Pairs of rows of two inputs: shared by the joins whose pairs are emitted with the later of their rows.

The rows of a side are a step with the keys `_k0`, `_k1`, …, the columns `_l0`, … or `_r0`, …, and the position.
"""

from __future__ import annotations

from collections.abc import Sequence

from cq.lang.expressions import Expr
from cq.planner.operators.joined import Joined
from cq.spark.context import Context
from cq.spark.position import END, CteRows, column_names, select_list

LEFT, RIGHT, ALONE = "0L", "1L", "2L"  # places within an event: pairs of left rows, of right rows, rows without a pair


def side(name: str, below: str, rows: CteRows, keys: Sequence[Expr], context: Context, more: str = "") -> str:
    """A step with the rows of a side. name: l or r.  below: where they are.  more: further columns, with a comma."""
    shown = [f"{context.text(k, rows.columns)} as _k{i}" for i, k in enumerate(keys)]
    shown += [f"{c} as _{name}{i}" for i, c in enumerate(rows.columns)]
    return context.step(name, f"select {', '.join(shown)},\n         {more}_w, _s, _o\n  from {below}")


def columns(node: Joined) -> list[str]:
    """The columns of both sides, left ones first."""
    names = (("l", node.left), ("r", node.right))
    return [f"_{name}{i}" for name, side in names for i, _ in enumerate(column_names(len(side.schema)))]


def condition(node: Joined, context: Context, *between: str) -> str:
    """The condition for two rows to form a pair. between: tested before the residual condition."""
    on = [f"l._k{i} = r._k{i}" for i in range(len(node.left_keys))] + [*between]
    if node.residual is not None:
        on.append(context.text(node.residual, columns(node)))
    return " and ".join(on) or "true"


def pairs(node: Joined, sides: Sequence[str], on: str) -> str:
    """A SELECT of the pairs: each comes at the later row's place within its event, then by the earlier one's position.

    Within one event left rows come first.
    """
    by_left = f"concat(array({LEFT}), l._o, array(r._w, r._s), r._o)"
    return (
        f"select {select_list(columns(node))},\n"
        f"         {_with_the_later('l.', 'r.', by_left)}\n"
        f"  from {sides[0]} as l join {sides[1]} as r\n    on {on}"
    )


def _with_the_later(left: str, right: str, by_left: str) -> str:
    """The position columns of what comes with the later of a left and a right row, whose own have these prefixes.

    by_left: the place within its event if that is the left one.
    """
    first = f"struct({left}_w, {left}_s) <= struct({right}_w, {right}_s)"
    by_right = f"concat(array({RIGHT}), {right}_o, array({left}_w, {left}_s), {left}_o)"
    return (
        f"if({first}, {right}_w, {left}_w) as _w, if({first}, {right}_s, {left}_s) as _s,\n"
        f"         if({first}, {by_right}, {by_left}) as _o"
    )


def first_matches(sides: Sequence[str], width: int, on: str, context: Context) -> str:
    """A SELECT of the left rows with a match, once each: with the later of itself and the first, as of pairs.

    width: columns of a left row.
    """
    own = [f"_l{i}" for i in range(width)]
    matched = context.step(
        "matched",
        f"select l._w, l._s, l._o, any_value(struct({', '.join(f'l.{c}' for c in own)})) as _row,\n"
        f"         min(struct(r._w, r._s, r._o)) as _r\n"
        f"  from {sides[0]} as l join {sides[1]} as r\n    on {on}\n  group by l._w, l._s, l._o",
    )
    place = _with_the_later("", "_r.", f"concat(array({LEFT}), _o)")
    return f"select {select_list([f'_row.{c}' for c in own])},\n         {place}\n  from {matched}"


def without_match(sides: Sequence[str], width: int, on: str, place: str) -> str:
    """A SELECT of the left rows without a match. width: their columns.  place: their position columns."""
    own = select_list([f"_l{i}" for i in range(width)])
    return f"select {own},\n         {place}\n  from {sides[0]} as l left anti join {sides[1]} as r\n    on {on}"


def without_pair(node: Joined, sides: Sequence[str], on: str, place: str, right: bool = False) -> str:
    """A SELECT of the left rows without a pair beside NULLs, or of the right ones. place: their position columns."""
    width = len(node.left.schema)
    nothing = [c if (i >= width) == right else "null" for i, c in enumerate(columns(node))]
    mine, other = (("r", sides[1]), ("l", sides[0])) if right else (("l", sides[0]), ("r", sides[1]))
    lonely = f"{mine[1]} as {mine[0]} left anti join {other[1]} as {other[0]}"
    return f"select {', '.join(nothing)},\n         {place}\n  from {lonely}\n    on {on}"


def at_end(name: str, port: str) -> str:
    """The position of a row without a pair: within one event left rows come first."""
    return f"{END} as _w, {END} as _s, concat(array({ALONE}, {name}._w, {name}._s, {port}), {name}._o) as _o"


def at_row() -> str:
    """The position of a left row without a pair that is emitted when it comes: where its pairs would be."""
    return f"l._w, l._s, concat(array({LEFT}), l._o) as _o"
