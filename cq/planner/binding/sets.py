"""DISTINCT, UNION, INTERSECT and EXCEPT, built from operators that count equal rows.

Rows are equal as the keys of a group are: column by column, NULL like NULL, NaN like NaN, 0.0 like -0.0. All forms but
EXCEPT emit input rows unchanged at their own positions, so they run on endless inputs too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cq.errors import Span, amount, compile_error
from cq.grammar import inline
from cq.lang.casts import castable
from cq.lang.expressions import Case, Column, Expr, Literal, conjunction
from cq.lang.types import BOOLEAN, NULL, VARCHAR, DataType, common_type
from cq.planner.binding.built_expressions import aggregate_call, columns, compared, integer
from cq.planner.binding.calls import SelectCalls
from cq.planner.binding.conversion import convert
from cq.planner.binding.grouping import group_rows
from cq.planner.binding.scope import projection, relation_of
from cq.planner.binding.traits import window_bound
from cq.planner.operators import Filter, Over, Project, UnionAll
from cq.planner.operators.window import WINDOW_END, WINDOW_START
from cq.planner.plan.node import LogicalNode
from cq.records import replace

LEFT, RIGHT = integer(0), integer(1)


def first_of_each(node: LogicalNode, keys: Sequence[Expr], span: Span) -> LogicalNode:
    """The first row by position of those with equal keys."""
    numbered = _numbered(node, keys, span)
    number = columns(numbered)[-1]
    return _narrowed(Filter(numbered, compared("=", number, integer(1), span), span=span), node)


def distinct(node: LogicalNode, span: Span) -> LogicalNode:
    """The first of equal rows."""
    return first_of_each(node, columns(node), span)


def combined(op: str, all_: bool, inputs: Sequence[LogicalNode], spans: Sequence[Span]) -> LogicalNode:
    """`a op b op c`, columns by position. CQ0307 when they do not match."""
    name = f"{op} ALL" if all_ else op
    branches = _alike(name, inputs, spans)
    span = spans[0].to(spans[-1])
    match op:
        case "UNION":
            rows: LogicalNode = UnionAll(branches, span=span)
            return rows if all_ else distinct(rows, span)
        case "INTERSECT":
            rows = branches[0]
            for other in branches[1:]:
                rows = _intersection(rows, other, all_, span)
            return rows
        case _:
            others = branches[1] if len(branches) == 2 else UnionAll(branches[1:], span=span)
            return _difference(name, branches[0], others, all_, span)


def _intersection(left: LogicalNode, right: LogicalNode, all_: bool, span: Span) -> LogicalNode:
    """The rows that raise the smaller of the two counts of equal rows; without ALL, those that raise it to 1.

    So a row is emitted when its counterpart on the other side has come.
    """
    both = _beside(left, right, span)
    *values, side = columns(both)
    calls = tuple(aggregate_call("count", condition=compared("=", side, which, span)) for which in (LEFT, RIGHT))
    counted = Over(both, tuple(values), None, calls, ("left_rows", "right_rows"), span=span)
    *_, lefts, rights = columns(counted)
    conditions = [_raised(mine, other, all_, span) for mine, other in ((lefts, rights), (rights, lefts))]
    of_left = compared("=", side, LEFT, span)
    grown = Case(BOOLEAN, False, ((of_left, conditions[0]),), conditions[1])
    return _narrowed(Filter(counted, grown, span=span), left)


def _raised(mine: Expr, other: Expr, all_: bool, span: Span) -> Expr:
    """Whether the row, which is counted in `mine`, raised the smaller count (to 1)."""
    if all_:
        return compared("<=", mine, other, span)
    return conjunction((compared("=", mine, integer(1), span), compared(">=", other, integer(1), span)))


def _difference(name: str, left: LogicalNode, right: LogicalNode, all_: bool, span: Span) -> LogicalNode:
    """The left rows that equal no right row; with ALL the nth of equal rows counts as a row with n.

    They are emitted when the input has ended or, if both sides have the columns of a window, with the window.
    """
    width = len(left.schema)
    if all_:
        left, right = (_numbered(side, columns(side), span) for side in (left, right))
    both = _beside(left, right, span)
    *values, side = columns(both)
    bounds = {window_bound(both, c) for c in range(width)}
    if not both.bounded and not {WINDOW_START, WINDOW_END} <= bounds:
        raise compile_error(
            "CQ0406",
            f"{name} would wait for the end of an unbounded input",
            span,
            help="select window_start and window_end of a window on both sides: its rows leave when it closes",
        )
    calls = SelectCalls({})
    calls.aggregates.append(aggregate_call("max", side))
    grouped = group_rows(both, relation_of(both, None, name), calls, values, (), span)
    rightmost = grouped.column(grouped.first_aggregate, span)
    kept = Filter(grouped.node, compared("=", rightmost, LEFT, span), span=span)
    return projection(kept, [grouped.above(c) for c in values[:width]], left.schema.names[:width], span)


def _beside(left: LogicalNode, right: LogicalNode, span: Span) -> LogicalNode:
    """The rows of both sides, with their side as the last column."""
    sides = []
    for node, side in ((left, LEFT), (right, RIGHT)):
        sides.append(projection(node, [*columns(node), side], [*left.schema.names, "side"], span))
    return UnionAll(tuple(sides), span=span)


def _numbered(node: LogicalNode, keys: Sequence[Expr], span: Span) -> LogicalNode:
    """The rows, numbered among those with equal keys, as the last column."""
    return Over(node, tuple(keys), None, (aggregate_call("count", span=span),), ("number",), span=span)


def _narrowed(node: LogicalNode, like: LogicalNode) -> LogicalNode:
    """`node` with only the first columns: those of `like`."""
    return projection(node, columns(node)[: len(like.schema)], like.schema.names, node.span)


# ------------------------------------------------------------------------------------------------------------- columns


def named_alike(inputs: Sequence[LogicalNode], spans: Sequence[Span]) -> list[LogicalNode]:
    """The inputs with the columns of all of them, in order of appearance; NULL where one lacks a column.

    Names are compared without regard to case. CQ0307 for two columns with one name.
    """
    names: dict[str, str] = {}
    for node, span in zip(inputs, spans, strict=True):
        own = [name.lower() for name in node.schema.names]
        twice = next((name for i, name in enumerate(node.schema.names) if own.index(name.lower()) < i), None)
        if twice is not None:
            cause = f'two columns are called "{twice}" on one side of UNION BY NAME'
            raise compile_error("CQ0307", cause, span, help="rename one of them: AS name")
        for name in node.schema.names:
            names.setdefault(name.lower(), name)
    return [_with_names(node, names, span) for node, span in zip(inputs, spans, strict=True)]


def _with_names(node: LogicalNode, names: Mapping[str, str], span: Span) -> LogicalNode:
    there = {name.lower(): column for name, column in zip(node.schema.names, columns(node), strict=True)}
    if list(there) == list(names):
        return node
    exprs = [there.get(name, Literal(NULL, True, None)) for name in names]
    return projection(node, exprs, tuple(names.values()), span)


def _alike(name: str, inputs: Sequence[LogicalNode], spans: Sequence[Span]) -> tuple[LogicalNode, ...]:
    """The inputs with their columns converted to their common types, by position."""
    first = inputs[0]
    types = [f.type for f in first.schema.fields]
    untyped = [_is_null(first, i) for i in range(len(types))]  # NULL in every row so far
    for node, span in zip(inputs[1:], spans[1:], strict=True):
        if len(node.schema) != len(types):
            raise compile_error(
                "CQ0307",
                f"the inputs of {name} have {len(types)} and {len(node.schema)} columns",
                span,
                label=amount(len(node.schema), "column"),
                help="select the same columns on both sides",
            )
        own, others = ([n.lower() for n in x.schema.names] for x in (node, first))
        turned = name.startswith("UNION") and own != others and sorted(own) == sorted(others)
        for i, f in enumerate(node.schema.fields):
            if _is_null(node, i):
                continue
            common = f.type if untyped[i] else common_type(types[i], f.type)
            if common is None:
                cause = f'column {i + 1} of {name} is {types[i]} ("{first.schema.names[i]}") and {f.type} ("{f.name}")'
                cast = _cast_of(_written(node, i), f.type, _written(first, i), types[i])
                help = f"the names are the same in another order: write {name} BY NAME" if turned else cast
                raise compile_error("CQ0307", cause, span, help=help)
            types[i], untyped[i] = common, False
    return tuple(as_types(node, types) for node in inputs)


def _cast_of(name: str, given: DataType, other: str, wanted: DataType) -> str:
    """The cast that gives two columns one type: one that fails for no value, where there is one."""
    if castable(given, wanted) and not (given == VARCHAR and castable(wanted, given)):
        return f"CAST one of them: CAST({name} AS {wanted})"
    if castable(wanted, given):
        return f"CAST one of them: CAST({other} AS {given})"
    return f"CAST both: CAST({other} AS VARCHAR) and CAST({name} AS VARCHAR)"


def _written(node: LogicalNode, column: int) -> str:
    """A column of an input as its own query can write it, behind its alias; … for an expression with one."""
    expr = node.exprs[column] if isinstance(node, Project) else None
    if expr is None or isinstance(expr, Column):
        return inline.name(node.schema.names[column] if expr is None else expr.name)
    return "…"


def _is_null(node: LogicalNode, column: int) -> bool:
    """Whether a column is the constant NULL: it takes the type of the others."""
    expr = node.exprs[column] if isinstance(node, Project) else None
    return isinstance(expr, Literal) and expr.value is None


def as_types(node: LogicalNode, types: list[DataType]) -> LogicalNode:
    """`node` with its columns converted."""
    if isinstance(node, Project):
        exprs: tuple[Expr, ...] = tuple(convert(e, t) for e, t in zip(node.exprs, types, strict=True))
        return node if exprs == node.exprs else replace(node, exprs=exprs)
    return projection(
        node, [convert(c, t) for c, t in zip(columns(node), types, strict=True)], node.schema.names, node.span
    )
