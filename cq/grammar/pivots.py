"""PIVOT and UNPIVOT: short forms of aggregates with FILTER, and of one row for each of several columns.

`s PIVOT (SUM(q) FOR k IN ('a', 'b'))` is SELECT * EXCLUDE (q, k), SUM(q) FILTER (WHERE k = 'a') AS a, … FROM s GROUP BY
ALL, and `s UNPIVOT (v FOR n IN (a, b))` is s beside an array of the numbers of its columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cq.errors import Span, compile_error
from cq.grammar import ast, inline
from cq.grammar.ast.nodes import walk
from cq.records import replace

_PLACE = "$place"  # the number of a column that became a row; no query can write it


def pivoted(
    source: ast.Relation,
    aggregates: Sequence[ast.SelectItem],
    key: ast.ColumnRef,
    values: Sequence[ast.SelectItem],
    group_by: tuple[ast.Expr, ...],
    at: Span,
) -> ast.Select:
    """One column for each value of `key` and each aggregate, beside the columns of GROUP BY, or all remaining ones."""
    calls = [(item, _aggregate(item)) for item in aggregates]
    plain = len(calls) == 1 and calls[0][0].alias is None
    columns = [
        ast.SelectItem(_of_value(call, key, v.expr), _title(v, None if plain else item), span=item.span)
        for v in values
        for item, call in calls
    ]
    if group_by:
        return ast.Select((*(ast.SelectItem(g, span=g.span) for g in group_by), *columns), (source,), None, group_by,
                          span=at)  # fmt: skip
    read = (n for call in (*(c for _, c in calls), key) for n in walk(call) if isinstance(n, ast.ColumnRef))
    rest = ast.Star(exclude=_each_once(read), span=at)
    return ast.Select((rest, *columns), (source,), group_all=True, span=at)


def _aggregate(item: ast.SelectItem) -> ast.Call:
    if not isinstance(item.expr, ast.Call) or item.expr.over is not None:
        raise compile_error(
            "CQ0501",
            "PIVOT takes aggregates alone",
            item.expr.span,
            help="write SUM(x), MAX(x), COUNT(*) …, and compute with its columns in the outer query",
        )
    return item.expr


def _of_value(call: ast.Call, key: ast.ColumnRef, value: ast.Expr) -> ast.Call:
    """The aggregate of the rows that have the value."""
    at = value.span
    here: ast.Expr = ast.Binary("IS NOT DISTINCT FROM", key, value, span=at, op_span=at)
    return replace(call, filter=here if call.filter is None else ast.Logical("AND", (call.filter, here), span=at))


def _title(value: ast.SelectItem, item: ast.SelectItem | None) -> str:
    """The name of a column: its value, and the aggregate's name if it has one, or there are several."""
    said = value.expr.value if isinstance(value.expr, ast.StringLiteral) else inline.expr(value.expr)
    first = value.alias or said
    return first if item is None else f"{first}_{item.alias or inline.expr(item.expr).lower()}"


def _each_once(refs: Iterable[ast.ColumnRef]) -> tuple[ast.ColumnRef, ...]:
    return tuple({r.name: replace(r, qualifier=None) for r in refs}.values())


def unpivoted(
    source: ast.Relation,
    names: tuple[str, str],
    columns: Sequence[ast.SelectItem],
    with_nulls: bool,
    at: Span,
) -> ast.Select:
    """One row for each of the columns, with the name of the column and its value. names: of these two columns."""
    name, value = names
    refs = [c.expr for c in columns if isinstance(c.expr, ast.ColumnRef)]
    place = ast.ColumnRef(_PLACE, span=at, name_span=at)
    numbers = [ast.NumberLiteral(str(n), span=at) for n, _ in enumerate(columns, 1)]
    titles = [ast.StringLiteral(c.alias or r.name, span=r.span) for c, r in zip(columns, refs, strict=True)]
    shown = (
        ast.Star(exclude=_each_once((*refs, place)), span=at),
        ast.SelectItem(_chosen(place, numbers, titles, at), name, span=at),
        ast.SelectItem(_chosen(place, numbers, refs, at), value, span=at),
    )
    each = ast.Unnest((ast.ArrayLiteral(tuple(numbers), span=at),), alias="$places", columns=(_PLACE,), span=at)
    there = ast.IsTest(shown[2].expr, "NULL", True, span=at)
    return ast.Select(shown, (source, each), None if with_nulls else there, span=at)


def _chosen(place: ast.Expr, numbers: Sequence[ast.Expr], results: Sequence[ast.Expr], at: Span) -> ast.Case:
    """The result whose number the place is."""
    branches = (ast.When(n, r, span=at) for n, r in zip(numbers, results, strict=True))
    return ast.Case(place, tuple(branches), span=at)
