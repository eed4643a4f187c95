"""Window functions expressed through others: LEAD, NTILE, PERCENT_RANK, CUME_DIST."""

from __future__ import annotations

from collections.abc import Callable

from cq.errors import Span, compile_error
from cq.grammar import ast
from cq.planner.binding.frames import refuse_frame
from cq.planner.binding.functions.names import unnamed
from cq.records import replace

Expand = Callable[[ast.Call, tuple[ast.Expr, ...], ast.WindowSpec], ast.Expr]


def expanded(node: ast.Call, spec: ast.WindowSpec) -> ast.Expr | None:
    """A call as an expression of other calls over the same rows; None if it needs no rewriting."""
    expand = EXPANDED.get(node.name)
    if expand is None or (node.name == "lead" and node.nulls == "IGNORE"):
        return None
    name = node.name.upper()
    arguments = plain_arguments(node)
    if node.nulls is not None and node.name != "lead":
        raise compile_error(
            "CQ0302", f"{name} takes neither IGNORE NULLS nor RESPECT NULLS", node.span, help="leave it out"
        )
    refuse_frame(node, spec)
    if not spec.order_by and node.name != "lead":
        raise compile_error(
            "CQ0302",
            f"{name} needs an ORDER BY in OVER: without one all rows are peers",
            node.span,
            help=f"write {name}({'4' if node.name == 'ntile' else ''}) OVER (PARTITION BY … ORDER BY …)",
        )
    return expand(replace(node, nulls=None), arguments, spec)


def plain_arguments(node: ast.Call) -> tuple[ast.Expr, ...]:
    """The arguments of a call. CQ0501 for what only aggregates allow, CQ0302 for arguments with names."""
    if node.distinct or node.within or node.filter is not None or node.star or node.order_by:
        raise compile_error(
            "CQ0501",
            f"{node.name.upper()} with DISTINCT, WITHIN GROUP, FILTER or * is not supported",
            node.span,
            help="filter the rows in a derived table first",
        )
    return unnamed(node)


def _lead(node: ast.Call, args: tuple[ast.Expr, ...], spec: ast.WindowSpec) -> ast.Expr:
    """LEAD(x[, n[, default]]): the first value of the frame that is the n-th row after the row."""
    if not 1 <= len(args) <= 3:
        what = "LEAD takes a value, a number of rows and a default"
        raise compile_error("CQ0302", what, node.span, help="LEAD(x, 1)")
    value, offset, *default = args if len(args) > 1 else (*args, _number("1", node.span))
    demand_count(node, offset, least=0)
    bound = ast.FrameBound("FOLLOWING", offset, span=offset.span)
    there = replace(spec, frame=ast.Frame("ROWS", bound, bound, span=node.span))
    found = replace(node, name="first_value", args=(value,), over=there)
    if not default:
        return found
    none = _binary("=", _count(node, there), _number("0", node.span), node.span)
    return ast.Case(None, (ast.When(none, default[0], span=node.span),), found, span=node.span)


def _ntile(node: ast.Call, args: tuple[ast.Expr, ...], spec: ast.WindowSpec) -> ast.Expr:
    """NTILE(b): the first n % b tiles of n rows have one row more than the n / b of the others."""
    at = node.span
    if len(args) != 1:
        raise compile_error("CQ0302", "NTILE takes the number of tiles", at, help="NTILE(4)")
    tiles = args[0]
    demand_count(node, tiles, least=1)
    rows, one = _count(node, _all_of(spec, at)), _number("1", at)
    number = replace(node, name="row_number", args=(), over=spec)
    few = _binary("/", rows, tiles, at)
    many = _binary("+", few, one, at)
    longer = _binary("-", rows, _binary("*", few, tiles, at), at)
    within = _binary("*", longer, many, at)
    first = _binary("+", _binary("/", _binary("-", number, one, at), many, at), one, at)
    behind = _binary("-", _binary("-", number, within, at), one, at)
    other = _binary("+", _binary("+", _binary("/", behind, few, at), longer, at), one, at)
    return ast.Case(None, (ast.When(_binary("<=", number, within, at), first, span=at),), other, span=at)


def _percent_rank(node: ast.Call, args: tuple[ast.Expr, ...], spec: ast.WindowSpec) -> ast.Expr:
    """PERCENT_RANK(): (RANK - 1) / (rows - 1), and 0 for a single row."""
    _demand_nothing(node, args)
    at, one = node.span, _number("1", node.span)
    rows = _count(node, _all_of(spec, at))
    before = _binary("-", replace(node, name="rank", over=spec), one, at)
    share = _binary("/", _binary("*", before, _number("1e0", at), at), _binary("-", rows, one, at), at)
    single = ast.When(_binary("=", rows, one, at), _number("0e0", at), span=at)
    return ast.Case(None, (single,), share, span=at)


def _cume_dist(node: ast.Call, args: tuple[ast.Expr, ...], spec: ast.WindowSpec) -> ast.Expr:
    """CUME_DIST(): the rows up to the last peer, as a share of all."""
    _demand_nothing(node, args)
    at = node.span
    up_to_peers = _binary("*", _count(node, spec), _number("1e0", at), at)
    return _binary("/", up_to_peers, _count(node, _all_of(spec, at)), at)


EXPANDED: dict[str, Expand] = {
    "lead": _lead, "ntile": _ntile, "percent_rank": _percent_rank, "cume_dist": _cume_dist,
}  # fmt: skip


def _all_of(spec: ast.WindowSpec, at: Span) -> ast.WindowSpec:
    """All rows of the partition, in the same order: one operator computes everything with that order."""
    first, last = ast.FrameBound("UNBOUNDED PRECEDING", span=at), ast.FrameBound("UNBOUNDED FOLLOWING", span=at)
    return replace(spec, frame=ast.Frame("ROWS", first, last, span=at))


def _count(node: ast.Call, spec: ast.WindowSpec) -> ast.Expr:
    return replace(node, name="count", args=(), star=True, over=spec)


def _number(text: str, at: Span) -> ast.Expr:
    return ast.NumberLiteral(text, span=at)


def _binary(op: ast.BinaryOperator, left: ast.Expr, right: ast.Expr, at: Span) -> ast.Expr:
    return ast.Binary(op, left, right, span=at, op_span=at)


def demand_count(node: ast.Call, given: ast.Expr, least: int) -> None:
    """CQ0302 for anything but a constant whole number."""
    if not (isinstance(given, ast.NumberLiteral) and given.text.isdigit() and int(given.text) >= least):
        name, what = node.name.upper(), "tiles" if node.name == "ntile" else "rows"
        example = "NTILE(4)" if node.name == "ntile" else f"{name}(x, 1)"
        raise compile_error(
            "CQ0302", f"{name} takes a constant number of {what}, at least {least}", given.span, help=example
        )


def _demand_nothing(node: ast.Call, args: tuple[ast.Expr, ...]) -> None:
    if args:
        raise compile_error(
            "CQ0302",
            f"{node.name.upper()} takes no arguments",
            node.span,
            help=f"write {node.name.upper()}() OVER (PARTITION BY … ORDER BY …)",
        )
