"""Conditions rewritten: rows of values, comparisons with all values of a query or an array, BETWEEN SYMMETRIC.

They are short forms: each is built from plain comparisons and sub-queries, with the same treatment of NULLs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cq.errors import CompileError, Span, compile_error
from cq.grammar import ast
from cq.records import dataclass, replace

ROWS, _VALUE = "$rows", "$value"  # names that hide none in the enclosing query
OF_ROWS = frozenset(["=", "<>", "<", "<=", ">", ">="])
_LEAST_OF_ANY = {">": "MIN", ">=": "MIN", "<": "MAX", "<=": "MAX"}
_OTHER = {"MIN": "MAX", "MAX": "MIN"}
_NO_ROWS, _NO_NULL, _SOME_NULL = "0", "1", "2"  # of a query


@dataclass(frozen=True, slots=True)
class RowOfValues:
    """`(a, b)` with two values or more: one side of a comparison, or keys."""

    items: tuple[ast.Expr, ...]
    span: Span


def misplaced_row(span: Span) -> CompileError:
    """CQ0501 for a row of values that is not compared with anything."""
    return compile_error(
        "CQ0501",
        "a row of values is not supported here",
        Span(span.line, span.column, span.line, span.column + 1),
        help="name the values one by one: a, b in a list; = and <, and IN, compare rows",
    )


def rows_compared(op: Any, left: RowOfValues, right: Any, at: Span) -> ast.Expr:
    """`(a, b) < (c, d)`: the first values that differ decide; NULL if one of the values needed is NULL."""
    equal = rows_equal(left, right, at)
    if op in {"=", "<>"}:
        return equal if op == "=" else ast.Not(equal, span=at)
    *before, last = [
        (ast.Binary(op.rstrip("="), a, b, span=at, op_span=at), ast.Binary("=", a, b, span=at, op_span=at))
        for a, b in zip(left.items, right.items, strict=True)
    ]
    found: ast.Expr = replace(last[0], op=op)
    for less, same in reversed(before):
        found = ast.Logical("OR", (less, ast.Logical("AND", (same, found), span=at)), span=at)
    return found


def rows_equal(left: RowOfValues, right: Any, at: Span) -> ast.Expr:
    """`(a, b) = (c, d)`: all are equal. CQ0307 if the other side is not a row with the same number of values."""
    if not isinstance(right, RowOfValues) or len(right.items) != len(left.items):
        message = f"a row of {len(left.items)} values is compared with something else"
        help = f"compare it with as many values in parentheses: ({', '.join('xyzuvw'[: len(left.items)])}, …)"
        raise compile_error("CQ0307", message, getattr(right, "span", at), help=help.replace(", …", ""))
    pairs = zip(left.items, right.items, strict=True)
    return ast.Logical("AND", tuple(ast.Binary("=", a, b, span=at, op_span=at) for a, b in pairs), span=at)


def row_among(row: RowOfValues, items: Sequence[Any], negated: bool, at: Span) -> ast.Expr:
    """`(a, b) [NOT] IN ((1, 2), (3, 4))`."""
    tests = tuple(rows_equal(row, item, at) for item in items)
    among = tests[0] if len(tests) == 1 else ast.Logical("OR", tests, span=at)
    return ast.Not(among, span=at) if negated else among


def row_among_rows(row: RowOfValues, query: ast.Query, negated: bool, at: Span) -> ast.Expr:
    """`(a, b) [NOT] IN (SELECT x, y …)`: some row of the query equals it; NULL if only NULLs leave that open."""
    names = tuple(f"{_VALUE}{i}" for i, _ in enumerate(row.items, 1))
    there = RowOfValues(tuple(ast.ColumnRef(n, ROWS, span=at) for n in names), at)
    rows = ast.DerivedTable(query, alias=ROWS, columns=names, span=query.span)
    equal = rows_equal(there, row, at)
    assert isinstance(equal, ast.Logical)
    unlike = tuple(ast.IsTest(e, "FALSE", True, span=at) for e in equal.operands)
    queries = (_one_of(rows, where, at) for where in (equal, ast.Logical("AND", unlike, span=at)))
    among = ast.Exists(*queries, span=at)
    return ast.Not(among, span=at) if negated else among


def row_and_rows(node: ast.Exists) -> tuple[tuple[ast.Expr, ...], ast.Query]:
    """The row and the query of `(a, b) IN (SELECT …)`, as written."""
    match node.query.body:
        case ast.Select(relations=(ast.DerivedTable(query=query),), where=ast.Logical(operands=equal)):
            return tuple(e.right for e in equal if isinstance(e, ast.Binary)), query
    raise AssertionError("no row is sought")


def _one_of(rows: ast.DerivedTable, where: ast.Expr, at: Span) -> ast.Query:
    """SELECT 1 FROM rows WHERE …"""
    one = ast.SelectItem(ast.NumberLiteral("1", span=at), span=at)
    return ast.Query(ast.Select((one,), (rows,), where, span=at), span=at)


def between_symmetric(operand: ast.Expr, low: ast.Expr, high: ast.Expr, negated: bool, at: Span) -> ast.Expr:
    """`x [NOT] BETWEEN SYMMETRIC a AND b`: between them, whichever is the lesser."""
    either = tuple(ast.Between(operand, a, b, False, span=at) for a, b in ((low, high), (high, low)))
    among = ast.Logical("OR", either, span=at)
    return ast.Not(among, span=at) if negated else among


def compared_to_array(operand: ast.Expr, op: str, which: str, array: ast.Expr, at: Span) -> ast.Expr:
    """`x = ANY (array)`: it is one of the elements; `x <> ALL (array)`: it is none of them."""
    negated = (op, which) == ("<>", "ALL")
    if not negated and (op != "=" or which == "ALL"):
        help = "write x IN (1, 2, 3), or x > GREATEST(1, 2, 3); = ANY (array) and <> ALL (array) work"
        raise compile_error("CQ0501", f"{op} {which} (array) is not supported", at, help=help)
    if isinstance(array, ast.ArrayLiteral) and array.items:
        return ast.InList(operand, array.items, negated, span=at)
    among = ast.Call("array_contains", (array, operand), span=at, name_span=at)
    return ast.Not(among, span=at) if negated else among


def compared_to_query(operand: ast.Expr, op: str, which: str, query: ast.Query, at: Span) -> ast.Expr:
    """`x op ANY (SELECT …)`, SOME, ALL. `= ANY` is IN, `<> ALL` is NOT IN; others compare with the extreme value."""
    which = "ANY" if which == "SOME" else which
    if (op, which) in {("=", "ANY"), ("<>", "ALL")}:
        return ast.InQuery(operand, query, which == "ALL", span=at)
    if op == "=":  # ALL: none is different
        return ast.Not(compared_to_query(operand, "<>", "ANY", query, at), span=at)
    if op == "<>":  # ANY: unless both the least and the greatest are equal
        differs = (ast.Binary("<>", operand, aggregate_of(query, e, False, at), span=at, op_span=at) for e in _OTHER)
        return _decided(query, ast.Logical("OR", tuple(differs), span=at), "ANY", at)
    extreme = _LEAST_OF_ANY[op] if which == "ANY" else _OTHER[_LEAST_OF_ANY[op]]
    test = ast.Binary(op, operand, aggregate_of(query, extreme, False, at), span=at, op_span=at)  # type: ignore[arg-type]
    return _decided(query, test, which, at)


def _decided(query: ast.Query, test: ast.Expr, which: str, at: Span) -> ast.Expr:
    """The comparison with an extreme value, decided if the query is empty, and left open by a NULL in it."""
    nulls, decided = _nulls_of(query, at), test if which == "ANY" else ast.Not(test, span=at)
    branches = ((_is(nulls, _NO_ROWS), which == "ALL"), (decided, which == "ANY"))
    whens = [ast.When(c, ast.BooleanLiteral(v, span=at), span=at) for c, v in branches]
    open_ = ast.When(_is(nulls, _SOME_NULL), ast.NullLiteral(span=at), span=at)
    return ast.Case(None, (*whens, open_), test, span=at)


def _nulls_of(query: ast.Query, at: Span) -> ast.Expr:
    """(SELECT …): whether the query has rows, and a NULL among them. One value, as each is a join with its row."""
    rows = ast.Call("count", star=True, span=at, name_span=at)

    def told(value: ast.Expr) -> ast.Expr:
        known = ast.Call("count", (value,), span=at, name_span=at)
        same = ast.Binary("=", rows, known, span=at, op_span=at)
        branches = ((_is(rows, "0"), _NO_ROWS), (same, _NO_NULL))
        whens = tuple(ast.When(c, ast.NumberLiteral(n, span=at), span=at) for c, n in branches)
        return ast.Case(None, whens, ast.NumberLiteral(_SOME_NULL, span=at), span=at)

    return _value_of(query, told, at)


def _is(value: ast.Expr, number: str) -> ast.Expr:
    at = value.span
    return ast.Binary("=", value, ast.NumberLiteral(number, span=at), span=at, op_span=at)


def aggregate_of(query: ast.Query, name: str, star: bool, at: Span) -> ast.Expr:
    """(SELECT NAME(value) FROM query)."""
    return _value_of(
        query, lambda v: ast.Call(name.lower(), () if star else (v,), star=star, span=at, name_span=at), at
    )


def _value_of(query: ast.Query, told: Callable[[ast.Expr], ast.Expr], at: Span) -> ast.Expr:
    """(SELECT told(value) FROM query), which may name outer columns if it is a plain SELECT of one value."""
    select = query.body
    plain = isinstance(select, ast.Select) and query == ast.Query(select) and not _changes_rows(select)
    if plain and isinstance(select, ast.Select) and isinstance(select.items[0], ast.SelectItem):
        item = ast.SelectItem(told(select.items[0].expr), span=at)
        return ast.ScalarQuery(ast.Query(replace(select, items=(item,)), span=at), span=at)
    item = ast.SelectItem(told(ast.ColumnRef(_VALUE, span=at)), span=at)
    rows = ast.DerivedTable(query, alias=ROWS, columns=(_VALUE,), span=query.span)
    return ast.ScalarQuery(ast.Query(ast.Select((item,), (rows,), span=at), span=at), span=at)


def exists_as_value(node: ast.Exists) -> ast.Expr:
    """EXISTS inside a larger condition: whether the number of rows exceeds 0. IN of a row of values is NULL if there
    are only rows that may equal it."""
    there = _has_rows(node.query, node.span)
    if node.possible is None:
        return there
    branches: tuple[tuple[ast.Expr, ast.Expr], ...] = (
        (there, ast.BooleanLiteral(True, span=node.span)),
        (_has_rows(node.possible, node.span), ast.NullLiteral(span=node.span)),
    )
    whens = tuple(ast.When(c, v, span=node.span) for c, v in branches)
    return ast.Case(None, whens, ast.BooleanLiteral(False, span=node.span), span=node.span)


def _has_rows(query: ast.Query, at: Span) -> ast.Expr:
    """(SELECT COUNT(*) …) > 0."""
    select = query.body
    if isinstance(select, ast.Select) and not any(isinstance(n, ast.Call) for i in select.items for n in ast.walk(i)):
        one = ast.SelectItem(ast.NumberLiteral("1", span=at), span=at)
        query = replace(query, body=replace(select, items=(one,)))
    rows = aggregate_of(query, "COUNT", True, at)
    return ast.Binary(">", rows, ast.NumberLiteral("0", span=at), span=at, op_span=at)


def among_as_value(node: ast.InQuery) -> ast.Expr:
    """[NOT] IN inside a larger condition: NULL if a NULL, sought or in the list, leaves it open."""
    at = node.span
    there = ast.Binary("=", ast.ColumnRef(_VALUE, span=at), node.operand, span=at, op_span=at)
    rows = ast.DerivedTable(node.query, alias=ROWS, columns=(_VALUE,), span=node.query.span)
    count = ast.SelectItem(ast.Call("count", star=True, span=at, name_span=at), span=at)
    found = ast.ScalarQuery(ast.Query(ast.Select((count,), (rows,), there, span=at), span=at), span=at)
    nulls = _nulls_of(node.query, at)
    open_ = (ast.IsTest(node.operand, "NULL", span=at), _is(nulls, _SOME_NULL))
    some = ast.Binary(">", found, ast.NumberLiteral("0", span=at), span=at, op_span=at)
    branches: tuple[tuple[ast.Expr, ast.Expr], ...] = (
        (some, ast.BooleanLiteral(True, span=at)),
        (_is(nulls, _NO_ROWS), ast.BooleanLiteral(False, span=at)),
        (ast.Logical("OR", open_, span=at), ast.NullLiteral(span=at)),
    )
    whens = tuple(ast.When(c, v, span=at) for c, v in branches)
    among = ast.Case(None, whens, ast.BooleanLiteral(False, span=at), span=at)
    return ast.Not(among, span=at) if node.negated else among


def _changes_rows(select: ast.Select) -> bool:
    """Whether the rows of a SELECT differ from those of its FROM that pass WHERE."""
    clauses = (select.group_by, select.group_all, select.having, select.qualify, select.distinct, select.windows)
    calls = [n for i in select.items for n in ast.walk(i) if isinstance(n, ast.Call)]
    return any(clauses) or len(select.items) != 1 or bool(calls) or not select.relations
